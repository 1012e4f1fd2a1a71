"""django-ticks: one tick, as a system's cron calls it."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django_ticks.models import Job, LocalJob, run

from ..harness.declared import names
from ..harness.project import counting
from .passing import Passing


class Case(Passing):
    """It reads every job first, and keeps no history: the last run is all that is recorded."""

    size = 0

    def prepare(self, size: int) -> None:
        """Make the jobs.

        Args:
            size: how many.
        """
        self.size, self._called = size, 0
        Job.objects.bulk_create(Job(key=name, last_run=timezone.now()) for name in names(size))
        interval = timedelta(days=1)
        self._jobs = [LocalJob(name, self._call, interval) for name in names(size)]

    def idle(self) -> int:
        """Tick."""
        with counting() as count:
            run(self._jobs, blocking=False)
        return count.statements

    def make_due(self, number: int) -> None:
        """Let some be due.

        Args:
            number: how many.
        """
        before = timezone.now() - timedelta(days=2)
        Job.objects.filter(key__in=names(number)).update(last_run=before)

    def start(self) -> int:
        """Tick."""
        return self.idle()

    def right(self) -> int:
        """Count the calls."""
        called, self._called = self._called, 0
        return called

    def _call(self, now: object) -> None:
        self._called += 1
