"""django-q2: rows made by whoever deploys; ``update_or_create`` by name, as projects do it."""

from __future__ import annotations

from django_q.models import Schedule

from ..harness.project import counting
from ..harness.rows import empty, versions
from .deploying import Deploying


class Case(Deploying):
    """Bring each schedule up to date by its name."""

    def clear(self) -> None:
        """Let nothing be declared."""
        empty(Schedule)

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Write every schedule.

        Args:
            names: of the schedules.
            crons: when.
        """
        with counting() as count:
            for name, cron in zip(names, crons, strict=True):
                Schedule.objects.update_or_create(
                    name=name,
                    defaults={
                        "func": "benchmarks.harness.jobs.nothing",
                        "schedule_type": Schedule.CRON,
                        "cron": cron,
                    },
                )
        return count.statements

    def rows(self) -> dict[object, object]:
        """Give the schedules."""
        return versions(Schedule)
