"""celery-beat: its service with the database scheduler, and a broker in memory."""

from __future__ import annotations

import threading
import time

from celery import Celery
from celery.beat import Service
from celery.signals import after_task_publish
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from .waiting import Waiting


class Case(Waiting):
    """What is told is when the message was sent: what a worker needs comes on top of it."""

    def prepare(self, size: int) -> None:
        """Make the tasks.

        Args:
            size: how many.
        """
        super().prepare(size)
        self._calls = list[float]()
        self._app = Celery("bench", broker="memory://")
        self._app.conf.timezone = "UTC"
        always = CrontabSchedule.objects.create(minute="*", hour="*")
        # Each hour of that day, because beat reads only those whose hour is near.
        never = CrontabSchedule.objects.create(
            minute="0", hour="*", day_of_month="29", month_of_year="2"
        )
        PeriodicTask.objects.bulk_create(
            PeriodicTask(
                name=name,
                task="nothing",
                crontab=always if self.cron(n).startswith("*") else never,
                last_run_at=timezone.now(),
            )
            for n, name in enumerate(self.names)
        )
        after_task_publish.connect(self._note)

    def begin(self) -> None:
        """Start the service in a thread."""
        self._service = Service(self._app, scheduler_cls=DatabaseScheduler)
        self._thread = threading.Thread(target=self._service.start, daemon=True)
        self._thread.start()

    def called(self, since: float) -> list[float]:
        """Give when messages were sent.

        Args:
            since: the minute.
        """
        return [each for each in self._calls if each >= since]

    def end(self) -> None:
        """End it."""
        self._service.stop(wait=True)
        self._calls.clear()

    def _note(self, **_: object) -> None:
        self._calls.append(time.time())
