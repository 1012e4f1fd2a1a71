"""celery-beat: its service with the database scheduler."""

from __future__ import annotations

import threading

from celery import Celery
from celery.beat import Service
from django.db import connection
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from .idling import Idling


class Case(Idling):
    """It holds every task in memory."""

    def fill(self) -> None:
        """Make the tasks."""
        # Each hour of that day, because beat reads only those whose hour is near.
        schedule = CrontabSchedule.objects.create(
            minute="0", hour="*", day_of_month="29", month_of_year="2"
        )
        PeriodicTask.objects.bulk_create(
            PeriodicTask(name=name, task="nothing", crontab=schedule, last_run_at=timezone.now())
            for name in self.names
        )
        connection.close()

    def begin(self) -> None:
        """Start the service in a thread."""
        app = Celery("bench", broker="memory://")
        app.conf.timezone = "UTC"
        self._service = Service(app, scheduler_cls=DatabaseScheduler)
        threading.Thread(target=self._service.start, daemon=True).start()

    def end(self) -> None:
        """End it."""
        self._service.stop(wait=True)
