"""The rows of one deployment at one instant, as plain values, and what their schedules say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)

Row = dict[str, Any]

RUNNING = "running"
DID_NOT_RUN = ("skipped", "missed")


@dataclass(slots=True)
class Snapshot:
    """All rows at one instant.

    Args:
        now: the virtual instant.
        states: of the deployment, one at most.
        instances: by id.
        tasks: by name.
        runs: oldest first; also those that did not run.
    """

    now: datetime
    states: list[Row]
    instances: dict[Any, Row]
    tasks: dict[str, Row]
    runs: list[Row]

    @classmethod
    def taken(cls, now: datetime) -> Snapshot:
        """Read the rows."""
        return cls(
            now,
            list(SchedulerState.objects.values()),
            {row["id"]: row for row in SchedulerInstance.objects.values()},
            {row["name"]: row for row in ScheduledTask.objects.values()},
            list(TaskRun.objects.order_by("id").values()),
        )

    def started(self, name: str, epochs: Iterable[int] | None = None) -> list[Row]:
        """Give the rows of a task's runs, oldest first."""
        wanted = None if epochs is None else set(epochs)
        return [
            run
            for run in self.runs
            if run["task_name"] == name
            and run["outcome"] not in DID_NOT_RUN
            and (wanted is None or run["epoch"] in wanted)
        ]

    def unserved(self, name: str, epoch: int) -> list[Row]:
        """Give the rows of what did not run, oldest first."""
        return [
            run
            for run in self.runs
            if run["task_name"] == name and run["outcome"] in DID_NOT_RUN and run["epoch"] == epoch
        ]


def schedule_of(task: Row) -> Schedule:
    """Give the schedule of a task's row, read anew from its declaration."""
    keys = task["declaration"]
    return Schedule(
        parse(task["cron"]), ZoneInfo(task["timezone"]), gap=keys["gap"], fold=keys["fold"]
    )


def mark_of(task: Row) -> datetime:
    """Give the instant up to which a task's row says that all is accounted for."""
    return max(task["registered_at"], task["discharged_at"] or task["registered_at"])


def delay_of(task: Row) -> timedelta:
    """Give how long after a failure a task's row lets it try again (RT-14)."""
    return task["retry_delay"] or timedelta(seconds=1)
