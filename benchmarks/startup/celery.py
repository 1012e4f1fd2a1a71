"""celery-beat with the database scheduler of django-celery-beat, and ``beat_schedule``."""

from __future__ import annotations

from celery import Celery
from celery.schedules import crontab
from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks
from django_celery_beat.schedulers import DatabaseScheduler

from ..harness.project import counting
from ..harness.rows import empty, versions
from .deploying import Deploying


class Case(Deploying):
    """Do what beat does before its loop."""

    def clear(self) -> None:
        """Let nothing be declared."""
        empty(PeriodicTask, CrontabSchedule, PeriodicTasks)

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Make the scheduler, and let it read its schedule.

        Args:
            names: of the tasks.
            crons: when.
        """
        with counting() as count:
            app = Celery("bench", broker="memory://", set_as_current=True)
            app.conf.timezone = "UTC"
            app.conf.beat_schedule = {
                name: {"task": "nothing", "schedule": crontab.from_string(cron)}
                for name, cron in zip(names, crons, strict=True)
            }
            scheduler = DatabaseScheduler(app=app)
            assert scheduler.schedule is not None
        return count.statements

    def rows(self) -> dict[object, object]:
        """Give the tasks that were declared, without the one that it declares itself."""
        own = PeriodicTask.objects.get(name="celery.backend_cleanup").pk
        return {key: row for key, row in versions(PeriodicTask).items() if key != own}
