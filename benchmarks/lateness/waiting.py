"""What everybody is asked in this part: to call ten tasks of very many at the next minute."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from statistics import median

from ..harness.declared import names
from ..harness.parts import Sample
from . import DUE

AHEAD = 2.0
"""Seconds that everybody has at least, between being begun and the minute."""


class Waiting(ABC):
    """A contender of this part."""

    patience = 20.0

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
        return "* * * * *" if position < DUE else "0 0 29 2 *"

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
        """Wait for one minute."""
        self.begin()
        minute = ((time.time() + AHEAD) // 60 + 1) * 60
        self.wait_until(minute)
        deadline = minute + self.patience
        time.sleep(1)
        while len(self.called(minute)) < DUE and time.time() < deadline:
            time.sleep(0.2)
        late = [(each - minute) * 1000 for each in self.called(minute)][:DUE]
        self.end()
        if late:
            yield Sample("median", median(late), len(late), DUE)
            yield Sample("worst", max(late))
        else:
            yield Sample("median", self.patience * 1000, 0, DUE)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""
