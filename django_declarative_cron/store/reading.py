"""What people are shown of a task's row, damaged rows included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from ..core.retry import RetryPolicy
from ..core.schedule import Schedule
from ..core.status import Status, due_since, status_of
from ..models import Outcome, ScheduledTask, TaskRun
from . import rows
from .status import waits_for_a_worker

_URGENT = (Status.BROKEN, Status.OVERDUE)
_WAITS = "ddc_waits"
_PAUSED = (Status.PAUSED, Status.PAUSED_UNTIL)


@dataclass(frozen=True, slots=True)
class Reading:
    """A task's row, understood as far as it can be.

    Args:
        task: the row.
        schedule: ``None`` where the row is damaged.
        problem: why the task is broken, or empty.
        status: the one word.
        due_at: when a start is or becomes due, ``None`` where none is foreseen.
    """

    task: ScheduledTask
    schedule: Schedule | None
    problem: str
    status: Status
    due_at: datetime | None

    @property
    def is_paused(self) -> bool:
        """Tell whether nothing starts by itself."""
        return self.status in _PAUSED

    @property
    def order(self) -> tuple[bool, float, str]:
        """Give what a list is sorted by: what waits for help, then what comes next."""
        due = float("inf") if self.due_at is None else self.due_at.timestamp()
        return (self.status not in _URGENT, due, self.task.name)


def ran_before_change(task: ScheduledTask) -> bool:
    """Tell whether a task ran, but not since its state began afresh.

    Args:
        task: as stored.
    """
    return task.last_attempt_at is None and task.run_count > 0


def skips_at(task: ScheduledTask, now: datetime) -> datetime | None:
    """Give the occurrence that a person lets pass, as long as it is still to come.

    Args:
        task: as stored.
        now: the instant it is looked at.
    """
    accounted = max(task.registered_at, task.discharged_at or task.registered_at, now)
    return task.skip_at if task.skip_at is not None and task.skip_at > accounted else None


def read_retry(task: ScheduledTask) -> RetryPolicy | None:
    """Read the retry policy of a row, ``None`` where it has a delay or is damaged.

    Args:
        task: as stored.
    """
    try:
        retry = rows.retry_of(task)
    except rows.DAMAGE:
        return None
    return retry if isinstance(retry, RetryPolicy) else None


def read_timeout(task: ScheduledTask) -> timedelta | None:
    """Read how long a run of a row's task may take, ``None`` for any time.

    Args:
        task: as stored.
    """
    declared = task.declaration if isinstance(task.declaration, dict) else {}
    seconds = declared.get("timeout")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        return None
    return timedelta(seconds=seconds)


def read(task: ScheduledTask, now: datetime) -> Reading:
    """Read a row, whatever stands in it.

    Args:
        task: as stored.
        now: the instant it is looked at.
    """
    schedule, damage = read_schedule(task)
    problem, state = task.broken_reason or damage, rows.state_of(task)
    status = status_of(
        state,
        now,
        next_run_at=task.next_run_at,
        broken=bool(problem),
        enabled=task.enabled,
        waits=_waits(task),
    )
    due_at = due_since(state, task.next_run_at) if status not in _PAUSED else task.next_run_at
    return Reading(task, schedule, problem, status, due_at)


def with_waits(tasks: QuerySet[ScheduledTask]) -> QuerySet[ScheduledTask]:
    """Let a query on tasks find what ``read`` would ask for each of them.

    Args:
        tasks: the query.
    """
    return tasks.annotate(**{_WAITS: waits_for_a_worker()})


def _waits(task: ScheduledTask) -> bool:
    if task.running_run is None:
        return False
    known: bool | None = getattr(task, _WAITS, None)
    if known is None:
        runs = TaskRun.objects.using(task._state.db).filter(pk=task.running_run)
        known = runs.filter(outcome=Outcome.WAITING).exists()
    return known


def most_attempts(task: ScheduledTask) -> int | None:
    """Give how many attempts at one occurrence there may be, ``None`` where nothing says so.

    Args:
        task: as stored.
    """
    policy = read_retry(task)
    return None if policy is None else policy.max_attempts


def read_schedule(task: ScheduledTask) -> tuple[Schedule | None, str]:
    """Give the schedule of a row, or what is wrong with it.

    Args:
        task: as stored.
    """
    try:
        return rows.schedule_of(task), ""
    except rows.DAMAGE as damage:
        return None, str(damage)
