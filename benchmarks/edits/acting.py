"""What everybody is asked in this part: what lateness asks, and an edit each second before it."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from statistics import quantiles

from ..harness.parts import Sample
from ..lateness.waiting import Waiting

BEFORE = 0.05
"""Seconds between an edit and the full second: the last one comes right before the minute."""


class Acting(Waiting):
    """A contender of this part; what is edited are tasks that are never due."""

    acts = 0

    @abstractmethod
    def edit(self, name: str, *, pause: bool) -> None:
        """Pause or resume a task.

        Args:
            name: of the task.
            pause: rather than resume.
        """

    def wait_until(self, minute: float) -> None:
        """Edit each second until the minute.

        Args:
            minute: in seconds of the epoch.
        """
        second = int(time.time()) + 1
        while second <= minute:
            time.sleep(max(0.0, second - BEFORE - time.time()))
            position = self.due + second // 2 % (len(self.names) - self.due)
            self.edit(self.names[position], pause=second % 2 == 0)
            second += 1
            self.acts += 1
        super().wait_until(minute)

    def samples(self, late: list[float], of: int) -> Iterator[Sample]:
        """Say how late calls were, and how many acts there were meanwhile.

        Args:
            late: how late each was, in milliseconds.
            of: how many there should have been.
        """
        yield from super().samples(late, of)
        if len(late) >= 100:
            yield Sample("99 of 100 before", quantiles(late, n=100, method="inclusive")[-1])
        yield Sample("acts", self.acts)
        self.acts = 0
