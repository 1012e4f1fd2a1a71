"""What everybody is asked in this part: what lateness asks, and an edit each second before it."""

from __future__ import annotations

import time
from abc import abstractmethod

from ..lateness import DUE
from ..lateness.waiting import Waiting

BEFORE = 0.05
"""Seconds between an edit and the full second: the last one comes right before the minute."""


class Acting(Waiting):
    """A contender of this part; what is edited are tasks that are never due."""

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
            position = DUE + second // 2 % (len(self.names) - DUE)
            self.edit(self.names[position], pause=second % 2 == 0)
            second += 1
        super().wait_until(minute)
