"""django-periodic-tasks: its scheduler, which looks every fifteen seconds."""

from __future__ import annotations

from django.db import connection
from django_periodic_tasks.models import ScheduledTask
from django_periodic_tasks.registry import schedule_registry
from django_periodic_tasks.scheduler import PeriodicTaskScheduler

from ..harness.jobs.tasks import nothing
from .idling import NEVER, Idling


class Case(Idling):
    """Its registry holds every schedule."""

    wait = 30.0

    def fill(self) -> None:
        """Make the schedules."""
        ScheduledTask.objects.bulk_create(
            ScheduledTask(name=name, task_path=nothing.module_path, cron_expression=NEVER)
            for name in self.names
        )
        connection.close()

    def begin(self) -> None:
        """Register the schedules, and start its thread."""
        for name in self.names:
            schedule_registry.register(nothing, cron=NEVER, name=name)
        self._scheduler = PeriodicTaskScheduler()
        self._scheduler.start()

    def end(self) -> None:
        """End it."""
        self._scheduler.stop()
        self._scheduler.join()
