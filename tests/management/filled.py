"""A long history, written straight into the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django_declarative_cron.models import (
    RegistrationSet,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)

START = datetime(2024, 1, 1, tzinfo=UTC)


def fill(tasks: int, minutes: int) -> None:
    """Write what a scheduler writes that runs tasks every minute.

    Args:
        tasks: how many.
        minutes: for how long.
    """
    state = SchedulerState.objects.create(deployment="default", generation=1)
    instance = SchedulerInstance.objects.create(
        scheduler=state,
        host="desk",
        pid=1,
        started_at=START,
        initialized_at=START,
        heartbeat_at=START + timedelta(minutes=minutes),
    )
    names = [f"task-{number}" for number in range(tasks)]
    RegistrationSet.objects.create(
        scheduler=state,
        generation=1,
        registered_at=START,
        instance=instance,
        tasks=[
            {"name": name, "cron": "* * * * *", "timezone": "UTC", "retry_delay_us": 60_000_000}
            for name in names
        ],
    )
    for minute in range(minutes):
        at = START + timedelta(minutes=minute)
        TaskRun.objects.bulk_create(
            TaskRun(
                scheduler=state,
                task_name=name,
                scheduled_for=at,
                started_at=at + timedelta(milliseconds=30),
                finished_at=at + timedelta(seconds=2),
                outcome="succeeded",
                reason="due",
                attempt=1,
                instance=instance,
            )
            for name in names
        )
