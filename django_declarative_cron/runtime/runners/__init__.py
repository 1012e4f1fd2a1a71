"""Runners: they call the callbacks of claimed runs.

A run is claimed (``store.claims``), submitted to a runner, admitted right before its call,
called, and its result passed to ``work.done``, exactly once. Meanwhile its end may be requested
(``Work.ending``): by its time limit, by an operator, by the next run of its task. Then a thread
is notified, a coroutine is cancelled, and a process is ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ...core.declarations.declaration import Declaration
from ..work import Work


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a runner is.

    Args:
        runner: its name, as in declarations.
        size: the most runs at the same time; 0 without a limit.
        busy: runs in progress.
        queued: runs that wait.
        stuck: runs that were asked to end and did not; they count neither as busy.
        oldest_wait: seconds that the oldest run in the queue has waited.
    """

    runner: str
    size: int
    busy: int
    queued: int
    stuck: int = 0
    oldest_wait: float = 0.0


class Runner(Protocol):
    """Call claimed runs, and ``done`` once for each."""

    def prepare(self, declarations: Sequence[Declaration]) -> None:
        """Get ready for the runs of a registration set; never block."""

    def submit(self, work: Work) -> None:
        """Call a callback soon; never block."""

    def look(self) -> None:
        """Log late starts and replace stuck threads; called in each pass."""

    @property
    def load(self) -> Load:
        """Return how busy it is."""

    def close(self) -> None:
        """Release threads and processes, once every run has ended."""
