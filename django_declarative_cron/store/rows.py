"""From rows to the core's values and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final
from uuid import UUID, uuid4

from django.db.models import CharField, Q, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from ..conf import calendars
from ..core import events
from ..core.decide import Decision
from ..core.declarations.declaration import Declaration
from ..core.decoding import StoredTerms, decode_terms
from ..core.overlap import CONCURRENT
from ..core.reconcile import Stored
from ..core.state import TaskState
from ..exceptions import DeclarativeCronError, TaskTryDeserializeError
from ..models import Outcome, ScheduledTask, SchedulerState, TaskRun

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


class NotRegisteredError(LookupError):
    """Raised if a task has no row."""


class UnreadableRowError(ValueError):
    """Raised if a task's row is damaged."""


def state_of(row: ScheduledTask) -> TaskState:
    shared = dict(zip(_SHARED, _shared(row), strict=True))
    shared.update(name=row.name, running=row.running_run is not None)
    return TaskState(**shared)


def stored_of(row: ScheduledTask) -> Stored:
    return Stored(row.name, row.cron, row.timezone, row.retry_delay, row.digest, row.origin)


def terms_of(row: ScheduledTask, known: Declaration | None = None) -> Declaration | StoredTerms:
    """Return when and how a task runs, as its row says.

    Raises:
        TaskTryDeserializeError: a column has a value that means nothing.
    """
    if known is not None and stored_of(row).columns == known.columns:
        return known
    terms = decode_terms(
        row.name, row.cron, row.timezone, row.retry_delay, row.declaration, calendars()
    )
    schedule = terms.schedule.anchored(row.registered_at).omitting(row.skip_at)
    return replace(terms, schedule=schedule)


def reason_of(damage: DeclarativeCronError) -> str:
    """Return why a row is damaged, as its reader says it."""
    return str(damage.__cause__ or damage)


def options_of(row: ScheduledTask) -> dict[str, Any]:
    """Return the stored options of a row's declaration, none if they are no object."""
    return row.declaration if isinstance(row.declaration, dict) else {}


def runs_beside(row: ScheduledTask, known: Declaration | None = None) -> bool:
    """Return whether further runs of a task may start while one is active."""
    if known is not None and row.digest == known.digest:
        return known.overlap_policy in CONCURRENT
    return options_of(row).get("overlap_policy") in CONCURRENT


def damage_of(row: ScheduledTask, now: datetime) -> list[events.TaskEvent]:
    """Return why a row cannot be decoded, in an event or none."""
    try:
        terms_of(row)
    except TaskTryDeserializeError as error:
        text = f"{error.name}: {error.message}"
        return [events.TaskStateDamaged(at=now, task_name=row.name, error=text)]
    return []


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
    scheduler: SchedulerState, tasks: Iterable[ScheduledTask], told: Iterable[events.Event]
) -> list[TaskRun]:
    """Return the rows of occurrences that do not run, or not yet."""
    by_name = {task.name: task for task in tasks}
    return [
        TaskRun(
            scheduler=scheduler,
            task_name=event.task_name,
            origin=by_name[event.task_name].origin,
            scheduled_for=event.scheduled_time,
            reason=event.reason,
            epoch=by_name[event.task_name].epoch,
            term=scheduler.term,
            **_unserved(event),
        )
        for event in told
        if isinstance(event, events.TaskSkipped | events.TaskRunWaiting)
    ]


def _unserved(event: events.TaskSkipped | events.TaskRunWaiting) -> dict[str, Any]:
    if isinstance(event, events.TaskRunWaiting):
        return {
            "outcome": Outcome.WAITING,
            "attempt": 1,
            "detail": {"behind": event.behind},
            "running_slot": own_slot(event.task_name),
        }
    told = {
        "local_time": event.detail or None,
        "blocked_by": event.blocked_by,
        "calendar": event.calendar or None,
    }
    return {
        "scheduled_from": event.scheduled_from,
        "count": event.count,
        "outcome": Outcome(event.outcome),
        "finished_at": event.at,
        "detail": {key: value for key, value in told.items() if value is not None} or None,
    }


def set_aside(
    row: ScheduledTask, reason: str, now: datetime, delay: timedelta = timedelta(0)
) -> events.TaskBroken:
    row.broken_reason = reason
    row.wake_at = now + delay
    return events.TaskBroken(at=now, task_name=row.name, reason=reason)


# --- slots ---

_APART = "\n"
"""Begins the ending of a slot; no name has it."""


def own_slot(name: str) -> str:
    """Return a slot that no other run has."""
    return f"{name}{_APART}{uuid4().hex}"


def is_apart(run: TaskRun) -> bool:
    """Return whether a run was started to run concurrently with others."""
    return _APART in (run.running_slot or "")


ACTIVE: Final = Q(running_slot__gte="")
"""Holds a slot: of a deployment, found by the index of the slots, in which nobody else is."""


def is_over() -> Q:
    """Ask whether a run holds no slot, where something else is to find it."""
    slot = Coalesce("running_slot", Value(""), output_field=CharField())
    return Q(Exact(slot, ""))
