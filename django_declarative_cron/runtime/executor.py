"""The runs of one instance: handed to their runners, kept, and recorded in batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from ..core.events import Event
from ..signals import publish
from ..store import manual_runs, results
from ..store.active_runs import Claim
from ..store.guard import Member
from ..store.results import Result
from .clock import Clock
from .connections import refresh
from .fencing import Fence
from .outcome import Ending, failed
from .runners.registry import Runners
from .tracing import carrier
from .work import Run, Work

BATCH = 200
"""Results that one transaction writes; a start that is due waits for one such transaction."""

GATHERING = 0.02
"""Seconds for which a due start waits for the results of callbacks that have ended."""


class Executor:
    """Keep each claimed run until its result is recorded.

    Args:
        clock: dates the end of a run that could not be called.
        runners: call the runs.
        owner: the scheduler of these runs.
        fence: returns, in any thread, whether a run may still be called.
        ended: called at each end.
    """

    def __init__(
        self,
        clock: Clock,
        runners: Runners,
        owner: object,
        fence: Fence,
        ended: Callable[[], None],
    ) -> None:
        self._clock, self._runners, self._owner = clock, runners, owner
        self._fence, self._ended = fence, ended
        self._running: dict[int, Work] = {}
        self._waiting: list[Result] = []
        self._changed = threading.Condition()
        self._recording = threading.Lock()
        self.is_behind = False

    @property
    def running(self) -> int:
        """Return the number of unfinished callbacks."""
        with self._changed:
            return len(self._running)

    @property
    def unfinished(self) -> int:
        """Return the number of runs without a recorded result."""
        with self._changed:
            return len(self._running) + len(self._waiting)

    @property
    def waiting(self) -> list[Result]:
        """Return the results that are not recorded, oldest first."""
        with self._changed:
            return list(self._waiting)

    @property
    def known(self) -> set[int]:
        with self._changed:
            return {*self._running, *(result.run for result in self._waiting)}

    @property
    def unrecorded(self) -> set[str]:
        """Return the tasks with results that the last batch left for the next one."""
        return {each.task_name for each in self.waiting} if self.is_behind else set()

    # --- calling ---

    def take(
        self, member: Member, claims: Sequence[Claim], stopping: threading.Event
    ) -> list[Work]:
        """Make committed claims runs of this instance; a stop waits for them."""
        # The span and the state of the fence are the same for all of them.
        trace, admit = carrier(), partial(self._admit, member, self._fence.lapses)
        work = []
        for claim in claims:
            declaration, ending = claim.declaration, Ending()
            made = Work(
                id=claim.run,
                run=Run.of(claim.started, declaration, stopping, ending.asked, claim.run),
                target=declaration.target,
                done=self._done,
                owner=self._owner,
                admit=admit,
                forget=self._forget,
                declaration=declaration,
                ending=ending,
                member=member if declaration.atomic else None,
                trace=trace,
            )
            work.append(made)
        with self._changed:
            self._running.update({each.id: each for each in work})
        return work

    def call(self, work: Sequence[Work]) -> None:
        """Hand runs that were taken to their runners."""
        for each in work:
            try:
                self._runners.submit(each)
            except Exception as error:
                self._done(failed(each, error, self._clock.now()))

    def cancel(self, member: Member) -> None:
        """Ask the runs to end for which an operator or a next run requested it."""
        runs = manual_runs.requested(member)
        with self._changed:
            found = [self._running[run] for run in runs if run in self._running]
        for work in found:
            work.ending.ask("cancelled")

    def _admit(self, member: Member, lapses: int, run: int) -> bool:
        """Return whether a run may be called; forget it if another instance took it over."""
        if self._fence.admits(member, run, lapses):
            return True
        refresh()
        self._forget(run)
        return False

    def _forget(self, run: int) -> None:
        with self._changed:
            self._running.pop(run, None)
        self._ended()

    def _done(self, result: Result) -> None:
        with self._changed:
            if self._running.pop(result.run, None) is not None:
                self._waiting.append(result)
            self._changed.notify_all()
        self._ended()

    # --- recording ---

    def record(
        self, member: Member, now: datetime, *, is_due: bool = False, most: int = BATCH
    ) -> bool:
        """Write one batch of results, oldest first.

        Returns:
            whether there was anything to write.

        Raises:
            django.db.Error: the results are kept.
        """
        if is_due:
            self.gather(GATHERING)
        told: list[Event] = []
        with self._recording:
            waiting = self.waiting
            if batch := waiting[:most]:
                recorded = results.record(member, batch, now)
                self.recorded(batch, recorded.held)
                told = recorded.events
            self.is_behind = len(waiting) > len(batch)
        # Outside of the lock: a receiver may initialize, which records results too.
        publish(told)
        return bool(batch)

    def record_all(self, member: Member, now: datetime) -> None:
        """Write every waiting result; results for locked rows stay waiting.

        Raises:
            django.db.Error: the results are kept.
        """
        left = len(self.waiting)
        while left > 0:
            self.record(member, now, most=min(left, BATCH))
            left -= BATCH
        self.is_behind = False

    def gather(self, seconds: float) -> None:
        """Wait for the results of ended callbacks."""
        with self._changed:
            over = [run for run, work in self._running.items() if work.ending.is_over]
            self._changed.wait_for(lambda: self._running.keys().isdisjoint(over), seconds)

    def recorded(self, batch: list[Result], held: list[Result]) -> None:
        """Drop the oldest results; results for locked rows wait again."""
        with self._changed:
            del self._waiting[: len(batch)]
            self._waiting += held
