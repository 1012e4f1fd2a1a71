"""The product."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from django.urls import reverse

from django_declarative_cron.admin.readonly import DEEPEST_ROW
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import rows

from ..harness.rows import empty
from . import filling, runs_of
from .fetching import ONE_HUNDRED, Pages


class Case(Pages):
    """The pages of the product."""

    def fill(self, size: int) -> None:
        """Store tasks as the engine leaves them, and their runs.

        Args:
            size: how many tasks.
        """
        now = datetime.now(UTC)
        empty(TaskRun, ScheduledTask, SchedulerInstance, SchedulerState)
        state = SchedulerState.objects.create(deployment="default")
        # Alive until all is measured, or the pages would warn that nobody is at work.
        alive = {"started_at": now, "heartbeat_at": now + timedelta(days=1)}
        state.leader = SchedulerInstance.objects.create(
            id=uuid4(), scheduler=state, host="worker", pid=1, **alive
        )
        state.save()
        ScheduledTask.objects.bulk_create(
            _task(state, number, declared, now)
            for number, declared in enumerate(filling.tasks(size))
        )
        seed = TaskRun(scheduler=state, task_name="", scheduled_for=now, reason="due", attempt=1)
        own = {
            "task_name": "name",
            "scheduled_for": filling.NOW,
            "started_at": filling.NOW,
            "finished_at": f"{filling.NOW} + interval '10 seconds'",
            "outcome": f"CASE WHEN {filling.FAILED} THEN 'failed' ELSE 'succeeded' END",
        }
        filling.write_history(seed, own, size, runs_of(size), now)

    def pages(self) -> dict[str, str]:
        """Give the pages of the product."""
        tasks, calendar = (address("scheduledtask", page) for page in ("changelist", "calendar"))
        return {
            **shared(DEEPEST_ROW),
            "tasks, last run failed": f"{tasks}?last=failed",
            "month": calendar,
            "day": f"{calendar}?day={datetime.now(UTC):%Y-%m-%d}",
            "schedulers": address("schedulerinstance", "changelist"),
        }


def shared(most: int, site: str = "admin") -> dict[str, str]:
    """Give the pages that any admin of tasks and runs has.

    Args:
        most: how many runs are paged through.
        site: name of the admin site.
    """
    tasks, runs = (address(name, "changelist", site=site) for name in ("scheduledtask", "taskrun"))
    task, number = ScheduledTask.objects.order_by("pk")[0], ScheduledTask.objects.count()
    run, deepest = TaskRun.objects.order_by("-pk")[0], min(TaskRun.objects.count(), most)
    return {
        "tasks": tasks,
        "tasks, last page": f"{tasks}?p={(number - 1) // ONE_HUNDRED + 1}",
        "tasks, search": f"{tasks}?q=task-009",
        "one task": address("scheduledtask", "change", task.pk, site=site),
        "runs": runs,
        "runs, last page": f"{runs}?p={(deepest - 1) // ONE_HUNDRED + 1}",
        "runs, search": f"{runs}?q=task-009",
        "one run": address("taskrun", "change", run.pk, site=site),
    }


def address(model: str, page: str, *args: object, site: str = "admin") -> str:
    """Give the address of a page.

    Args:
        model: its name.
        page: changelist, change or one of ours.
        args: of its path.
        site: name of the admin site.
    """
    return reverse(f"{site}:django_declarative_cron_{model}_{page}", args=args)


def _task(
    state: SchedulerState, number: int, declared: tuple[str, str, str], now: datetime
) -> ScheduledTask:
    name, cron, zone = declared
    ran = now - timedelta(minutes=number % 60)
    task = ScheduledTask(
        scheduler=state,
        scheduler_identifier=state.identifier,
        name=name,
        cron=cron,
        timezone=zone,
        retry_delay=timedelta(minutes=5),
        callback=f"app{number % 7}.tasks.work",
        digest="0" * 64,
        declaration={"dialect": "ojs", "tags": [f"tag{number % 5}"]},
        registered_at=filling.long_ago(now),
        last_attempt_at=ran,
        last_success_at=ran,
    )
    task.next_run_at = task.wake_at = rows.terms_of(task).schedule.next_after(now)
    if number % 50 == 0:
        task.pending_retry_until, task.attempt = now + timedelta(minutes=3), 1
    return task
