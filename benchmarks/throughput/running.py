"""What everybody is asked in this part."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from ..harness.parts import Sample

PATIENCE = 300.0
"""Seconds after which the runs that were not recorded count as wrong."""


class Running(ABC):
    """A contender of this part: so many runs wait, and are called and recorded."""

    def prepare(self, size: int) -> None:
        """Take the number of runs.

        Args:
            size: that number.
        """
        self.size = size

    @abstractmethod
    def queue(self) -> None:
        """Let so many runs wait; not measured."""

    @abstractmethod
    def run(self) -> float:
        """Run them all; give the seconds from the first call to the last record."""

    @abstractmethod
    def recorded(self) -> int:
        """Count the runs recorded as succeeded since ``queue``."""

    def measure(self) -> Iterator[Sample]:
        """Run them all once more."""
        self.queue()
        seconds = self.run()
        right = self.recorded()
        yield Sample("recorded runs", right / seconds, right, self.size)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""


def until(is_over: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait, and look twenty times a second: who looks more often slows down what it measures.

    Args:
        is_over: tells whether the wait is over.
        patience: the longest wait in seconds.
    """
    deadline = time.monotonic() + patience
    while not is_over() and time.monotonic() < deadline:
        time.sleep(0.05)
