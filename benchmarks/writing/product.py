"""The product: among its tasks are coroutines that end around the minute that is looked at."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun

from ..harness.parts import Sample
from ..lateness import product
from ..lateness.product import note
from ..lateness.waiting import AHEAD, minutes

ENDING = 1000
"""How many runs of the minute before end around the minute."""

BEGIN = 30
"""The second of each minute at which they begin."""

AROUND = 0.25
"""Seconds within which they end: as many before the minute as after it."""


class Case(product.Case):
    """What lateness asks; the others are due half a minute before each minute."""

    instants = minutes(3)

    def prepare(self, size: int) -> None:
        """Take the number of tasks; there are at least a few besides those that are due.

        Args:
            size: that number.
        """
        super().prepare(size)
        self._ending = min(ENDING, size - self.due - 1)

    def begin(self) -> None:
        """Initialise so long before a minute that the coroutines begin in time."""
        ahead = AHEAD + len(self.names) / 4000 + 60 - BEGIN
        self._minute = ((time.time() + ahead) // 60 + 1) * 60
        delay = timedelta(minutes=5)
        first, last = self.due, self.due + self._ending
        tasks = [
            {
                "name": name,
                "cron": f"{BEGIN} * * * * *",
                "callback": ends_around_the_next_minute,
                "retry_delay": delay,
            }
            if first <= n < last
            else (name, self.cron(n), note, delay)
            for n, name in enumerate(self.names)
        ]
        self._scheduler = Scheduler()
        self._scheduler.initialize(tasks)

    def measure(self) -> Iterator[Sample]:
        """Wait for some minutes, and count the results that were written around them."""
        self.begin()
        minutes = [self._minute + 60 * n for n in range(self.instants)]
        late = [each for minute in minutes for each in self.at(minute)]
        written = sum(map(self._written, minutes))
        self.end()
        yield from self.samples(late, self.due * self.instants)
        yield Sample("results written", written, written, self._ending * self.instants)

    def _written(self, minute: float) -> int:
        around = [datetime.fromtimestamp(minute + side * AROUND, UTC) for side in (-1, 1)]
        ended = TaskRun.objects.filter(outcome="succeeded", finished_at__range=around)
        ending = self.names[self.due : self.due + self._ending]
        return ended.filter(task_name__in=ending).count()


async def ends_around_the_next_minute() -> None:
    """End a moment before or after the next minute."""
    now = time.time()
    moment = (now // 60 + 1) * 60 + random.uniform(-AROUND, AROUND) / 2
    await asyncio.sleep(moment - now)
