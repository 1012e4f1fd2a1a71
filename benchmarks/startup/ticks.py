"""django-ticks: intervals, registered in code; a row remembers when each ran last."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from django_ticks.models import Job, get_job_from_function, get_or_create_db_jobs

from ..harness.jobs import nothing
from ..harness.project import counting
from ..harness.rows import empty, versions
from .deploying import Deploying


class Case(Deploying):
    """Do what ``run`` does before its loop; it knows no schedules, so none can change."""

    changes_rows = False
    most_first = 10_000

    def clear(self) -> None:
        """Let nothing be declared."""
        empty(Job)

    def fill(self) -> None:
        """Write the rows that it would write one by one."""
        now = timezone.now()
        Job.objects.bulk_create([Job(key=name, last_run=now) for name in self._names], 5000)

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Make the missing rows, and the queue.

        Args:
            names: of the jobs.
            crons: not looked at.
        """
        with counting() as count:
            jobs = [get_job_from_function(nothing, timedelta(days=30), key=name) for name in names]
            rows, now = get_or_create_db_jobs(jobs), timezone.now()
            queue = [
                (last + job.interval if (last := rows[job.key].last_run) else now, job)
                for job in jobs
            ]
            queue.sort(key=lambda item: item[0])
        return count.statements

    def rows(self) -> dict[object, object]:
        """Give the jobs."""
        return versions(Job)
