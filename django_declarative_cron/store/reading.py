"""What people are shown of a task's row, damaged rows included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from ..core.next_start import NextStart, next_start
from ..core.overlap import Policy
from ..core.retry import RetryPolicy
from ..core.schedule import Schedule
from ..core.status import Status, status_of
from ..models import Outcome, ScheduledTask, TaskRun
from . import rows
from .liveness import is_gone, is_interrupted
from .status import waits_for_a_worker

_URGENT = (Status.BROKEN, Status.OVERDUE)
_WAITS = "ddc_waits"
_GONE = "ddc_gone"
_RESTS = (Status.DISABLED, Status.PAUSED, Status.PAUSED_UNTIL)


@dataclass(frozen=True, slots=True)
class Reading:
    """A task's row, understood as far as it can be.

    Args:
        task: the row.
        schedule: ``None`` where the row is damaged.
        problem: why the task is broken, or empty.
        status: the one word.
        next_start: the next start, ``None`` where none comes by itself.
    """

    task: ScheduledTask
    schedule: Schedule | None
    problem: str
    status: Status
    next_start: NextStart | None

    @property
    def is_paused(self) -> bool:
        """Tell whether nothing starts by itself."""
        return self.status in _RESTS

    @property
    def order(self) -> tuple[bool, float, str]:
        """Give what a list is sorted by: what waits for help, then what comes next."""
        instants = [] if self.next_start is None else [self.next_start.at]
        if self.task.run_requested_at is not None and not self.is_paused:
            instants.append(self.task.run_requested_at)
        due = min((each.timestamp() for each in instants), default=float("inf"))
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
    waits, gone = _run_of(task, now)
    status = status_of(
        state,
        now,
        next_run_at=task.next_run_at,
        broken=bool(problem),
        enabled=task.enabled,
        waits=waits,
        is_gone=gone,
    )
    return Reading(task, schedule, problem, status, None if problem else next_start_of(task))


def next_start_of(task: ScheduledTask, policy: Policy | None = None) -> NextStart | None:
    """Return the next start of a task, ``None`` where none comes by itself.

    Args:
        task: as stored.
        policy: its overlap policy, where the caller has read it already.
    """
    if task.broken_reason or not task.enabled:
        return None
    return next_start(rows.state_of(task), task.next_run_at, policy or policy_of(task))


def policy_of(task: ScheduledTask) -> Policy:
    """Return the overlap policy of a task, the default where its row is damaged.

    Args:
        task: as stored.
    """
    try:
        return rows.policy_of(task)
    except rows.DAMAGE:
        return "coalesce"


def with_runs(tasks: QuerySet[ScheduledTask], now: datetime) -> QuerySet[ScheduledTask]:
    """Let a query on tasks find what ``read`` would ask for each of them.

    Args:
        tasks: the query.
        now: the instant of looking.
    """
    return tasks.annotate(**{_WAITS: waits_for_a_worker(), _GONE: is_interrupted(now)})


def _run_of(task: ScheduledTask, now: datetime) -> tuple[bool, bool]:
    """Return whether the run in progress waits for a worker, and whether its process is gone."""
    if task.running_run is None:
        return False, False
    if hasattr(task, _WAITS):
        return getattr(task, _WAITS), getattr(task, _GONE)
    runs = TaskRun.objects.using(task._state.db).filter(pk=task.running_run)
    run = runs.annotate(is_gone=Q(is_gone(now))).values_list("outcome", "is_gone").first()
    return (False, False) if run is None else (run[0] == Outcome.WAITING, bool(run[1]))


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
