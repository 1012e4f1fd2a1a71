"""Writing down how runs ended, in batches: an instant that comes waits for a small one at most."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ..core.events import Event
from ..signals import publish
from ..store import results
from ..store.guard import Member
from .calls import Calls
from .clock import Clock

MOST = 1000
"""Results that are written in one transaction."""

FEW = 100
"""Results that are written in one transaction while an instant is near."""

NEAR = timedelta(seconds=1)

HUSH = timedelta(milliseconds=50)
"""Before an instant, more results than a few wait until what is due has begun."""

LONGEST = timedelta(milliseconds=500)
"""Results wait no longer than this, however closely instants follow each other."""


class Recording:
    """Write results, as they come and as time allows.

    Args:
        clock: tells whether an instant has come.
        calls: keep the results until they are written.
        member: gives who this instance is, ``None`` before the first initialisation.
    """

    def __init__(self, clock: Clock, calls: Calls, member: Callable[[], Member | None]) -> None:
        self._clock = clock
        self._calls = calls
        self._member = member
        self._turn = threading.Lock()
        self.is_behind = False
        self._hushed_from: datetime | None = None
        self._considered = datetime.min.replace(tzinfo=UTC)

    @property
    def unrecorded(self) -> set[str]:
        """Give the names of the tasks whose results the last writing left for the next one."""
        return {each.task_name for each in self._calls.waiting} if self.is_behind else set()

    def write(self, now: datetime, instant: datetime | None = None) -> bool:
        """Write every result that is waiting; what cannot be written stays waiting.

        Args:
            now: the instant of the tick.
            instant: when a task is due; shortly before, what is left is for the next time.

        Returns:
            whether there was anything to write.

        Raises:
            django.db.Error: the results are kept.
        """
        told: list[Event] = []
        try:
            with self._turn:
                return self._write(now, instant, told)
        finally:
            # Not in our turn: a receiver may initialise, which writes results as well.
            publish(told)

    def _write(self, now: datetime, instant: datetime | None, told: list[Event]) -> bool:
        if self.is_behind and not self._is_to_come(instant, now):
            instant = None  # Not twice for one instant: what is due may wait for just these.
        left = found = len(self._calls.waiting)
        while left and (left <= FEW or not self._comes(instant)):
            left -= self._batch(now, min(left, self._size(instant)), told)
        self._leave(left, now)
        return found > 0

    def following(self, now: datetime, instant: datetime | None) -> datetime | None:
        """Give when the next pass comes: at once where results are left, and not for an instant.

        Args:
            now: the instant of the tick.
            instant: when the tick would have the next one.
        """
        if not self.is_behind or (instant is not None and now < instant <= now + HUSH):
            return instant
        return now

    def _leave(self, left: int, now: datetime) -> None:
        self.is_behind, self._considered = left > 0, now
        self._hushed_from = (self._hushed_from or now) if left else None

    def _is_to_come(self, instant: datetime | None, now: datetime) -> bool:
        """Tell whether the pass before came too early for an instant, and nothing waits long."""
        since = self._hushed_from or now
        return instant is not None and instant > self._considered and now - since < LONGEST

    def _batch(self, now: datetime, size: int, told: list[Event]) -> int:
        member, batch = self._member(), self._calls.waiting[:size]
        if member is not None:
            recorded = results.record(member, batch, now)
            self._calls.recorded(batch, recorded.held)
            told += recorded.events
        return len(batch)

    def _comes(self, instant: datetime | None) -> bool:
        return instant is not None and instant - self._clock.now() <= HUSH

    def _size(self, instant: datetime | None) -> int:
        is_near = instant is not None and instant - self._clock.now() < NEAR
        return FEW if is_near else MOST
