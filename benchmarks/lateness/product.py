"""The product: one scheduler with default options."""

from __future__ import annotations

import time
from datetime import timedelta

from django_declarative_cron import Scheduler

from .waiting import Waiting, minutes

_CALLS: list[float] = []


class Case(Waiting):
    """What is told is when the callback itself runs: the start is committed by then."""

    instants = minutes(2)

    def begin(self) -> None:
        """Initialise."""
        delay = timedelta(minutes=5)
        self._scheduler = Scheduler()
        self._scheduler.initialize(
            [(name, self.cron(n), note, delay) for n, name in enumerate(self.names)]
        )

    def called(self, since: float) -> list[float]:
        """Give the calls.

        Args:
            since: the minute.
        """
        return [each for each in _CALLS if each >= since]

    def end(self) -> None:
        """Stop."""
        self._scheduler.stop()
        _CALLS.clear()


def note() -> None:
    """Note the time."""
    _CALLS.append(time.time())
