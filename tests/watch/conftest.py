"""A scheduler with a loop, receivers of what it sends, and nothing left over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_declarative_cron.runtime import watchers
from django_declarative_cron.watch import courier, notifications

from ..events.receiver import Receiver
from ..runtime import conftest as real

_acts_are_seen_soon, heard = real._acts_are_seen_soon, real.heard
scheduler, run_now = real.scheduler, real.run_now


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Try again soon, look often, and let no watcher outlive its test."""
    monkeypatch.setattr(courier, "PAUSES", (0.01, 0.01))
    monkeypatch.setattr(notifications, "LOOK", 0.05)
    monkeypatch.setattr("django_declarative_cron.core.notices.GATHER", 0.05)
    yield
    watchers.end(0.5)
    assert watchers._holders == 0
