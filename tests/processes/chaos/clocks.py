"""The wall clock of the machine on which the schedulers run; it can be set, the real one cannot.

A file holds the seconds by which it is wrong. All processes read it at every look at the
clock, so that a step is a step for all of them at once. The database has a clock of its own.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.apps import AppConfig

VARIABLE = "DDC_CHAOS_CLOCK"
_FARTHEST = timedelta(hours=12).total_seconds()
# A moment, what a mark is believed for, what it is not, and what nobody overlooks.
_STEPS = ((1, 60), (60, 290), (310, 3600), (3600, 6 * 3600))


class Clock:
    """The wall clock, as far as it is wrong; without a file it is right."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self.offset = 0.0

    def now(self) -> datetime:
        right = datetime.now(UTC)
        if self._path is None:
            return right
        try:
            return right + timedelta(seconds=float(self._path.read_text()))
        except FileNotFoundError:
            return right

    def step(self, chance: random.Random) -> float:
        """Set it by some seconds or hours, either way; return the seconds."""
        seconds = chance.uniform(*chance.choice(_STEPS)) * chance.choice((-1, 1))
        if abs(self.offset + seconds) > _FARTHEST:
            seconds = -seconds
        self.set(self.offset + seconds)
        return seconds

    def set(self, offset: float) -> None:
        assert self._path is not None
        self.offset = offset
        # In one piece: somebody may read it at any time.
        fresh = self._path.with_suffix(".new")
        fresh.write_text(repr(offset))
        os.replace(fresh, self._path)


class ChaosConfig(AppConfig):
    """The storm's own app: it has no models, and lets the schedulers go by that clock."""

    name = "tests.processes.chaos"
    label = "chaos"

    def ready(self) -> None:
        path = os.environ.get(VARIABLE, "")
        if not path:
            return
        from django_declarative_cron.runtime.clock import SystemClock

        clock = Clock(path)
        SystemClock.now = lambda self: clock.now()  # type: ignore[method-assign]
