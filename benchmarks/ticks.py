"""What one pass of the scheduler costs: statements, and milliseconds of this process and in all.

``DDC_TEST_DATABASE=postgres python -m benchmarks.ticks`` makes a database of its own, and lets
0, 1 and 1000 tasks be due at once among as many as there are, in turns. A pass that finds
tasks due starts them; the pass after it records how they ended. Beside it stands what the
database needs for the least that could do the same: as many rows written in one statement.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from django_declarative_cron import Scheduler
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime.work import succeeded
from django_declarative_cron.testing.clock import ManualClock
from django_declarative_cron.testing.jobs import Queue

START = datetime(2024, 1, 1, 10, 59, 30, tzinfo=UTC)
NEVER = "0 0 29 2 *"


@dataclass
class Cost:
    """What something took, once for each round."""

    statements: list[int] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)

    def measure(self, work: Callable[[], object]) -> None:
        """Do it once more.

        Args:
            work: what is measured.
        """
        count = 0

        def counted(execute: Callable[..., Any], *rest: Any) -> Any:
            nonlocal count
            count += 1
            return execute(*rest)

        with connection.execute_wrapper(counted):
            busy, began = time.thread_time(), time.perf_counter()
            work()
            self.took.append((time.perf_counter() - began) * 1000)
            self.busy.append((time.thread_time() - busy) * 1000)
        self.statements.append(count)

    def line(self, name: str) -> str:
        """Say it in one line.

        Args:
            name: what it is.
        """
        return (
            f"  {name:34}{median(self.statements):4.0f} statements"
            f"{median(self.busy):9.1f} ms busy{median(self.took):9.1f} ms in all"
        )


def nothing() -> None:
    """Do nothing."""


class Bench:
    """One scheduler that ticks by hand, among so many tasks that are never due by themselves.

    Args:
        tasks: number of tasks.
    """

    def __init__(self, tasks: int) -> None:
        self.clock, self.queue = ManualClock(START), Queue()
        self.scheduler = Scheduler(background=False, clock=self.clock, runner=self.queue)
        delay = timedelta(minutes=5)
        self.scheduler.initialize([(f"t{n:05}", NEVER, nothing, delay) for n in range(tasks)])
        self.scheduler.tick()

    def make_due(self, number: int) -> None:
        """Let so many tasks be due, as if their occurrence had come."""
        now = self.clock.now()
        names = [f"t{n:05}" for n in range(number)]
        due = ScheduledTask.objects.filter(name__in=names)
        due.update(wake_at=now, boot_at=now.replace(second=0, microsecond=0))

    def end_all(self) -> None:
        """Let every run that was started end well."""
        for work in self.queue.waiting:
            work.done(succeeded(work, self.clock.now(), 0.0))
        self.queue.waiting.clear()

    def pass_minute(self) -> None:
        """Let a minute pass, quietly."""
        self.clock.advance(self.clock.now() + timedelta(minutes=1))
        self.scheduler.beat()
        self.scheduler.tick()


def insert(number: int) -> None:
    """Write so many rows in one statement, as the least that anybody could do."""
    state = ScheduledTask.objects.values_list("scheduler", flat=True)[0]
    rows = [
        TaskRun(
            scheduler_id=state,
            task_name="beside",
            scheduled_for=START + timedelta(microseconds=n),
            outcome="missed",
            reason="no_scheduler",
        )
        for n in range(number)
    ]
    TaskRun.objects.bulk_create(rows)
    TaskRun.objects.filter(task_name="beside").delete()


def measure(bench: Bench, number: int, rounds: int) -> dict[str, Cost]:
    """Let so many tasks be due, again and again.

    Args:
        bench: where.
        number: of tasks.
        rounds: how often.
    """
    costs = {name: Cost() for name in ("start", "record", "insert")}
    for _ in range(rounds):
        bench.pass_minute()
        bench.make_due(number)
        bench.clock.advance(bench.clock.now() + timedelta(seconds=1))
        costs["start"].measure(bench.scheduler.tick)
        if number:
            bench.end_all()
            costs["record"].measure(bench.scheduler.tick)
            costs["insert"].measure(lambda: insert(number))
    return {name: cost for name, cost in costs.items() if cost.took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is measured")
    parser.add_argument("--tasks", type=int, default=1000, help="how many there are")
    chosen = parser.parse_args()
    old = setup_databases(verbosity=0, interactive=False)
    try:
        bench = Bench(chosen.tasks)
        print(f"{connection.vendor}, {chosen.tasks:,} tasks, median of {chosen.rounds} rounds")
        for number in (0, 1, 1000):
            for name, cost in measure(bench, number, chosen.rounds).items():
                words = {"start": "a pass with {} due", "record": "a pass with {} ended"}
                print(cost.line(words.get(name, "{} rows inserted").format(number)))
    finally:
        connection.close()
        teardown_databases(old, verbosity=0)


if __name__ == "__main__":
    main()
