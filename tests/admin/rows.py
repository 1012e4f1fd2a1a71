"""Rows as the engine would have left them, for pages to show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)

DIGEST = "0" * 64
"""Of the active registration set."""

NOW = datetime(2026, 11, 28, 10, 0, 30, tzinfo=UTC)


def deployment(name: str = "default") -> SchedulerState:
    state, _ = SchedulerState.objects.get_or_create(deployment=name, defaults={"digest": DIGEST})
    return state


def task(name: str = "digest", **fields: Any) -> ScheduledTask:
    """Store a task that has never run; its next run is at 11:00."""
    scheduler = fields.pop("scheduler", None) or deployment()
    declared: dict[str, Any] = {
        "cron": "0 * * * *",
        "timezone": "UTC",
        "retry_delay": timedelta(minutes=5),
        "callback": "shop.tasks.send_digests",
        "digest": "0" * 64,
        "declaration": {"args": [], "options": {}, "overlap_policy": "coalesce"},
    }
    state: dict[str, Any] = {
        "registered_at": NOW - timedelta(hours=1),
        "next_run_at": NOW + timedelta(minutes=59, seconds=30),
    }
    return ScheduledTask.objects.create(
        scheduler=scheduler,
        scheduler_identifier=scheduler.identifier,
        name=name,
        **{**declared, **state, **fields},
    )


def run(name: str = "digest", outcome: str = "succeeded", **fields: Any) -> TaskRun:
    """Store a run of two minutes that began on the hour."""
    begun = fields.pop("scheduled_for", NOW.replace(second=0))
    details: dict[str, Any] = {
        "scheduler": deployment(),
        "started_at": begun,
        "finished_at": begun + timedelta(minutes=2),
        "reason": "due",
        "attempt": 1,
        "epoch": None,
    }
    return TaskRun.objects.create(
        task_name=name, outcome=outcome, scheduled_for=begun, **{**details, **fields}
    )


def instance(**fields: Any) -> SchedulerInstance:
    """Store a scheduler instance that lives."""
    details: dict[str, Any] = {
        "id": uuid4(),
        "scheduler": deployment(),
        "host": "worker",
        "pid": 4711,
        "digest": DIGEST,
        "started_at": NOW - timedelta(hours=1),
        "heartbeat_at": NOW,
    }
    return SchedulerInstance.objects.create(**{**details, **fields})


def act(name: str = "digest", kind: str = "pause", **fields: Any) -> TaskOverride:
    """Store a person's act."""
    details: dict[str, Any] = {
        "scheduler": deployment(),
        "author": "ada",
        "created_at": NOW - timedelta(minutes=10),
    }
    return TaskOverride.objects.create(task_name=name, kind=kind, **{**details, **fields})
