"""Runs of the past, one by one in this process, beside the schedule."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ..core.declaration import Declaration
from ..store import backfilling
from ..store.backfilling import LiveDueError
from ..store.foreground import AlreadyRunningError, Start
from ..store.guard import Bid, Member
from ..store.peek import peek
from . import watchers
from .clock import Clock
from .companion import Companion
from .foreground import Ran, outsider, run_started, this_process
from .watch import Vigil

_BETWEEN_LOOKS = 1.0


def _nobody() -> None:
    """Give no companion."""


@dataclass(slots=True)
class Backfill:
    """Runs of the past of one task, all by one instance.

    Args:
        declaration: of the task, which a scheduler has registered.
        clock: source of time.
        repeat: run occurrences that have succeeded too.
        waits: called once for each time that it waits for other runs of the task.
        companion: makes a process that vouches for this one during a run, or gives ``None``.
    """

    declaration: Declaration
    clock: Clock
    repeat: bool
    waits: Callable[[], None]
    companion: Callable[[], Companion | None] = _nobody
    member: Member = field(init=False)
    vigil: Vigil = field(init=False, default_factory=Vigil)

    def __post_init__(self) -> None:
        self.member = outsider(self.clock)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let watchers send what they hear beside the runs, and wait for it once, at the end."""
        watchers.begin([self.declaration])
        try:
            yield
        finally:
            watchers.end()

    def run(self, occurrence: datetime) -> Ran:
        """Run one occurrence to its end, once nothing of the task's schedule is in the way.

        Args:
            occurrence: which one.

        Raises:
            DoneError: it has succeeded.
            NotRegisteredError: the task has no row.
            UnreadableRowError: its row is damaged.
            django.db.Error: it was not started, or its end could not be recorded.
        """
        start = self._start(occurrence)
        companion = self.companion()
        return run_started(self.member, start, self.declaration, self.clock, companion=companion)

    def _start(self, occurrence: datetime) -> Start:
        is_waiting = False
        while True:
            now = self.clock.now()
            try:
                return backfilling.start(
                    self.member,
                    this_process(),
                    self.declaration,
                    occurrence,
                    now,
                    repeat=self.repeat,
                    bid=Bid(self.vigil.watched),
                )
            except (AlreadyRunningError, LiveDueError):
                if not is_waiting:
                    self.waits()
                is_waiting = True
                self._watch()
                self.clock.wait(threading.Event(), _BETWEEN_LOOKS)

    def _watch(self) -> None:
        """Keep an eye on the others: where nobody leads, nobody else notices who dies."""
        seen = peek(self.member)
        if seen is not None:
            self.vigil.look(self.member, seen.database_now)
