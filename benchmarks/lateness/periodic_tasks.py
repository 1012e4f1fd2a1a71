"""django-periodic-tasks: its scheduler, which looks every fifteen seconds."""

from __future__ import annotations

from datetime import UTC, datetime

from django_periodic_tasks.models import ScheduledTask
from django_periodic_tasks.scheduler import PeriodicTaskScheduler
from django_tasks_db.models import DBTaskResult

from ..harness.jobs.tasks import nothing
from .waiting import Waiting


class Case(Waiting):
    """What is told is when a run was handed over: what a worker needs comes on top of it."""

    def prepare(self, size: int) -> None:
        """Make the schedules.

        Args:
            size: how many.
        """
        super().prepare(size)
        for position, name in enumerate(self.names):
            ScheduledTask.objects.create(
                name=name, task_path=nothing.module_path, cron_expression=self.cron(position)
            )

    def begin(self) -> None:
        """Start its thread."""
        self._scheduler = PeriodicTaskScheduler()
        self._scheduler.start()

    def called(self, since: float) -> list[float]:
        """Give when runs were handed over.

        Args:
            since: the minute.
        """
        found = DBTaskResult.objects.filter(enqueued_at__gte=datetime.fromtimestamp(since, UTC))
        return [each.timestamp() for each in found.values_list("enqueued_at", flat=True)]

    def end(self) -> None:
        """End it."""
        self._scheduler.stop()
        self._scheduler.join()
