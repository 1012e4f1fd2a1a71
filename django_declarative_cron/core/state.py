"""One task's state: a fold over events, and its form as plain data.

``apply`` alone defines the effect of a start, a success, a failure, an interruption or an
override. ``decide`` reads its result; the trace checker reads the same events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import singledispatch
from typing import Any

from ..exceptions import TaskInvalidValueError
from . import events
from .decoding import Stored, decode_cron, plain_instant
from .events import TaskEvent

_TICK = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TaskState:
    """The state of one task. All instants are aware UTC.

    Args:
        name: the task's name.
        registered_at: registration or newest override; no occurrence before it is pending.
        last_attempt_at: start of the newest attempt.
        last_success_at: end of the newest success, never erased by a failure.
        pending_retry_until: from when a retry may start.
        discharged_at: the high-water mark; every occurrence up to it is accounted for.
        occurrence_at: the occurrence of the newest start; a retry repeats it.
        attempt: number of the newest start for ``occurrence_at``, from 1.
        failures: failures in a row.
        interruptions: interrupted runs in a row.
        freed_at: end of the newest run.
        boot_at: the occurrence of the registration's minute, until a start.
        orphaned: the newest run was interrupted and will be restarted.
        paused_since: start of a pause in force.
        paused_until: its end, where it has one.
        run_requested_at: when an operator requested a run that has not started.
        skip_at: the occurrence that an operator skips.
        running: a run is in progress.
        waiting: runs that wait until those before them have ended.
        run_count: number of starts.
    """

    name: str
    registered_at: datetime
    last_attempt_at: datetime | None = None
    last_success_at: datetime | None = None
    pending_retry_until: datetime | None = None
    discharged_at: datetime | None = None
    occurrence_at: datetime | None = None
    attempt: int = 0
    failures: int = 0
    interruptions: int = 0
    freed_at: datetime | None = None
    boot_at: datetime | None = None
    orphaned: bool = False
    paused_since: datetime | None = None
    paused_until: datetime | None = None
    run_requested_at: datetime | None = None
    skip_at: datetime | None = None
    running: bool = False
    waiting: int = 0
    run_count: int = 0

    @property
    def mark(self) -> datetime:
        """Return the high-water mark: no occurrence up to it is pending."""
        return max(self.registered_at, self.discharged_at or self.registered_at)


def first_coming(event: events.TaskAdded) -> TaskState:
    """Return the state of a new task (001 First Startup)."""
    return TaskState(
        name=event.task_name,
        registered_at=event.at,
        boot_at=event.boot_at,
        paused_since=event.paused_since,
        paused_until=event.paused_until,
    )


@singledispatch
def apply(event: events.Event, state: TaskState) -> TaskState:
    """Return the state after an event; most events change nothing."""
    return state


@apply.register
def _overridden(event: events.TaskOverridden, state: TaskState) -> TaskState:
    return TaskState(
        name=state.name,
        registered_at=event.at,
        boot_at=event.boot_at,
        paused_since=event.at if state.paused_since is not None else None,
        paused_until=state.paused_until,
        skip_at=state.skip_at,
        running=state.running,
        run_count=state.run_count,
    )


@apply.register
def _started(event: events.TaskRunStarted, state: TaskState) -> TaskState:
    if event.reason == "backfill":
        # A backfill is independent of the schedule: pending occurrences stay pending.
        return replace(state, running=True, run_count=state.run_count + 1)
    return replace(
        state,
        last_attempt_at=event.actual_time,
        pending_retry_until=None,
        discharged_at=max(state.mark, event.discharged_at or state.mark),
        occurrence_at=event.scheduled_time,
        attempt=event.attempt,
        boot_at=None,
        orphaned=False,
        run_requested_at=None,
        running=True,
        waiting=max(state.waiting - (event.waited is not None), 0),
        run_count=state.run_count + 1,
    )


@apply.register
def _completed(event: events.TaskRunCompleted, state: TaskState) -> TaskState:
    if event.history_only:
        return replace(state, freed_at=event.at, running=event.others)
    return replace(
        state,
        last_success_at=event.at,
        freed_at=event.at,
        failures=0,
        interruptions=0,
        running=event.others,
    )


@apply.register
def _failed(event: events.TaskRunFailed, state: TaskState) -> TaskState:
    if event.history_only:
        return replace(state, freed_at=event.at, running=event.others)
    return replace(
        state,
        pending_retry_until=(state.pending_retry_until if event.overtaken else event.next_retry_at),
        freed_at=event.at,
        failures=state.failures + 1,
        interruptions=0,
        running=event.others,
    )


@apply.register
def _cancelled(event: events.TaskRunCancelled, state: TaskState) -> TaskState:
    return replace(state, freed_at=event.at, interruptions=0, running=event.others)


@apply.register
def _interrupted(event: events.TaskRunInterrupted, state: TaskState) -> TaskState:
    return replace(
        state,
        orphaned=event.restarts or state.orphaned,
        interruptions=state.interruptions + event.restarts,
        running=event.others,
    )


@apply.register
def _waiting(event: events.TaskRunWaiting, state: TaskState) -> TaskState:
    return replace(_accounted(state, event.scheduled_time), waiting=state.waiting + 1, boot_at=None)


@apply.register
def _cancel_requested(event: events.TaskRunCancelRequested, state: TaskState) -> TaskState:
    return replace(state, waiting=max(state.waiting - event.waits, 0))


@apply.register
def _skipped(event: events.TaskSkipped, state: TaskState) -> TaskState:
    skip_at = None if event.reason == "skip_next" else state.skip_at
    return _accounted(replace(state, skip_at=skip_at), event.scheduled_time)


def _accounted(state: TaskState, occurrence: datetime) -> TaskState:
    boot_at = None if state.boot_at == occurrence else state.boot_at
    return replace(state, discharged_at=max(state.mark, occurrence), boot_at=boot_at)


@apply.register
def _mark_reset(event: events.TaskHighWaterMarkReset, state: TaskState) -> TaskState:
    def believed(instant: datetime | None) -> datetime | None:
        return None if instant is None else min(instant, event.at)

    return replace(
        state,
        registered_at=min(state.registered_at, event.at),
        discharged_at=min(state.mark, event.at),
        pending_retry_until=event.pending_retry_until,
        # An occurrence ahead of the clock will occur again; its attempts start at 1 then.
        occurrence_at=believed(state.occurrence_at),
        boot_at=believed(state.boot_at),
        paused_since=believed(state.paused_since),
    )


@apply.register
def _moved(event: events.TaskRescheduled, state: TaskState) -> TaskState:
    later = timedelta(seconds=event.seconds)
    has_mark = state.mark > state.registered_at
    return replace(
        state,
        discharged_at=state.mark + later if has_mark else state.discharged_at,
        skip_at=None if state.skip_at is None else state.skip_at + later,
    )


@apply.register
def _paused(event: events.TaskPaused, state: TaskState) -> TaskState:
    return replace(state, paused_since=state.paused_since or event.at, paused_until=event.until)


@apply.register
def _paused_by_failures(event: events.TaskPausedByFailures, state: TaskState) -> TaskState:
    return replace(state, paused_since=state.paused_since or event.at, paused_until=None)


def last_paused(state: TaskState, at: datetime) -> datetime:
    """Return the last instant of a pause that ends at an instant.

    A pause that expires ends before the occurrence at its end: a task that is paused until
    seven runs at seven.
    """
    return at if state.paused_until is None else min(at, state.paused_until - _TICK)


@apply.register
def _resumed(event: events.TaskResumed, state: TaskState) -> TaskState:
    mark = max(state.mark, last_paused(state, event.at))
    return replace(state, paused_since=None, paused_until=None, discharged_at=mark, boot_at=None)


@apply.register
def _run_requested(event: events.TaskRunRequested, state: TaskState) -> TaskState:
    return replace(state, run_requested_at=event.at)


@apply.register
def _skip_requested(event: events.TaskSkipRequested, state: TaskState) -> TaskState:
    return replace(state, skip_at=event.scheduled_time)


@apply.register
def _retry_cleared(event: events.TaskRetryCleared, state: TaskState) -> TaskState:
    return replace(state, pending_retry_until=None)


@dataclass(frozen=True, slots=True)
class Story:
    """A state, and the events of a decision that led to it."""

    state: TaskState
    events: tuple[TaskEvent, ...] = ()

    def then(self, *following: TaskEvent) -> Story:
        """Return the state after more events."""
        if not following:
            return self
        state = self.state
        for event in following:
            state = apply(event, state)
        return Story(state, self.events + following)


# --- plain data ---


@dataclass(frozen=True, kw_only=True)
class StoredState(TaskState):
    """A task's state with the part of its declaration that a stored record has.

    Args:
        cron: raw text of the expression.
        retry_delay: from the end of a failed run.
        timezone: IANA name, ``None`` if the record has none.
        dialect: of the expression.
        scheduler_identifier: of the deployment it belongs to (001 Scheduler Identifier).
    """

    cron: str
    retry_delay: timedelta
    timezone: str | None = None
    dialect: str = "posix"
    scheduler_identifier: str | None = None


_INSTANTS = {
    "last_attempt_at": "lastAttemptAt",
    "last_success_at": "lastSuccessAt",
    "pending_retry_until": "pendingRetryUntil",
    "discharged_at": "dischargedAt",
    "occurrence_at": "occurrenceAt",
    "freed_at": "freedAt",
    "boot_at": "bootAt",
    "paused_since": "pausedSince",
    "paused_until": "pausedUntil",
    "run_requested_at": "runRequestedAt",
    "skip_at": "skipAt",
}
_COUNTS = {
    "attempt": "attempt",
    "failures": "failures",
    "interruptions": "interruptions",
    "waiting": "waiting",
    "run_count": "runCount",
}
_FLAGS = {"orphaned": "orphaned", "running": "running"}


def serialize(state: StoredState) -> dict[str, Any]:
    """Return a state as JSON-native data, in the spelling of the specification."""
    whole, rest = divmod(state.retry_delay, _MILLISECOND)
    data: dict[str, Any] = {
        "name": state.name,
        "cronExpression": state.cron,
        "dialect": state.dialect,
        "timezone": state.timezone,
        "retryDelayMs": whole,
        "schedulerIdentifier": state.scheduler_identifier,
        "registeredAt": plain_instant(state.registered_at),
    }
    if rest:
        data["retryDelayRestUs"] = rest.microseconds
    data |= {key: plain_instant(getattr(state, field)) for field, key in _INSTANTS.items()}
    return data | {key: getattr(state, field) for field, key in (_COUNTS | _FLAGS).items()}


def deserialize(data: Any, registrations: Iterable[Any]) -> StoredState:
    """Read a state from plain data (001 Task State Management Errors).

    Name, expression and delay are required. If the record has no time of registration, no
    occurrence before its newest run is pending.

    Raises:
        TaskInvalidStructureError: the record is no object.
        TaskMissingFieldError: a required field is missing.
        TaskInvalidTypeError: a field is of another type.
        TaskInvalidValueError: a field has an invalid value, or the task is not
            registered.
    """
    stored = Stored(data)
    stored.require("name", "cronExpression", "retryDelayMs")
    name, cron = stored.text("name"), stored.text("cronExpression")
    delay = stored.delay("retryDelayMs")
    if name not in {_name_of(registration) for registration in registrations}:
        raise TaskInvalidValueError("name", name, "is not the name of a registered task")
    dialect = stored.text_or_none("dialect") or "posix"
    decode_cron(cron, dialect)
    values: dict[str, Any] = {field: stored.instant(key) for field, key in _INSTANTS.items()}
    newest = max(values["last_attempt_at"] or _EPOCH, values["last_success_at"] or _EPOCH)
    values |= {field: stored.count(key) for field, key in _COUNTS.items()}
    values |= {field: stored.flag(key) for field, key in _FLAGS.items()}
    return StoredState(
        name=name,
        cron=cron,
        retry_delay=delay + timedelta(microseconds=stored.count("retryDelayRestUs")),
        timezone=stored.text_or_none("timezone"),
        dialect=dialect,
        scheduler_identifier=stored.text_or_none("schedulerIdentifier"),
        registered_at=stored.instant("registeredAt") or newest,
        **values,
    )


def _name_of(registration: Any) -> Any:
    match registration:
        case [name, *_]:
            return name
        case Mapping():
            return registration.get("name")
    return getattr(registration, "name", registration)
