"""django-q2: one call of its scheduler, which hands runs to the broker in the database."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule
from django_q.scheduler import scheduler

from ..harness.declared import names
from ..harness.project import counting
from .passing import Passing


class Case(Passing):
    """Its results are recorded by other processes, which are not there."""

    size = 0

    def prepare(self, size: int) -> None:
        """Make the schedules.

        Args:
            size: how many.
        """
        self.size, self._broker = size, get_broker()
        later = timezone.now() + timedelta(days=1)
        Schedule.objects.bulk_create(
            Schedule(
                name=name,
                func="benchmarks.harness.jobs.nothing",
                schedule_type=Schedule.CRON,
                cron="0 4 * * *",
                next_run=later,
            )
            for name in names(size)
        )

    def idle(self) -> int:
        """Call its scheduler."""
        with counting() as count:
            scheduler(broker=self._broker)
        return count.statements

    def make_due(self, number: int) -> None:
        """Let some be due.

        Args:
            number: how many.
        """
        before = timezone.now() - timedelta(seconds=1)
        Schedule.objects.filter(name__in=names(number)).update(next_run=before)

    def start(self) -> int:
        """Call its scheduler."""
        return self.idle()

    def right(self) -> int:
        """Count what was handed over."""
        return int(OrmQ.objects.all().delete()[0])
