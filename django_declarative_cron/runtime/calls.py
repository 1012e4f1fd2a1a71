"""The runs of one instance that are under way: called, ended, waiting to be recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ..core.declaration import Target
from ..store.claims import Claim
from ..store.results import Result
from .clock import Clock
from .connections import refresh
from .executors import Executor
from .work import Run, Work, failed, is_async


class Calls:
    """Keep the book of runs, and hand them to their executors; none is ever dropped.

    Args:
        clock: dates the end of a run that could not be called.
        threads: executor of synchronous callbacks.
        coroutines: executor of asynchronous ones.
        owner: on whose behalf it calls.
        ended: called at each end.
        may_call: tells, in any thread, whether a run is still to be called.
    """

    def __init__(
        self,
        clock: Clock,
        threads: Executor,
        coroutines: Executor,
        owner: object,
        ended: Callable[[], None],
        may_call: Callable[[int], bool],
    ) -> None:
        self._clock = clock
        self._threads = threads
        self._coroutines = coroutines
        self._owner = owner
        self._ended = ended
        self._may_call = may_call
        self._running: dict[int, Claim] = {}
        self._waiting: list[Result] = []
        self._book = threading.Lock()

    @property
    def running(self) -> int:
        """Count the runs whose callback has not ended."""
        with self._book:
            return len(self._running)

    @property
    def unfinished(self) -> int:
        """Count the runs that have not ended and the results not yet recorded."""
        with self._book:
            return len(self._running) + len(self._waiting)

    @property
    def waiting(self) -> list[Result]:
        """Give the results that are not yet recorded, oldest first."""
        with self._book:
            return list(self._waiting)

    @property
    def known(self) -> set[int]:
        """Give the ids of all runs that are not recorded yet."""
        with self._book:
            return {*self._running, *(result.run for result in self._waiting)}

    def recorded(self, results: list[Result], held: list[Result]) -> None:
        """Forget results, the oldest of those waiting.

        Args:
            results: they are written.
            held: those among them that are not, and go on waiting.
        """
        with self._book:
            self._waiting[: len(results)] = held

    def take(
        self,
        claims: Iterable[Claim],
        stopping: threading.Event,
    ) -> list[Work]:
        """Make every committed claim a run of this instance, which a stop waits for.

        Args:
            claims: what was committed.
            stopping: tells the callbacks of a stop.
        """
        work = []
        for claim in claims:
            run = Run.of(claim.started, claim.declaration, stopping)
            work.append(self._work(claim.run, run, claim.declaration.target))
        with self._book:
            self._running.update({claim.run: claim for claim in claims})
        return work

    def call(self, work: Iterable[Work]) -> None:
        """Hand runs to their executors.

        Args:
            work: runs that were taken.
        """
        for each in work:
            try:
                if not is_async(each.target.function):
                    self._threads.submit(each)
                elif each.admit(each.id):
                    self._coroutines.submit(each)
            except Exception as error:
                self._done(failed(each, error, self._clock.now(), 0.0))

    def _work(self, row: int, run: Run, target: Target) -> Work:
        return Work(row, run, target, self._done, self._owner, self._admit)

    def _admit(self, run: int) -> bool:
        """Let a run be called, or forget it: somebody took it over before its turn came."""
        if self._may_call(run):
            return True
        refresh()
        with self._book:
            self._running.pop(run, None)
        self._ended()
        return False

    def close(self) -> None:
        """Give back what the executors hold."""
        for executor in (self._threads, self._coroutines):
            executor.close()

    def _done(self, result: Result) -> None:
        with self._book:
            if self._running.pop(result.run, None) is not None:
                self._waiting.append(result)
        self._ended()
