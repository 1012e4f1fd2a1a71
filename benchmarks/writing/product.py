"""The product: among its tasks are coroutines that end around the minute that is looked at."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun

from ..harness.parts import Sample
from ..lateness import product
from ..lateness.product import note
from ..lateness.waiting import AHEAD

ENDING = 1000
"""How many runs of the minute before end around the minute."""

AROUND = 0.25
"""Seconds within which they end: as many before the minute as after it."""


class Case(product.Case):
    """What lateness asks; the others are due in the present minute, and not in the one after."""

    instants = 1

    def prepare(self, size: int) -> None:
        """Take the number of tasks; there are at least a few besides those that are due.

        Args:
            size: that number.
        """
        super().prepare(size)
        self._ending = min(ENDING, size - self.due - 1)

    def begin(self) -> None:
        """Initialise in a minute that lasts long enough: the coroutines begin at once."""
        self._minute = ((time.time() + AHEAD + len(self.names) / 4000) // 60 + 1) * 60
        present = int(self._minute // 60 - 1) % 60
        delay = timedelta(minutes=5)
        ending, last = ends_around(self._minute), self.due + self._ending
        tasks = [
            (name, self.cron(n), note, delay)
            if not self.due <= n < last
            else (name, f"{present} * * * *", ending, delay)
            for n, name in enumerate(self.names)
        ]
        self._scheduler = Scheduler()
        self._scheduler.initialize(tasks)

    def measure(self) -> Iterator[Sample]:
        """Wait for the minute, and count the results that were written around it."""
        self.begin()
        late = self.at(self._minute)
        first = datetime.fromtimestamp(self._minute - AROUND, UTC)
        ending = self.names[self.due : self.due + self._ending]
        ended = TaskRun.objects.filter(task_name__in=ending, outcome="succeeded")
        written = ended.filter(finished_at__gte=first).count()
        self.end()
        yield from self.samples(late, self.due)
        yield Sample("results written", written, written, self._ending)


def ends_around(minute: float) -> Callable[[], Coroutine[None, None, None]]:
    """Give a callback that ends a moment before or after a minute.

    Args:
        minute: in seconds of the epoch.
    """

    async def ends() -> None:
        moment = minute + random.uniform(-AROUND, AROUND) / 2
        await asyncio.sleep(max(0.0, moment - time.time()))

    return ends
