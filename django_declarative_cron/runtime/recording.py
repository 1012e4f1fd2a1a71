"""Writing down how runs ended, in batches: what is claimed ahead of an instant waits for none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ..core.events import Event
from ..signals import publish
from ..store import results
from ..store.guard import Member
from ..store.peek import Peek
from .behind import Behind
from .calls import Calls
from .clock import Clock
from .hush import HUSH, Hush

MOST = 1000
"""Results that are written in one transaction."""

FEW = 100
"""Results that are written before what is due where its instant has come already."""

LONGEST = timedelta(milliseconds=500)
"""Results wait no longer than this, however closely instants follow each other."""

GATHERING = 0.02
"""Seconds for which what is due waits at most for the results of what has ended before it."""

_AT_FIRST = timedelta(milliseconds=20)
_QUICKEST = timedelta(milliseconds=1)
_SLOWEST = timedelta(milliseconds=100)


class Recording:
    """Write results, as they come and as time allows.

    Args:
        clock: tells whether an instant has come.
        calls: keep the results until they are written.
        member: gives who this instance is, ``None`` before the first initialisation.
        hush: is told for which instant results are kept.
    """

    def __init__(
        self, clock: Clock, calls: Calls, member: Callable[[], Member | None], hush: Hush
    ) -> None:
        self._clock = clock
        self._calls = calls
        self._member = member
        self._hush = hush
        self._turn = threading.Lock()
        self.behind = Behind()
        self.is_behind = False
        self._kept_for: datetime | None = None
        self._hushed_from: datetime | None = None
        self._considered = datetime.min.replace(tzinfo=UTC)
        self._took, self._number = _AT_FIRST, FEW

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
        if instant is not None and instant <= now:
            # Whoever has ended still runs to the database: what is due now would be skipped.
            self._hush.end()
            self._calls.gather(GATHERING)
        told: list[Event] = []
        self.behind.forget()
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
        while left and (size := self._size(left, instant)):
            left -= self._batch(now, size, told, is_last=size == left)
        self._leave(left, now, instant)
        return found > 0

    def saw(self, member: Member, seen: Peek | None, told: list[Event]) -> None:
        """Keep a look that went behind what was written, unless somebody may have acted since.

        Args:
            member: who looked.
            seen: what was found, if anything was asked.
            told: what was told since then.
        """
        # Whose run has ended already may have acted.
        self.behind.keep(member, None if self._calls.waiting else seen, told)

    def following(
        self, now: datetime, instant: datetime | None, *, was_held: bool = False
    ) -> datetime | None:
        """Give when the next pass comes: at once where results are left, and not for an instant.

        Args:
            now: the instant of the tick.
            instant: when the tick would have the next one.
            was_held: the tick began before its own instant; what ended since then was left.
        """
        is_kept = self.is_behind and instant is not None and instant == self._kept_for
        has_missed = self._hush.begin(self._clock.now(), instant, is_kept=is_kept)
        if (has_missed or was_held) and self._calls.waiting:
            return now
        return now if self.is_behind and (instant is None or not is_kept) else instant

    def _leave(self, left: int, now: datetime, instant: datetime | None) -> None:
        self.is_behind, self._considered = left > 0, now
        self._kept_for = instant if left else None
        self._hushed_from = (self._hushed_from or now) if left else None

    def _is_to_come(self, instant: datetime | None, now: datetime) -> bool:
        """Tell whether the pass before came too early for an instant, and nothing waits long."""
        since = self._hushed_from or now
        return instant is not None and instant > self._considered and now - since < LONGEST

    def _size(self, left: int, instant: datetime | None) -> int:
        """Give how many results are written next: all that can be before what is due."""
        if instant is None:
            return min(left, MOST)
        to_come = instant - self._clock.now()
        if to_come <= timedelta(0):
            return left if left <= FEW else 0
        # However few they are, they take no less than those before.
        times = (to_come - HUSH) / self._took
        return min(left, int(self._number * times), MOST) if times >= 1 else 0

    def _batch(self, now: datetime, size: int, told: list[Event], *, is_last: bool) -> int:
        member, batch = self._member(), self._calls.waiting[:size]
        if member is not None:
            began = self._clock.monotonic()
            recorded = results.record(member, batch, now, looks=is_last)
            self._note(timedelta(seconds=self._clock.monotonic() - began), len(batch))
            self._calls.recorded(batch, recorded.held)
            told += recorded.events
            self.saw(member, recorded.seen, told)
        return len(batch)

    def _note(self, took: timedelta, number: int) -> None:
        """Learn how long a batch takes."""
        self._took, self._number = min(max(took, _QUICKEST), _SLOWEST), number
