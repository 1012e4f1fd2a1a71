"""A pass of the loop that takes long: told with its length, and nothing is lost by it."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from django_declarative_cron import signals
from django_declarative_cron.core.events import PersistenceFailed
from django_declarative_cron.runtime.clock import SystemClock
from django_declarative_cron.runtime.loop import SLOW, Loop


class Leaping(SystemClock):
    """A clock on which nothing takes any time but what a test says."""

    second = 0.0

    def monotonic(self) -> float:
        return self.second


def _one_pass(seconds: float, *, refused: bool = False) -> None:
    """Go once through the loop, in this thread."""
    clock = Leaping()

    def tick() -> None:
        # First: whatever goes wrong after it, there is no second pass.
        loop._is_stopped = True
        clock.second += seconds
        if refused:
            at = clock.now()
            signals.publish([PersistenceFailed(at=at, doing="evaluating", error="Error: gone")])

    loop = Loop(clock, tick, threading.Event(), lambda: 0.0)
    loop._run()


def test_p70_a_pass_that_takes_long_is_told_with_its_length(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _one_pass(90)
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith("A tick of the scheduler took 90.0 s: ")


def test_a_pass_of_usual_length_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    _one_pass(SLOW - 0.1)
    assert caplog.records == []


def test_a_refusal_that_took_long_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    _one_pass(timedelta(minutes=1).total_seconds(), refused=True)
    assert [getattr(record, "event", "") for record in caplog.records] == ["PersistenceFailed"]
