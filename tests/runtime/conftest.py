"""A scheduler with real threads on the real clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import Scheduler, signals
from django_declarative_cron.runtime import engine
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from ..timeouts import TIMEOUT

NEVER_TODAY = "0 0 29 2 *"
FIVE_MINUTES = timedelta(minutes=5)


RunNow = Callable[..., None]


def registrations(**callbacks: Any) -> list[Any]:
    """Declare a task for each callback; none is due today."""
    return [(name, NEVER_TODAY, each, FIVE_MINUTES) for name, each in callbacks.items()]


class Heard:
    """Wait for a signal instead of for luck."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._events: list[Any] = []

    def __call__(self, event: Any, **_: object) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def of(self, kind: str) -> list[Any]:
        """Give the events of a kind so far."""
        with self._news:
            return [event for event in self._events if type(event).__name__ == kind]

    def kinds(self) -> list[str]:
        """Give the names of all events so far, in their order."""
        with self._news:
            return [type(event).__name__ for event in self._events]

    def wait_for(self, kind: str, count: int = 1) -> list[Any]:
        """Wait until so many events of a kind have come."""
        with self._news:
            assert self._news.wait_for(lambda: len(self._of(kind)) >= count, TIMEOUT), (
                kind,
                self._events,
            )
            return self._of(kind)

    def _of(self, kind: str) -> list[Any]:
        return [event for event in self._events if type(event).__name__ == kind]


@pytest.fixture(autouse=True)
def _acts_are_seen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for people's acts more often: most tests begin with one."""
    monkeypatch.setattr(engine, "POLL_INTERVAL", timedelta(milliseconds=50))


@pytest.fixture
def heard() -> Iterator[Heard]:
    """Listen to every event."""
    listener = Heard()
    for signal in signals.SIGNALS.values():
        signal.connect(listener)
    yield listener
    for signal in signals.SIGNALS.values():
        signal.disconnect(listener)


@pytest.fixture
def scheduler(transactional_db: None, heard: Heard) -> Iterator[Scheduler]:
    """Give a scheduler that is stopped at the end."""
    made = Scheduler()
    yield made
    made.stop()


@pytest.fixture
def run_now() -> Callable[..., None]:
    """Ask for runs as an operator does."""

    def ask(*names: str) -> None:
        act = Act(author="an operator", at=datetime.now(UTC))
        assert sorted(operator_actions.request_run(names, act)) == sorted(names)

    return ask
