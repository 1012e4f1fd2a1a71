"""celery-beat: ticks of the database scheduler, with a broker in the same process' memory."""

from __future__ import annotations

import time
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
        # Yesterday's date, so that nothing is due again before the last one has begun; and each
        # hour of it, because beat reads only those whose hour is near.
        yesterday = timezone.now() - timedelta(days=1)
        schedule = CrontabSchedule.objects.create(
            minute="*",
            hour="*",
            day_of_month=str(yesterday.day),
            month_of_year=str(yesterday.month),
        )
        PeriodicTask.objects.bulk_create(
            PeriodicTask(name=name, task="nothing", crontab=schedule, last_run_at=timezone.now())
            for name in names(size)
        )
        self._scheduler = DatabaseScheduler(app=app)
        after_task_publish.connect(self._count)
        self.make_idle()
        self._scheduler.tick()

    def make_idle(self) -> None:
        """Let every task have run this very moment, so that none is due."""
        for entry in self._scheduler.schedule.values():
            entry.last_run_at = entry.model.last_run_at = timezone.now()
        self._scheduler.populate_heap()

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
        self.make_idle()
        before = timezone.now() - timedelta(days=3)
        for name in names(number):
            entry = self._scheduler.schedule[name]
            entry.last_run_at = entry.model.last_run_at = before
        self._scheduler.populate_heap()
        self._sent = 0

    def start(self) -> int:
        """Tick until nothing is due, or for a minute."""
        end = time.monotonic() + 60
        with counting() as count:
            while self._scheduler.tick() == 0 and time.monotonic() < end:
                pass
        return count.statements

    def right(self) -> int:
        """Count the messages."""
        return self._sent

    def _count(self, **_: object) -> None:
        self._sent += 1
