"""django-periodic-tasks: a registry in code, and a row for each schedule."""

from __future__ import annotations

from django_periodic_tasks.models import ScheduledTask
from django_periodic_tasks.registry import ScheduleRegistry
from django_periodic_tasks.sync import sync_code_schedules

from ..harness.jobs.tasks import nothing
from ..harness.project import counting
from ..harness.rows import empty, versions
from .deploying import Deploying


class Case(Deploying):
    """Do what its scheduler does before its loop."""

    def clear(self) -> None:
        """Let nothing be declared."""
        empty(ScheduledTask)

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Register the schedules, and bring their rows up to date.

        Args:
            names: of the schedules.
            crons: when.
        """
        with counting() as count:
            registry = ScheduleRegistry()
            for name, cron in zip(names, crons, strict=True):
                registry.register(nothing, cron=cron, name=name)
            sync_code_schedules(registry)
        return count.statements

    def rows(self) -> dict[object, object]:
        """Give the schedules."""
        return versions(ScheduledTask)
