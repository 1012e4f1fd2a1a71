"""django-q2: a cluster with two workers and its broker in the database."""

from __future__ import annotations

import time

from django.db import connection
from django_q.cluster import Cluster
from django_q.models import OrmQ, Success, Task
from django_q.tasks import async_task

from .running import Running, until


class Case(Running):
    """It is several processes; the clock begins with the first result, as they need a while."""

    def queue(self) -> None:
        """Let tasks wait."""
        OrmQ.objects.all().delete()
        Task.objects.all().delete()
        for _ in range(self.size):
            async_task("benchmarks.harness.jobs.nothing")

    def run(self) -> float:
        """Run a cluster until everything is recorded."""
        connection.close()
        cluster = Cluster()
        cluster.start()
        until(Success.objects.exists)
        began = time.perf_counter()
        until(lambda: self.recorded() >= self.size)
        seconds = time.perf_counter() - began
        cluster.stop()
        return seconds

    def recorded(self) -> int:
        """Count the succeeded tasks."""
        return int(Success.objects.count())
