"""django-q2: its own pages of schedules, and of tasks that succeeded."""

from __future__ import annotations

from datetime import UTC, datetime

from django.urls import reverse
from django_q.models import Schedule, Success, Task

from ..harness.rows import empty
from . import filling, runs_of
from .fetching import ONE_HUNDRED, Pages


class Case(Pages):
    """The pages of django-q2."""

    def fill(self, size: int) -> None:
        """Store schedules, and the tasks that they began.

        Args:
            size: how many schedules.
        """
        now = datetime.now(UTC)
        empty(Task, Schedule)
        Schedule.objects.bulk_create(
            Schedule(
                name=name, func="benchmarks.harness.jobs.nothing", schedule_type="C", cron=cron
            )
            for name, cron, _zone in filling.tasks(size)
        )
        seed = Task(
            id="", name="", func="benchmarks.harness.jobs.nothing", started=now, stopped=now
        )
        own = {
            "id": "md5(name || '-' || n)",
            "name": "name",
            "group": "name",
            "started": filling.NOW,
            "stopped": f"{filling.NOW} + interval '10 seconds'",
            "success": f"NOT {filling.FAILED}",
        }
        filling.write_history(seed, own, size, runs_of(size), now)

    def pages(self) -> dict[str, str]:
        """Give its pages."""
        schedules, runs = _of("schedule", "changelist"), _of("success", "changelist")
        last, last_run = (
            (each.objects.count() - 1) // ONE_HUNDRED + 1 for each in (Schedule, Success)
        )
        return {
            "tasks": schedules,
            "tasks, last page": f"{schedules}?p={last}",
            "tasks, search": f"{schedules}?q=task-009",
            "one task": _of("schedule", "change", Schedule.objects.order_by("pk")[0].pk),
            "runs": runs,
            "runs, last page": f"{runs}?p={last_run}",
            "runs, search": f"{runs}?q=task-009",
            "one run": _of("success", "change", Success.objects.all()[0].pk),
        }


def _of(model: str, page: str, *args: object) -> str:
    return reverse(f"admin:django_q_{model}_{page}", args=args)
