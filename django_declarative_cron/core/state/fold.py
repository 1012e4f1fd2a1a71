"""One task's state, as a fold over events.

``apply`` alone says what a start, a success, a failure, an interruption or an
override mean. ``decide`` reads its result; the judge reads the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import singledispatch
from typing import Any

from .. import events

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class TaskState:
    """What is known of one task. All instants are aware UTC.

    Args:
        name: the task's name.
        registered_at: first coming or newest override; nothing is owed before it.
        last_attempt_at: start of the newest attempt.
        last_success_at: end of the newest success, never erased by a failure.
        pending_retry_until: from when a retry may start.
        discharged_at: the high-water mark; every occurrence up to it is accounted for.
        occurrence_at: the occurrence of the newest start; a retry repeats it.
        attempt: number of the newest start for ``occurrence_at``, from 1.
        failures: failures in a row.
        interruptions: runs in a row whose process died.
        freed_at: end of the newest run.
        boot_at: the occurrence owed since registration, until a start.
        orphaned: the newest run was interrupted and is to be restarted.
        paused_since: start of a pause in force.
        paused_until: its end, where it has one.
        run_requested_at: when a person asked for a run that has not started.
        skip_at: the occurrence that a person lets pass.
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

    def but(self, **changes: Any) -> TaskState:
        """Return the same state with other values."""
        return self.having(vars(self) | changes)

    @classmethod
    def having(cls, values: Mapping[str, Any]) -> TaskState:
        """Return a state of values that need no check: every run of a task makes four of them."""
        state = object.__new__(cls)
        # Freezing a field costs more than the field; a dictionary is filled at once.
        vars(state).update(values)
        return state

    @property
    def mark(self) -> datetime:
        """Return the instant up to which nothing is owed any more."""
        return max(self.registered_at, self.discharged_at or self.registered_at)


def first_coming(event: events.TaskAdded) -> TaskState:
    """Return the state of a task that was never seen before (001 First Startup)."""
    return TaskState(
        name=event.task_name,
        registered_at=event.at,
        boot_at=event.boot_at,
        paused_since=event.paused_since,
        paused_until=event.paused_until,
    )


@singledispatch
def apply(event: events.Event, state: TaskState) -> TaskState:
    """Return the state after an event; an event that means nothing to it changes nothing."""
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
        # It is beside the schedule: what is owed stays owed.
        return state.but(running=True, run_count=state.run_count + 1)
    return state.but(
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
        return state.but(freed_at=event.at, running=event.others)
    return state.but(
        last_success_at=event.at,
        freed_at=event.at,
        failures=0,
        interruptions=0,
        running=event.others,
    )


@apply.register
def _failed(event: events.TaskRunFailed, state: TaskState) -> TaskState:
    if event.history_only:
        return state.but(freed_at=event.at, running=event.others)
    return state.but(
        pending_retry_until=(state.pending_retry_until if event.overtaken else event.next_retry_at),
        freed_at=event.at,
        failures=state.failures + 1,
        interruptions=0,
        running=event.others,
    )


@apply.register
def _cancelled(event: events.TaskRunCancelled, state: TaskState) -> TaskState:
    return state.but(freed_at=event.at, interruptions=0, running=event.others)


@apply.register
def _interrupted(event: events.TaskRunInterrupted, state: TaskState) -> TaskState:
    return state.but(
        orphaned=event.restarts or state.orphaned,
        interruptions=state.interruptions + event.restarts,
        running=event.others,
    )


@apply.register
def _waiting(event: events.TaskRunWaiting, state: TaskState) -> TaskState:
    return _accounted(state, event.scheduled_time).but(waiting=state.waiting + 1, boot_at=None)


@apply.register
def _cancel_requested(event: events.TaskRunCancelRequested, state: TaskState) -> TaskState:
    return state.but(waiting=max(state.waiting - event.waits, 0))


@apply.register
def _skipped(event: events.TaskSkipped, state: TaskState) -> TaskState:
    skip_at = None if event.reason == "skip_next" else state.skip_at
    return _accounted(state.but(skip_at=skip_at), event.scheduled_time)


def _accounted(state: TaskState, occurrence: datetime) -> TaskState:
    boot_at = None if state.boot_at == occurrence else state.boot_at
    return state.but(discharged_at=max(state.mark, occurrence), boot_at=boot_at)


@apply.register
def _mark_reset(event: events.TaskHighWaterMarkReset, state: TaskState) -> TaskState:
    def believed(instant: datetime | None) -> datetime | None:
        return None if instant is None else min(instant, event.at)

    return state.but(
        registered_at=min(state.registered_at, event.at),
        discharged_at=min(state.mark, event.at),
        pending_retry_until=event.pending_retry_until,
        # An occurrence ahead of the clock comes again, and its runs are numbered anew then.
        occurrence_at=believed(state.occurrence_at),
        boot_at=believed(state.boot_at),
        paused_since=believed(state.paused_since),
    )


@apply.register
def _moved(event: events.TaskRescheduled, state: TaskState) -> TaskState:
    later = timedelta(seconds=event.seconds)
    has_mark = state.mark > state.registered_at
    return state.but(
        discharged_at=state.mark + later if has_mark else state.discharged_at,
        skip_at=None if state.skip_at is None else state.skip_at + later,
    )


@apply.register
def _paused(event: events.TaskPaused, state: TaskState) -> TaskState:
    return state.but(paused_since=state.paused_since or event.at, paused_until=event.until)


@apply.register
def _paused_by_failures(event: events.TaskPausedByFailures, state: TaskState) -> TaskState:
    return state.but(paused_since=state.paused_since or event.at, paused_until=None)


def last_paused(state: TaskState, at: datetime) -> datetime:
    """Return the last instant under a pause that ends at an instant.

    A pause that runs out ends before the occurrence at its end, so that "until seven" runs at
    seven.
    """
    return at if state.paused_until is None else min(at, state.paused_until - _TICK)


@apply.register
def _resumed(event: events.TaskResumed, state: TaskState) -> TaskState:
    mark = max(state.mark, last_paused(state, event.at))
    return state.but(paused_since=None, paused_until=None, discharged_at=mark, boot_at=None)


@apply.register
def _run_requested(event: events.TaskRunRequested, state: TaskState) -> TaskState:
    return state.but(run_requested_at=event.at)


@apply.register
def _skip_requested(event: events.TaskSkipRequested, state: TaskState) -> TaskState:
    return state.but(skip_at=event.scheduled_time)


@apply.register
def _retry_cleared(event: events.TaskRetryCleared, state: TaskState) -> TaskState:
    return state.but(pending_retry_until=None)
