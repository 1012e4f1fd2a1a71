"""The product: one scheduler with default options, as many tasks as runs, each run once."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act

from ..harness.declared import crons, names
from ..harness.jobs import nothing
from .running import Running, until


class Case(Running):
    """An operator asks for one run of every task; the clock begins once that is committed."""

    def queue(self) -> None:
        """Begin to poll."""
        self._newest = TaskRun.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        self._scheduler = Scheduler()
        delay = timedelta(minutes=5)
        self._scheduler.initialize(
            [
                (name, cron, nothing, delay)
                for name, cron in zip(names(self.size), crons(self.size), strict=True)
            ]
        )

    def run(self) -> float:
        """Ask, and wait until all is recorded."""
        operator_actions.request_run(names(self.size), Act("benchmark", datetime.now(UTC)))
        began = time.perf_counter()
        self._scheduler._engine.woken.set()
        until(lambda: self.recorded() >= self.size)
        seconds = time.perf_counter() - began
        self._scheduler.stop()
        return seconds

    def recorded(self) -> int:
        """Count the succeeded runs since."""
        return TaskRun.objects.filter(pk__gt=self._newest, outcome="succeeded").count()
