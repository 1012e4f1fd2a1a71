"""Start a run: its occurrence and attempt, and the runs and retries that it ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from . import events
from .overlap import ActiveRun, Policy, Start, decide_overlap
from .state import Story, TaskState

_OLDEST_PASS = timedelta(seconds=15)

Reason = Literal["orphaned", "retry", "due", "boot", "manual", "backfill"]

BACKFILL: Final = "backfill"
"""The reason of runs that are independent of the schedule: pending occurrences stay pending."""


def start_waiting(story: Story, run: ActiveRun, now: datetime) -> Story:
    """Start a waiting run."""
    state = story.state
    return story.then(
        events.TaskRunStarted(
            at=now,
            task_name=state.name,
            scheduled_time=run.scheduled_for,
            actual_time=_dated(state, now),
            reason=run.reason,
            answers_request=state.run_requested_at is not None,
            run_count=state.run_count + 1,
            waited=run.run,
        )
    )


def cancelling(story: Story, policy: Policy, active: Sequence[ActiveRun], now: datetime) -> Story:
    """Request the cancellation of the runs that a new run replaces."""
    answer = decide_overlap(policy, active)
    if not isinstance(answer, Start):
        return story
    name, waits = story.state.name, {run.run: run.waiting for run in active}
    return story.then(
        *(
            events.TaskRunCancelRequested(
                at=now, task_name=name, run=run, reason=policy, waits=waits[run]
            )
            for run in answer.cancels
        )
    )


def start(story: Story, reason: Reason, occurrence: datetime | None, now: datetime) -> Story:
    """Start a run."""
    state = story.state
    repeats = occurrence is None and reason in ("retry", "orphaned")
    started = events.TaskRunStarted(
        at=now,
        task_name=state.name,
        scheduled_time=occurrence or _repeated(state, reason, now),
        actual_time=_dated(state, now),
        is_retry=reason == "retry",
        reason=reason,
        attempt=state.attempt + 1 if repeats else 1,
        discharged_at=occurrence or (state.boot_at if reason == "boot" else None),
        answers_request=state.run_requested_at is not None,
        run_count=state.run_count + 1,
    )
    return story.then(*_retry_events(state, reason, now), started)


def backfill(story: Story, occurrence: datetime, attempt: int, now: datetime) -> Story:
    """Start a run of a past occurrence, independently of the schedule."""
    state = story.state
    return story.then(
        events.TaskRunStarted(
            at=now,
            task_name=state.name,
            scheduled_time=occurrence,
            actual_time=_dated(state, now),
            reason=BACKFILL,
            attempt=attempt,
            run_count=state.run_count + 1,
        )
    )


def _dated(state: TaskState, now: datetime) -> datetime:
    """Return the instant of a start, no earlier than the end of the previous run.

    A tick may wait for the database while a run ends. An end that is further ahead is from before
    the clock was set back.
    """
    freed = state.freed_at
    return freed if freed is not None and now < freed <= now + _OLDEST_PASS else now


def _repeated(state: TaskState, reason: Reason, now: datetime) -> datetime:
    """Return the occurrence of a start without a new occurrence."""
    if reason == "boot" and state.boot_at is not None:
        return state.boot_at
    if reason == "manual" or state.occurrence_at is None:
        return now
    return state.occurrence_at


def _retry_events(state: TaskState, reason: Reason, now: datetime) -> tuple[events.TaskEvent, ...]:
    name, pending = state.name, state.pending_retry_until
    if reason == "retry":
        return (events.TaskRetryStarted(at=now, task_name=name, retry_count=state.attempt),)
    if pending is None:
        return ()
    return (
        events.TaskRetryPreempted(
            at=now, task_name=name, reason=reason, pending_retry_until=pending
        ),
    )
