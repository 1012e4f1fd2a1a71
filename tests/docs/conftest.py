"""The shop that the documentation speaks of, as far as its examples need it."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest


def _send_digests() -> None:
    """Send them."""


def _count_stock(warehouse: int = 0) -> None:
    """Count it."""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Make the modules of the examples importable; blocks of the pages add to them."""
    made = {name: ModuleType(name) for name in ("shop", "shop.tasks", "garden", "garden.tasks")}
    for name, module in made.items():
        monkeypatch.setitem(sys.modules, name, module)
        package, _, child = name.rpartition(".")
        if package:
            setattr(made[package], child, module)
    for name, function in (("send_digests", _send_digests), ("count_stock", _count_stock)):
        setattr(made["shop.tasks"], name, function)
    return made
