"""Writing how runs ended, in batches, so that starts that are due wait for one batch at most."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from ..core.events import Event
from ..signals import publish
from ..store import results
from ..store.guard import Member
from .calls import Calls

BATCH = 200
"""Results that are written in one transaction, and before what is due."""

GATHERING = 0.02
"""Seconds for which what is due waits at most for the results of callbacks that have ended."""


class Recording:
    """Write results as they come.

    Args:
        calls: keep the results until they are written.
        member: returns who this instance is, ``None`` before the first initialisation.
    """

    def __init__(self, calls: Calls, member: Callable[[], Member | None]) -> None:
        self._calls = calls
        self._member = member
        self._turn = threading.Lock()
        self.is_behind = False

    @property
    def unrecorded(self) -> set[str]:
        """Return the names of the tasks whose results the last batch left for the next one."""
        return {each.task_name for each in self._calls.waiting} if self.is_behind else set()

    def write(self, now: datetime, *, is_due: bool = False, most: int = BATCH) -> bool:
        """Write one batch of the results that are waiting, oldest first.

        Returns:
            whether there was anything to write.

        Raises:
            django.db.Error: the results are kept.
        """
        if is_due:
            self._calls.gather(GATHERING)
        told: list[Event] = []
        try:
            with self._turn:
                return self._write(now, most, told)
        finally:
            # Without the turn: a receiver may initialise, which writes results as well.
            publish(told)

    def write_all(self, now: datetime) -> None:
        """Write every result that is waiting; those whose rows are locked stay waiting.

        Raises:
            django.db.Error: the results are kept.
        """
        left = len(self._calls.waiting)
        while left > 0:
            self.write(now, most=min(left, BATCH))
            left -= BATCH
        self.is_behind = False

    def _write(self, now: datetime, most: int, told: list[Event]) -> bool:
        member, waiting = self._member(), self._calls.waiting
        batch = waiting[:most]
        if batch and member is not None:
            recorded = results.record(member, batch, now)
            self._calls.recorded(batch, recorded.held)
            told += recorded.events
        self.is_behind = len(waiting) > len(batch)
        return bool(batch)
