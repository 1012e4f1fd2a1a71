"""Claiming shortly before an instant: when it comes, only the commit is left to be done.

What is decided as of the instant is written some milliseconds before it, in a transaction
that is held open until the clock shows the instant. So a start is seen by nobody before its
time, and a person's act waits for it or comes before it, as ever. A claim that must not be
committed, because the clock was set back or a stop was asked for, is taken back as a whole.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime, timedelta

from .clock import Clock
from .hush import Hush

LEAD = timedelta(milliseconds=25)
"""How long before an instant its claim begins: other writers wait for so long, once."""

LATE = timedelta(seconds=1)
"""How long after an instant a claim that was held for it is one for the past."""

_WAITS = 5
"""How often a hold waits for one instant: on a clock that stands still it never comes."""

WAY = 0.001
"""Seconds for which the loop leaves the interpreter to those whom it has just handed to runners."""

_NOW = timedelta(0)


@dataclass(slots=True)
class Hold:
    """What holds a claim until its instant has come.

    Args:
        instant: as of which was decided.
        clock: shows it.
        stopping: set once nothing more may start.
        waited: seconds for which it has held it, and given way.
    """

    instant: datetime
    clock: Clock
    stopping: threading.Event
    waited: float = 0.0

    def ends_well(self) -> bool:
        """Wait for the instant; tell whether what was claimed may be committed.

        An instant that has come already is not waited for: the claim itself took so long.
        """
        began, left, waits = self.clock.monotonic(), self._left(), 0
        while _NOW < left <= LEAD and waits < _WAITS and not self.stopping.is_set():
            waits += 1
            self.clock.wait_closely(self.stopping, left.total_seconds())
            left = self._left()
        self.waited += self.clock.monotonic() - began
        is_in_time = left <= _NOW and (not waits or -left < LATE)
        return is_in_time and not self.stopping.is_set()

    def give_way(self) -> None:
        """Let the callbacks begin that were handed over: the loop's next look can wait."""
        began = self.clock.monotonic()
        self.clock.wait(self.stopping, WAY)
        self.waited += self.clock.monotonic() - began

    def _left(self) -> timedelta:
        return self.instant - self.clock.now()


class Ahead:
    """Tell when to claim ahead of an instant.

    Args:
        clock: shows the instant.
        stopping: set once nothing more may start.
        hush: begins with a claim.
    """

    lead = _NOW
    """How long before an instant; nothing until there is a loop, which passes come from."""

    def __init__(self, clock: Clock, stopping: threading.Event, hush: Hush) -> None:
        self._clock = clock
        self._stopping = stopping
        self._hush = hush
        self._was_ahead = False
        self._held_for: datetime | None = None

    def hold(self, instant: datetime | None) -> Hold | None:
        """Give what holds a claim that is to begin now, for an instant that is near.

        Never twice in a row: results are written in the pass between. Never twice for one
        instant: what was taken back waits for it without a transaction.

        Args:
            instant: when a task is to be considered next, if that is known.
        """
        is_near = instant is not None and _NOW < instant - self._clock.now() <= self.lead
        self._was_ahead = is_near and not self._was_ahead and instant != self._held_for
        if instant is None or not self._was_ahead:
            return None
        self._held_for = instant
        self._hush.begin(self._clock.now(), instant)
        return Hold(instant, self._clock, self._stopping)

    def seconds_before(self, seconds: float) -> float:
        """Give how long to sleep until the claim for an instant begins.

        Args:
            seconds: until the instant.
        """
        lead = self.lead.total_seconds()
        return seconds - lead if seconds > lead else seconds
