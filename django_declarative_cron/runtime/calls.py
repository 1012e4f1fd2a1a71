"""The runs of one instance that are under way: called, ended, waiting to be recorded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ..store import manual_runs
from ..store.active_runs import Claim
from ..store.guard import Member
from ..store.results import Result
from .clock import Clock
from .connections import refresh
from .fencing import Admission
from .outcome import Ending, failed
from .runners.registry import Runners
from .tracing import carrier
from .work import Run, Work


class Calls:
    """Keep the book of runs, and hand them to their runners; none is ever dropped.

    Args:
        clock: dates the end of a run that could not be called.
        runners: call them.
        owner: on whose behalf it calls.
        ended: called at each end.
        admission: tells, in any thread, whether a run is still to be called.
    """

    def __init__(
        self,
        clock: Clock,
        runners: Runners,
        owner: object,
        ended: Callable[[], None],
        admission: Admission,
    ) -> None:
        self._clock = clock
        self._runners = runners
        self._owner = owner
        self._ended = ended
        self._admission = admission
        self._running: dict[int, Work] = {}
        self._waiting: list[Result] = []
        self._book = threading.Condition()

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
        """Return the results that are not yet recorded, oldest first."""
        with self._book:
            return list(self._waiting)

    @property
    def known(self) -> set[int]:
        """Return the ids of all runs that are not recorded yet."""
        with self._book:
            return {*self._running, *(result.run for result in self._waiting)}

    def gather(self, seconds: float) -> None:
        """Wait for the results of those whose callbacks have ended already."""
        with self._book:
            over = [run for run, work in self._running.items() if work.ending.is_over]
            self._book.wait_for(lambda: self._running.keys().isdisjoint(over), seconds)

    def recorded(self, results: list[Result], held: list[Result]) -> None:
        """Forget results, the oldest of those waiting."""
        with self._book:
            del self._waiting[: len(results)]
            self._waiting += held

    def take(
        self,
        claims: Sequence[Claim],
        stopping: threading.Event,
    ) -> list[Work]:
        """Make every committed claim a run of this instance, which a stop waits for."""
        work = self._made(claims, stopping)
        with self._book:
            self._running.update({each.id: each for each in work})
        return work

    def call(self, work: Sequence[Work]) -> None:
        """Hand runs that were taken to their runners."""
        for each in work:
            try:
                self._runners.submit(each)
            except Exception as error:
                self._done(failed(each, error, self._clock.now(), 0.0))

    def cancel(self, member: Member) -> None:
        """Ask those runs to end that somebody has asked to end."""
        runs = manual_runs.requested(member)
        with self._book:
            found = [self._running[run] for run in runs if run in self._running]
        for work in found:
            work.ending.ask("cancelled")

    def _made(self, claims: Iterable[Claim], stopping: threading.Event) -> list[Work]:
        # All of them were started in one span, which is asked for once.
        trace, admit = carrier(), partial(self._admit, self._admission.lapses)
        return [self._work(claim, stopping, trace, admit) for claim in claims]

    def _work(
        self,
        claim: Claim,
        stopping: threading.Event,
        trace: Mapping[str, str],
        admit: Callable[[int], bool],
    ) -> Work:
        declaration = claim.declaration
        ending = Ending()
        run = Run.of(claim.started, declaration, stopping, ending.asked, claim.run)
        return Work(
            id=claim.run,
            run=run,
            target=declaration.target,
            done=self._done,
            owner=self._owner,
            admit=admit,
            forget=self._forget,
            declaration=declaration,
            ending=ending,
            member=self._admission.member() if declaration.atomic else None,
            trace=trace,
        )

    def _admit(self, lapses: int, run: int) -> bool:
        """Let a run be called, or forget it: somebody took it over before its turn came."""
        if self._admission.admits(run, lapses):
            return True
        refresh()
        self._forget(run)
        return False

    def _forget(self, run: int) -> None:
        with self._book:
            self._running.pop(run, None)
        self._ended()

    def _done(self, result: Result) -> None:
        with self._book:
            if self._running.pop(result.run, None) is not None:
                self._waiting.append(result)
            self._book.notify_all()
        self._ended()
