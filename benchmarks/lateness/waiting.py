"""What everybody is asked in this part: to call ten tasks of very many at the next minute."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from statistics import median

from ..harness.declared import names
from ..harness.parts import Sample
from . import DUE

AHEAD = 2.0
"""Seconds that everybody has at least, between being begun and the minute."""

MINUTES = "BENCHMARK_MINUTES"
"""Names the variable that holds for how many minutes in a row the product is to be looked at."""


def minutes(usual: int) -> int:
    """Give how many minutes in a row are looked at.

    Args:
        usual: unless somebody has asked for another number.
    """
    return int(os.environ.get(MINUTES, usual))


class Waiting(ABC):
    """A contender of this part."""

    patience = 20.0
    instants = 1
    due = DUE

    def prepare(self, size: int) -> None:
        """Take the names of the tasks.

        Args:
            size: how many.
        """
        self.names = names(size)

    def cron(self, position: int) -> str:
        """Give the schedule of a task: every minute for the first few, never for the others.

        Args:
            position: of the task.
        """
        return "* * * * *" if position < self.due else "0 0 29 2 *"

    @abstractmethod
    def begin(self) -> None:
        """Wait for what is due, in threads or processes."""

    @abstractmethod
    def called(self, since: float) -> list[float]:
        """Give when tasks were called, in seconds of the epoch.

        Args:
            since: the minute; what was called before is not looked for.
        """

    @abstractmethod
    def end(self) -> None:
        """Wait no more."""

    def wait_until(self, minute: float) -> None:
        """Do nothing until the minute.

        Args:
            minute: in seconds of the epoch.
        """
        time.sleep(max(0.0, minute - time.time()))

    def measure(self) -> Iterator[Sample]:
        """Wait for a minute, or for some in a row."""
        self.begin()
        minute = ((time.time() + AHEAD) // 60 + 1) * 60
        late = [each for n in range(self.instants) for each in self.at(minute + 60 * n)]
        self.end()
        yield from self.samples(late, self.due * self.instants)

    def at(self, minute: float) -> list[float]:
        """Wait for a minute; give how late each call was, in milliseconds.

        Args:
            minute: in seconds of the epoch.
        """
        self.wait_until(minute)
        deadline = minute + self.patience
        time.sleep(1)
        while len(self.called(minute)) < self.due and time.time() < deadline:
            time.sleep(0.2)
        return [(each - minute) * 1000 for each in self.called(minute)][: self.due]

    def samples(self, late: list[float], of: int) -> Iterator[Sample]:
        """Say how late calls were.

        Args:
            late: how late each was, in milliseconds.
            of: how many there should have been.
        """
        if late:
            yield Sample("median", median(late), len(late), of)
            yield Sample("worst", max(late))
        else:
            yield Sample("median", self.patience * 1000, 0, of)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""
