"""django-celery-beat: its own pages of periodic tasks; it keeps no runs."""

from __future__ import annotations

from django.urls import reverse
from django_celery_beat.models import CrontabSchedule, PeriodicTask, PeriodicTasks

from ..harness.rows import empty
from . import filling
from .fetching import ONE_HUNDRED, Pages


class Case(Pages):
    """The pages of django-celery-beat."""

    def fill(self, size: int) -> None:
        """Store periodic tasks.

        Args:
            size: how many.
        """
        empty(PeriodicTask, CrontabSchedule, PeriodicTasks)
        known: dict[tuple[str, str], CrontabSchedule] = {}
        made = []
        for name, cron, zone in filling.tasks(size):
            if (cron, zone) not in known:
                known[cron, zone] = _crontab(cron, zone)
            made.append(PeriodicTask(name=name, task="nothing", crontab=known[cron, zone]))
        PeriodicTask.objects.bulk_create(made)

    def pages(self) -> dict[str, str]:
        """Give its pages."""
        tasks = reverse("admin:django_celery_beat_periodictask_changelist")
        number, one = PeriodicTask.objects.count(), PeriodicTask.objects.order_by("pk")[0]
        return {
            "tasks": tasks,
            "tasks, last page": f"{tasks}?p={(number - 1) // ONE_HUNDRED + 1}",
            "tasks, search": f"{tasks}?q=task-009",
            "one task": reverse("admin:django_celery_beat_periodictask_change", args=[one.pk]),
        }


def _crontab(cron: str, zone: str) -> CrontabSchedule:
    minute, hour, day, month, weekday = cron.split()
    made: CrontabSchedule = CrontabSchedule.objects.create(
        minute=minute,
        hour=hour,
        day_of_month=day,
        month_of_year=month,
        day_of_week=weekday,
        timezone=zone,
    )
    return made
