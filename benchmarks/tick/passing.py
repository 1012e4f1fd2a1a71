"""What everybody is asked in this part.

``start`` is a pass that finds tasks due; ``record`` is what it takes until their results are
written, where a contender writes any in the same process.
"""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from statistics import median

from ..harness.parts import Sample
from . import DUE

IDLE_PASSES = 60
IDLE_SECONDS = 2.0
WARM = 10
"""Idle passes that are not counted: plans, caches and connections are there afterwards."""
PAUSE = 0.01
"""Seconds between two idle passes: a loop sleeps, and its caches grow cold meanwhile."""


class Passing(ABC):
    """A contender of this part."""

    most_due = 1000
    records = False

    @abstractmethod
    def prepare(self, size: int) -> None:
        """Have so many tasks, of which none is due.

        Args:
            size: how many.
        """

    def make_idle(self) -> None:  # noqa: B027 - few have to
        """Get ready for a pass that finds nothing; not measured."""

    @abstractmethod
    def idle(self) -> int | None:
        """Do a pass that finds nothing; give the number of statements, where it is counted."""

    @abstractmethod
    def make_due(self, number: int) -> None:
        """Let so many tasks be due; not measured.

        Args:
            number: how many.
        """

    @abstractmethod
    def start(self) -> int | None:
        """Do the pass that starts what is due; give the number of statements."""

    def end_runs(self) -> None:  # noqa: B027 - of those who record results only
        """Let what was started end; not measured."""

    def record(self) -> int | None:
        """Write the results."""
        raise NotImplementedError

    @abstractmethod
    def right(self) -> int:
        """Count what was started, and recorded where it records; then forget of it."""

    def measure(self) -> Iterator[Sample]:
        """Do a pass for each number of due tasks, and many for none."""
        self.make_idle()
        yield idle_passes(self.idle)
        for number in DUE:
            if number <= min(self.size, self.most_due):
                yield from self._pass(number)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Give the number of tasks."""

    def _pass(self, number: int) -> Iterator[Sample]:
        self.make_due(number)
        figure = f"{number:,} due"
        took, statements = _timed(self.start)
        if not self.records:
            yield Sample(figure, took, self.right(), number, statements)
            return
        yield Sample(figure, took, statements=statements)
        self.end_runs()
        wrote, more = _timed(self.record)
        yield Sample(f"{figure}, recorded", wrote, statements=more)
        both = None if statements is None or more is None else statements + more
        yield Sample(f"{figure}, in all", took + wrote, self.right(), number, both)


def idle_passes(idle: Callable[[], int | None]) -> Sample:
    """Pass as a loop does, which sleeps in between; slow ones pass less often.

    Args:
        idle: does a pass that finds nothing, and gives the number of statements.
    """
    end, took, statements = time.monotonic() + IDLE_SECONDS, list[float](), None
    gc.collect()
    while len(took) < IDLE_PASSES and time.monotonic() < end:
        time.sleep(PAUSE)
        began = time.perf_counter()
        statements = idle()
        took.append((time.perf_counter() - began) * 1000)
    return Sample("idle", median(took[min(WARM, len(took) // 2) :]), statements=statements)


def _timed(work: Callable[[], int | None]) -> tuple[float, int | None]:
    gc.collect()
    began = time.perf_counter()
    statements = work()
    return (time.perf_counter() - began) * 1000, statements
