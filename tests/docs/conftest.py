"""The shop that the documentation speaks of, as far as its examples need it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from django_declarative_cron import signals
from django_declarative_cron.testing import assert_schedule_snapshot

MODULES = (
    *("shop", "shop.tasks", "shop.schedule", "shop.routers", "shop.calendars"),
    *("garden", "garden.tasks"),
)


def _nothing() -> None: ...


def _with_argument(warehouse: int = 0) -> None: ...


FUNCTIONS = {
    **dict.fromkeys(("send_digests", "import_feed", "render_reports", "bill"), _nothing),
    "count_stock": _with_argument,
}


@pytest.fixture(autouse=True)
def _secrets_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what the examples take from the environment."""
    monkeypatch.setenv("CRON_EVENTS_SECRET", "whsec_" + "a" * 32)


@pytest.fixture(autouse=True)
def _receivers_of_the_examples_go_with_them() -> Iterator[None]:
    """Let no receiver that an example connected be called for another test.

    A signal holds it weakly, but a function and its module hold each other: it would live
    until the next collection, and be called until then.
    """
    every = [*signals.SIGNALS.values(), *signals.EXTERNAL_SIGNALS.values()]
    before = [signal.receivers[:] for signal in every]
    yield
    for signal, receivers in zip(every, before, strict=True):
        signal.receivers = receivers
        signal.sender_receivers_cache.clear()


@pytest.fixture
def cron_snapshot(tmp_path: Path) -> Callable[[str], None]:
    """Compare with a file that was written at first, as the reader of the page has done."""

    def compare(name: str) -> None:
        assert_schedule_snapshot(tmp_path / name, rewrite=True)
        assert_schedule_snapshot(tmp_path / name)

    return compare


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Make the modules of the examples importable; blocks of the pages add to them."""
    made = {name: ModuleType(name) for name in MODULES}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
        package, _, child = name.rpartition(".")
        if package:
            setattr(made[package], child, module)
    for name, like in FUNCTIONS.items():
        function = FunctionType(like.__code__, {}, name, like.__defaults__)
        setattr(made["shop.tasks"], name, function)
    return made
