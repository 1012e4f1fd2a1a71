"""The product: 1000 tasks, and as many old runs as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db import connection

from django_declarative_cron.models import SchedulerState, TaskRun

from ..harness.parts import Sample
from ..lateness import product

TASKS = 1000
AGE = timedelta(days=400)


class Case(product.Case):
    """What lateness asks, beside a history that is older than it is to be kept."""

    def prepare(self, size: int) -> None:
        """Register the tasks, and write their history.

        Args:
            size: number of old runs.
        """
        super().prepare(TASKS)
        self.begin()
        self.end()
        if size:
            _write_history(self.names, size)

    def measure(self) -> Iterator[Sample]:
        """Wait for one minute, and count what was forgotten in it."""
        before = TaskRun.objects.count()
        yield from super().measure()
        if before > TASKS:
            gone = before - TaskRun.objects.count()
            yield Sample("forgotten", gone / self.instants)


def _write_history(names: list[str], size: int) -> None:
    """Write a run of each task, and copies of them until there are enough."""
    at = datetime.now(UTC) - AGE
    state = SchedulerState.objects.get()
    TaskRun.objects.bulk_create(
        TaskRun(
            scheduler=state,
            task_name=name,
            scheduled_for=at,
            started_at=at,
            finished_at=at,
            outcome="failed",
            reason="due",
            attempt=1,
        )
        for name in names
    )
    fields = [each.column for each in TaskRun._meta.local_fields if not each.primary_key]
    columns = ", ".join(connection.ops.quote_name(each) for each in fields if each)
    table = connection.ops.quote_name(TaskRun._meta.db_table)
    copies = size // len(names) - 1
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table},"
            " generate_series(1, %s) WHERE finished_at < %s",
            [copies, at + timedelta(seconds=1)],
        )
        cursor.execute(f"ANALYZE {table}")
