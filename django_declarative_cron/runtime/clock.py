"""The only caller of the real clock, and of the database for its time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from django.db.models.expressions import BaseExpression

from ..store.database import DatabaseNow

HELD_UP = 5.0
"""Seconds after which the instant of a pass is out of date."""

TOGETHER = 0.1
"""Seconds within which two readings count as simultaneous."""

_READINGS = 5


class Clock(Protocol):
    """Three kinds of time: the wall's, the monotonic one, the database's."""

    def now(self) -> datetime:
        """Return the instant on the wall clock, aware UTC."""

    def monotonic(self) -> float:
        """Return seconds that only grow."""

    def database_time(self) -> BaseExpression:
        """Return the expression by which a query asks for the database's time."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until an event is set or seconds have passed, and return whether it is set."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the instant on the wall clock, aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only grow."""
        return time.monotonic()

    def database_time(self) -> BaseExpression:
        """Return the expression by which a query asks for the database's time."""
        return DatabaseNow()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until an event is set or seconds have passed, and return whether it is set."""
        return event.wait(max(seconds, 0.0))


system_clock: Clock = SystemClock()


class Moment(NamedTuple):
    """The present by two clocks.

    Args:
        monotonic: its second, which stands still while the machine sleeps.
        at: its instant on the wall.
    """

    monotonic: float
    at: datetime


def moment(clock: Clock) -> Moment:
    """Read both clocks together: a pause between the readings would be detected as a step."""
    for _ in range(_READINGS):
        read = Moment(clock.monotonic(), clock.now())
        if clock.monotonic() - read.monotonic < TOGETHER:
            break
    return read


def later(clock: Clock, began: Moment) -> datetime:
    """Return the instant of a pass: that of its beginning, or a later one after a halt.

    A process that is halted in the middle and still leads reads ends of runs that came
    meanwhile: a start dated before the halt would precede the end of the run before it.
    """
    passed = clock.monotonic() - began.monotonic
    return began.at if passed < HELD_UP else began.at + timedelta(seconds=passed)
