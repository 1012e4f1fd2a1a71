"""From rows to the core's values and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import CharField, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from ..conf import calendars
from ..core import events
from ..core.decide import CONCURRENT, Decision
from ..core.declarations.declaration import Declaration
from ..core.declarations.operating import Operating, of_data, offset_of
from ..core.decoding import flaw, lost
from ..core.overlap import POLICIES, Policy
from ..core.retry import FixedDelay, Retry, read_policy
from ..core.schedule import Schedule
from ..core.state import TaskState
from ..cron import parse
from ..exceptions import DeclarativeCronError
from ..models import Outcome, ScheduledTask, SchedulerState, TaskRun

DAMAGE = (DeclarativeCronError, ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""What reading a damaged row may raise."""

_SHARED = (
    "registered_at",
    "last_attempt_at",
    "last_success_at",
    "pending_retry_until",
    "discharged_at",
    "occurrence_at",
    "attempt",
    "failures",
    "interruptions",
    "freed_at",
    "boot_at",
    "orphaned",
    "paused_since",
    "paused_until",
    "run_requested_at",
    "skip_at",
    "waiting",
    "run_count",
)

_shared = attrgetter(*_SHARED)

STATE_FIELDS = [*_SHARED, "running_run", "epoch", "next_run_at", "wake_at", "broken_reason"]

DECLARED_FIELDS = [
    "origin",
    "cron",
    "timezone",
    "retry_delay",
    "callback",
    "enabled",
    "description",
    "declaration",
    "digest",
    "scheduler_identifier",
]


def state_of(row: ScheduledTask) -> TaskState:
    """Read the state of a task from its row."""
    shared = dict(zip(_SHARED, _shared(row), strict=True))
    shared.update(name=row.name, running=row.running_run is not None)
    return TaskState.having(shared)


def schedule_of(row: ScheduledTask) -> Schedule:
    """Read the schedule of a task from its row.

    Raises:
        InvalidCronExpressionError: the stored text is damaged.
        ZoneInfoNotFoundError: the stored zone is unknown here.
        TaskInvalidValueError: columns could not be read and were given up.
    """
    gone = lost(row.digest)
    if gone is not None:
        raise gone
    schedule = declared_schedule(row.name, row.cron, row.timezone, row.declaration)
    return schedule.anchored(row.registered_at).omitting(row.skip_at)


def declared_schedule(name: str, cron: str, zone: str, options: Mapping[str, Any]) -> Schedule:
    """Read a schedule from what is stored of a declaration.

    Raises:
        InvalidCronExpressionError: the stored text is damaged.
        ZoneInfoNotFoundError: the stored zone is unknown here.
        ValueError: what is stored means nothing.
        TypeError: likewise.
        AttributeError: the declaration is no object.
        OverflowError: a duration is too long.
    """
    operating = of_data(options)
    return Schedule(
        parse(cron, options.get("dialect", "posix")),
        ZoneInfo(zone),
        gap=options.get("gap", "skip"),
        fold=options.get("fold", "first"),
        offset=offset_of(name, operating.spread),
        exclusion=calendars().exclusion(operating.exclude_calendars)
        if operating.exclude_calendars
        else None,
    )


def operating_of(row: ScheduledTask) -> Operating:
    """Read how a task is operated from its row.

    Raises:
        ValueError: what is stored means nothing.
        TypeError: likewise.
        AttributeError: the declaration is no object.
        OverflowError: a duration is too long.
    """
    return of_data(row.declaration)


def retry_of(row: ScheduledTask) -> Retry:
    """Read the retry rule of a task from its row.

    Raises:
        ValueError: the stored delay is negative.
    """
    if row.retry_delay is None:
        policy, _ = read_policy(row.declaration.get("retry") or {})
        return policy
    if row.retry_delay < timedelta(0):
        raise ValueError(f"stored retry delay is negative: {row.retry_delay}")
    return FixedDelay(row.retry_delay)


class StoredTerms(NamedTuple):
    """Of the terms of a task, as its row has them, what the end of a run asks for."""

    schedule: Schedule
    retry: Retry
    overlap_policy: Policy
    operating: Operating


def terms_of(row: ScheduledTask, known: Declaration | None = None) -> Declaration | StoredTerms:
    """Read from its row on what terms a task runs.

    Raises:
        DeclarativeCronError: what is stored is damaged.
        ValueError: likewise.
        LookupError: likewise.
        TypeError: likewise.
        AttributeError: likewise.
        OverflowError: likewise.
    """
    said = (row.cron, row.timezone, row.retry_delay, row.digest, row.origin)
    if known is not None and said == known.columns:
        return known
    return StoredTerms(schedule_of(row), retry_of(row), policy_of(row), operating_of(row))


def policy_of(row: ScheduledTask, known: Declaration | None = None) -> Policy:
    """Read the overlap policy of a task from its row.

    Raises:
        ValueError: the stored policy is none.
    """
    if known is not None and row.digest == known.digest:
        return known.overlap_policy
    said = row.declaration.get("overlap_policy", "coalesce")
    if said not in POLICIES:
        raise ValueError(f"stored overlap policy is unknown: {said!r}")
    return cast(Policy, said)


def runs_beside(row: ScheduledTask, known: Declaration | None = None) -> bool:
    """Return whether a run of a task keeps no other one from starting."""
    if known is not None and row.digest == known.digest:
        return known.overlap_policy in CONCURRENT
    said = row.declaration.get("overlap_policy") if isinstance(row.declaration, dict) else None
    return said in CONCURRENT


def damage_of(row: ScheduledTask, now: datetime) -> list[events.TaskEvent]:
    """Return what keeps a row's schedule from being read, in an event or none."""
    error = lost(row.digest) or flaw(row.cron, row.timezone, row.retry_delay, row.declaration)
    if error is None:
        return []
    text = f"{error.name}: {error.message}"
    return [events.TaskStateDamaged(at=now, task_name=row.name, error=text)]


def declare(row: ScheduledTask, declaration: Declaration, identifier: UUID) -> None:
    """Write a declaration into a row in memory."""
    row.name = declaration.name
    row.cron, row.timezone, row.retry_delay, row.digest, row.origin = declaration.columns
    row.callback = declaration.target.text
    row.enabled = declaration.enabled
    row.description = declaration.description
    row.scheduler_identifier = identifier
    row.declaration = declaration.as_data()


def take(row: ScheduledTask, decision: Decision) -> None:
    """Write a decision's state into a row in memory."""
    vars(row).update(zip(_SHARED, _shared(decision.state), strict=True))
    row.next_run_at = decision.next_run_at
    row.wake_at = decision.wake_at
    row.broken_reason = ""
    if not decision.state.running:
        row.running_run = None


def unserved_rows(
    scheduler: SchedulerState, row: ScheduledTask, told: Iterable[events.Event]
) -> list[TaskRun]:
    """Return the history rows of occurrences that did not run."""
    return [
        told_row(
            scheduler,
            row,
            event,
            scheduled_from=event.scheduled_from,
            count=event.count,
            outcome=Outcome(event.outcome),
            finished_at=event.at,
            detail=_detail(event),
        )
        for event in told
        if isinstance(event, events.TaskSkipped)
    ]


def told_row(
    scheduler: SchedulerState,
    row: ScheduledTask,
    event: events.TaskSkipped | events.TaskRunWaiting,
    **values: Any,
) -> TaskRun:
    """Return the row of an occurrence that does not run, or not yet."""
    return TaskRun(
        scheduler=scheduler,
        task_name=event.task_name,
        origin=row.origin,
        scheduled_for=event.scheduled_time,
        reason=event.reason,
        epoch=row.epoch,
        term=scheduler.term,
        **values,
    )


def _detail(event: events.TaskSkipped) -> dict[str, Any] | None:
    told = {
        "local_time": event.detail or None,
        "blocked_by": event.blocked_by,
        "calendar": event.calendar or None,
    }
    return {key: value for key, value in told.items() if value is not None} or None


def set_aside(
    row: ScheduledTask, reason: str, now: datetime, delay: timedelta = timedelta(0)
) -> events.TaskBroken:
    """Take a row that cannot be considered out of the way, with its reason."""
    row.broken_reason = reason
    row.wake_at = now + delay
    return events.TaskBroken(at=now, task_name=row.name, reason=reason)


ACTIVE: Final = Q(running_slot__gte="")
"""Holds a slot: of a deployment, found by the index of the slots, in which nobody else is."""


def is_over() -> Q:
    """Ask whether a run holds no slot, where something else is to find it."""
    slot = Coalesce("running_slot", Value(""), output_field=CharField())
    return Q(Exact(slot, ""))
