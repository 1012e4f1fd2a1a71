"""django-periodic-tasks: one tick of its scheduler, which hands runs to django-tasks-db."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django_periodic_tasks.models import ScheduledTask
from django_periodic_tasks.scheduler import PeriodicTaskScheduler
from django_tasks_db.models import DBTaskResult

from ..harness.declared import names
from ..harness.jobs.tasks import nothing
from ..harness.project import counting
from .passing import Passing


class Case(Passing):
    """Its results are recorded by other processes, which are not there."""

    size = 0

    def prepare(self, size: int) -> None:
        """Make the schedules.

        Args:
            size: how many.
        """
        self.size, self._scheduler = size, PeriodicTaskScheduler()
        later = timezone.now() + timedelta(days=1)
        ScheduledTask.objects.bulk_create(
            ScheduledTask(
                name=name,
                task_path=nothing.module_path,
                cron_expression="0 4 * * *",
                next_run_at=later,
            )
            for name in names(size)
        )

    def idle(self) -> int:
        """Tick."""
        with counting() as count:
            self._scheduler.tick()
        return count.statements

    def make_due(self, number: int) -> None:
        """Let some be due.

        Args:
            number: how many.
        """
        before = timezone.now() - timedelta(seconds=1)
        ScheduledTask.objects.filter(name__in=names(number)).update(next_run_at=before)

    def start(self) -> int:
        """Tick."""
        return self.idle()

    def right(self) -> int:
        """Count what was handed over."""
        return int(DBTaskResult.objects.all().delete()[0])
