"""When other work may come between starts: it takes a share of the time, and no start waits for it.

What is written faster than it is forgotten grows without end. So forgetting is bound by no number
of rows, but by time: of each second a fifth, in pieces that fit between two starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from .clock import Clock

ROOM = timedelta(milliseconds=100)
"""How far away the next start must be at least for a piece of work to begin."""

IMPATIENCE = 1.0
"""Seconds that a piece of work waits for such a room at most."""

_ROOMS = 2
"""How many times as long as the last piece of work took it must be too."""

_RESTS = 4
"""How many times as long as a piece of work took the next one waits."""


class Respite:
    """Tell when there is time for a piece of work.

    Args:
        clock: by which pieces and rests are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rested_at = clock.monotonic()
        self._took = timedelta(0)
        self._refused_at: float | None = None

    def has_come(self, next_wake: datetime | None) -> bool:
        """Tell whether a piece of work may begin.

        Args:
            next_wake: when the next task is to be considered; what is due already is late anyway.
        """
        if self.left() > 0:
            return False
        room = max(ROOM, _ROOMS * self._took)
        to_come = room if next_wake is None else next_wake - self._clock.now()
        if not timedelta(0) < to_come < room:
            return True
        if self._refused_at is None:
            self._refused_at = self._clock.monotonic()
        return self._clock.monotonic() - self._refused_at >= IMPATIENCE

    def left(self) -> float:
        """Give the seconds until the rest is over."""
        return self._rested_at - self._clock.monotonic()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Measure a piece of work, which the next one rests after."""
        began, self._refused_at = self._clock.monotonic(), None
        try:
            yield
        finally:
            ended = self._clock.monotonic()
            self._rested_at = ended + _RESTS * (ended - began)
            self._took = timedelta(seconds=ended - began)
