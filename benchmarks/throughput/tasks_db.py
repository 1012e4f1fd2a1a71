"""django-tasks-db: one worker, one task at a time."""

from __future__ import annotations

import time

from django.core.management import call_command
from django_tasks_db.models import DBTaskResult

from ..harness.jobs.tasks import nothing
from .running import Running


class Case(Running):
    """Its worker ends when nothing waits any more."""

    def queue(self) -> None:
        """Let tasks wait."""
        DBTaskResult.objects.all().delete()
        for _ in range(self.size):
            nothing.enqueue()

    def run(self) -> float:
        """Run a worker."""
        began = time.perf_counter()
        call_command("db_worker", batch=True, interval=0, startup_delay=False, verbosity=0)
        return time.perf_counter() - began

    def recorded(self) -> int:
        """Count the succeeded tasks."""
        return int(DBTaskResult.objects.successful().count())
