"""django-q2: a cluster with two workers, which looks for schedules every half minute."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django_q.cluster import Cluster
from django_q.models import Schedule, Success

from .waiting import Waiting


class Case(Waiting):
    """What is told is when a worker began the task."""

    patience = 40.0

    def prepare(self, size: int) -> None:
        """Make the schedules.

        Args:
            size: how many.
        """
        super().prepare(size)
        for position, name in enumerate(self.names):
            Schedule.objects.create(
                name=name,
                func="benchmarks.harness.jobs.nothing",
                schedule_type=Schedule.CRON,
                cron=self.cron(position),
            )

    def begin(self) -> None:
        """Start the cluster."""
        connection.close()
        self._cluster = Cluster()
        self._cluster.start()

    def called(self, since: float) -> list[float]:
        """Give when tasks were begun.

        Args:
            since: the minute.
        """
        found = Success.objects.filter(started__gte=datetime.fromtimestamp(since, UTC))
        return [each.timestamp() for each in found.values_list("started", flat=True)]

    def end(self) -> None:
        """End it."""
        self._cluster.stop()
