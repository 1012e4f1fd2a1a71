"""The product: one scheduler with default options runs all of its tasks, again and again."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from django.db.models import Max

from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from ..harness.declared import names
from ..harness.parts import Sample
from ..memory.idling import resident
from ..throughput import product
from ..throughput.running import until

TASKS = 2000


class Case(product.Case):
    """The first two turns are not counted: what is made once is there afterwards."""

    def prepare(self, size: int) -> None:
        """Take the number of runs.

        Args:
            size: that number; whole turns are made of it.
        """
        self._turns = max(1, size // TASKS)
        super().prepare(min(size, TASKS))

    def measure(self) -> Iterator[Sample]:
        """Run everything as often as it takes."""
        self.queue()
        for _ in range(2):
            self._turn()
        before, began = _settled(), time.perf_counter()
        right = sum(self._turn() for _ in range(self._turns))
        seconds = time.perf_counter() - began
        runs = self._turns * self.size
        yield Sample("growth", _settled() - before, right, runs)
        yield Sample("recorded runs", right / seconds, right, runs)
        self._scheduler.stop()

    def _turn(self) -> int:
        """Run each task once; give how many runs were recorded."""
        # Only those of this turn are counted: to count all again and again takes long.
        self._newest = TaskRun.objects.aggregate(newest=Max("pk"))["newest"] or 0
        operator_actions.request_run(names(self.size), Act("benchmark", datetime.now(UTC)))
        self._scheduler._engine.woken.set()
        until(lambda: self.recorded() >= self.size)
        return self.recorded()


def _settled() -> float:
    gc.collect()
    return resident()
