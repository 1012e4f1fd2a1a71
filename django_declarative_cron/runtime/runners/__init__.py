"""Where callbacks run: one life of a run, whoever calls it.

A run is claimed (``store.claims``), submitted to a runner, admitted right before its call,
called, and its result handed back through ``work.done``, exactly once. Meanwhile it may be
asked to end (``Work.ending``): by its time limit, by a person, by its task's next run. The
runner decides how: a thread is told, a coroutine is cancelled, a process is ended.
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
        runner: its name, as declarations use it.
        size: how many runs it calls at the same time; 0 where nothing limits them.
        busy: how many it calls now.
        queued: how many wait for their turn.
        stuck: how many were asked to end, did not, and are not counted any more.
        oldest_wait: seconds that the first of those in the queue has waited.
    """

    runner: str
    size: int
    busy: int
    queued: int
    stuck: int = 0
    oldest_wait: float = 0.0


class Runner(Protocol):
    """Take claimed runs and call ``done`` once for each."""

    def prepare(self, declarations: Sequence[Declaration]) -> None:
        """Get ready for the runs of a registration set; never block."""

    def submit(self, work: Work) -> None:
        """Call a callback soon; never block, never lose a run."""

    def look(self) -> None:
        """Do what is to be done now and then: tell of late starts, replace what is stuck."""

    @property
    def load(self) -> Load:
        """Return how busy it is."""

    def close(self) -> None:
        """Give back what it holds, once every run has ended."""
