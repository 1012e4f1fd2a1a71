"""The only caller of the real clock, and of the database for its time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from django.db.models.expressions import BaseExpression

from ..store.database import DatabaseNow

HELD_UP = 5.0
"""Seconds after which a pass is older than its own instant may be."""

TOGETHER = 0.1
"""Seconds within which two clocks have been read at once."""

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
        """Wait until an event is set or seconds have passed; tell which."""


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
        """Wait until an event is set or seconds have passed; tell which."""
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
    """Read both clocks at once: a process halted between them takes the halt for a leap."""
    for _ in range(_READINGS):
        read = Moment(clock.monotonic(), clock.now())
        if clock.monotonic() - read.monotonic < TOGETHER:
            break
    return read


def later(clock: Clock, began: Moment) -> datetime:
    """Return the instant of a pass: the one it began with, or a later one where it was held up.

    A process that is halted in the middle, and still leads, knows of ends that came meanwhile: a
    start of the instant before them would be dated before the end of the run before it.
    """
    passed = clock.monotonic() - began.monotonic
    return began.at if passed < HELD_UP else began.at + timedelta(seconds=passed)
