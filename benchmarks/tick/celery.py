"""celery-beat: ticks of the database scheduler, with a broker in the same process' memory."""

from __future__ import annotations

from datetime import timedelta

from celery import Celery
from celery.signals import after_task_publish
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from ..harness.declared import names
from ..harness.project import counting
from .passing import Passing


class Case(Passing):
    """A tick starts one task; a pass is ticks until one finds nothing more due."""

    size = 0

    def prepare(self, size: int) -> None:
        """Make the tasks.

        Args:
            size: how many.
        """
        self.size, self._sent = size, 0
        app = Celery("bench", broker="memory://")
        app.conf.timezone = "UTC"
        schedule = CrontabSchedule.objects.create(minute="*", hour="*")
        PeriodicTask.objects.bulk_create(
            PeriodicTask(name=name, task="nothing", crontab=schedule, last_run_at=timezone.now())
            for name in names(size)
        )
        self._scheduler = DatabaseScheduler(app=app)
        after_task_publish.connect(self._count)
        self._end_of_day()
        self._scheduler.tick()

    def make_idle(self) -> None:
        """Let nothing be due for a while."""
        self._end_of_day()

    def idle(self) -> int:
        """Tick once."""
        with counting() as count:
            self._scheduler.tick()
        return count.statements

    def make_due(self, number: int) -> None:
        """Let some have run last a while ago.

        Args:
            number: how many.
        """
        self._end_of_day()
        before = timezone.now() - timedelta(minutes=2)
        for name in names(number):
            entry = self._scheduler.schedule[name]
            entry.last_run_at = entry.model.last_run_at = before
        self._scheduler.populate_heap()
        self._sent = 0

    def start(self) -> int:
        """Tick until nothing is due."""
        with counting() as count:
            while self._scheduler.tick() == 0:
                pass
        return count.statements

    def right(self) -> int:
        """Count the messages."""
        return self._sent

    def _end_of_day(self) -> None:
        """Let every task have run this very moment, so that a minute that begins makes none due."""
        now = timezone.now() + timedelta(minutes=1)
        for entry in self._scheduler.schedule.values():
            entry.last_run_at = entry.model.last_run_at = now
        self._scheduler.populate_heap()

    def _count(self, **_: object) -> None:
        self._sent += 1
