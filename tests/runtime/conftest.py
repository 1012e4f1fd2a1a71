"""A scheduler with real threads on the real clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from django_declarative_cron import Scheduler, conf, signals
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


def ask_for_runs(*names: str) -> None:
    """Ask for runs as an operator does."""
    act = Act(author="an operator", at=datetime.now(UTC))
    assert sorted(operator_actions.request_run(names, act)) == sorted(names)


def nothing() -> None:
    """Be a callback."""


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
        """Return the events of a kind so far."""
        with self._news:
            return self._of(kind)

    def kinds(self) -> list[str]:
        """Return the names of all events so far, in their order."""
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


class Live:
    """A scheduler of its own threads, and its events.

    Args:
        heard: its events.
    """

    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.configure()

    def configure(self, **options: Any) -> None:
        """Use a scheduler with other options; none was started before."""
        self.scheduler = Scheduler(options=lambda: replace(conf.options(), **options))

    def start(self, **callbacks: Any) -> None:
        """Initialise with a task for each callback."""
        self.scheduler.initialize(registrations(**callbacks))

    def ask(self, *names: str) -> None:
        ask_for_runs(*names)

    def run(self, **callbacks: Any) -> None:
        """Initialise with a task for each callback, and ask for a run of each."""
        self.start(**callbacks)
        self.ask(*callbacks)

    def until(self, kind: str, count: int = 1) -> list[Any]:
        """Wait until so many events of a kind have come."""
        return self.heard.wait_for(kind, count)


class Call:
    """A call in a thread of its own, which leaves no connection behind."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._error: BaseException | None = None
        self._value: Any = None
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs))
        self._thread.start()

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            self._value = function(*args, **kwargs)
        except BaseException as error:
            self._error = error
        finally:
            connections.close_all()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        """Wait for its end; a deadlock is a failure."""
        self._thread.join(TIMEOUT)
        assert self.is_over, "the call never came back"
        if self._error is not None:
            raise self._error
        return self._value


class Busy:
    """A callback that says when it began and ends when it may."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began.set()
        assert self.may_end.wait(TIMEOUT)


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
def live(transactional_db: None, heard: Heard) -> Iterator[Live]:
    """Give a scheduler that is stopped at the end."""
    made = Live(heard)
    yield made
    made.scheduler.stop()


@pytest.fixture
def scheduler(live: Live) -> Scheduler:
    return live.scheduler


@pytest.fixture
def busy(live: Live) -> Busy:
    """Give a callback that is at work as the only task of the scheduler."""
    busy = Busy()
    live.run(t=busy)
    assert busy.began.wait(TIMEOUT)
    return busy


@pytest.fixture
def run_now() -> RunNow:
    return ask_for_runs
