"""Decide about one task at one instant; pure.

A decision is a value: the events that follow from the state and the instant, among them at most
one start, and when to evaluate the task next. Order of the reasons to run: an interrupted run, a
retry, an occurrence, the boot obligation, a waiting run, an operator's request. The overlap
policy decides about an occurrence during a run (002 Overlap Policies).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from . import events
from .events import TaskEvent, TaskRunStarted
from .missed import (
    ON_TIME,
    account,
    boot_unserved,
    is_boot,
    left_out,
    overlapped,
    passed_over,
    too_late,
)
from .next_run import BELIEVABLE, bound, is_believable, look_ahead, may_start
from .overlap import (
    BACKLOG_WARNED_ABOVE,
    CONCURRENT,
    DEFERRING,
    POLICY_OF_SHORT_FORM,
    QUEUEING,
    ActiveRun,
    FollowUp,
    Policy,
    Skip,
    Start,
    Wait,
    decide_overlap,
)
from .retry import Retry
from .schedule import Schedule
from .state import Story, TaskState, last_paused

_OLDEST_PASS = timedelta(seconds=15)

Reason = Literal["orphaned", "retry", "due", "boot", "manual", "backfill"]

BACKFILL: Final = "backfill"
"""The reason of runs that are independent of the schedule: pending occurrences stay pending."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about one task.

    Args:
        state: the state after all events below.
        events: in causal order; the start, if any, is the last one.
        start: the start among them, or ``None``.
        next_run_at: the next occurrence that will run, or ``None``.
        wake_at: when to evaluate the task next, ``None`` for "at its next event".
    """

    state: TaskState
    events: tuple[TaskEvent, ...]
    start: TaskRunStarted | None
    next_run_at: datetime | None
    wake_at: datetime | None


class _Case(NamedTuple):
    """What a decision depends on besides the state."""

    schedule: Schedule
    now: datetime
    policy: Policy
    active: Sequence[ActiveRun]


def decide(
    state: TaskState,
    schedule: Schedule,
    retry: Retry,
    now: datetime,
    policy: Policy = POLICY_OF_SHORT_FORM,
    active: Sequence[ActiveRun] = (),
    catch_up_window: timedelta | None = None,
) -> Decision:
    """Decide for one task (001 Task State Transitions, 004 Obligation).

    Raises:
        CalendarError: an occurrence is due, and its calendar does not answer.
    """
    story, schedule = Story(state), bound(schedule, state)
    case = _Case(schedule, now, policy, active)
    if not state.running or policy not in DEFERRING:
        story = _expired_pause(_believed(story, retry, now, schedule), schedule, now)
        if story.state.paused_since:
            story = _manual(story, case)
        else:
            story = _due(story, case, catch_up_window)
    return settle(story, schedule, now, policy)


def settle(
    story: Story, schedule: Schedule, now: datetime, policy: Policy = POLICY_OF_SHORT_FORM
) -> Decision:
    """Return the decision with the next run of a task and its next evaluation."""
    schedule = bound(schedule, story.state)
    next_run_at, wake_at = look_ahead(story.state, schedule, now, policy)
    last = story.events[-1] if story.events else None
    begun = last if isinstance(last, events.TaskRunStarted) else None
    return Decision(story.state, story.events, begun, next_run_at, wake_at)


def _believed(story: Story, retry: Retry, now: datetime, schedule: Schedule) -> Story:
    """Reset a high-water mark or a retry that is too far ahead of the clock."""
    state, pending = story.state, story.state.pending_retry_until
    latest = retry.latest_retry_at(now)
    # If the last run ended in the past, another policy dated a retry that is further ahead.
    dated = state.freed_at is not None and state.freed_at <= now
    is_near = pending is None or dated or pending - latest <= BELIEVABLE
    if is_believable(state.mark, now, schedule) and is_near:
        return story
    return story.then(
        events.TaskHighWaterMarkReset(
            at=now,
            task_name=state.name,
            old_mark=state.mark,
            pending_retry_until=None if pending is None else min(pending, latest),
        )
    )


def _expired_pause(story: Story, schedule: Schedule, now: datetime) -> Story:
    until = story.state.paused_until
    if story.state.paused_since is None or until is None or until > now:
        return story
    return end_pause(story, schedule, until, author="", note="")


def end_pause(story: Story, schedule: Schedule, at: datetime, *, author: str, note: str) -> Story:
    """End a pause: account for its occurrences, none of which runs.

    See docs/semantics.md, "Pauses and manual runs".
    """
    state = story.state
    schedule = bound(schedule, state)
    last = last_paused(state, at)
    since = max(min(state.paused_since or last, last), state.mark)
    told: list[events.TaskEvent] = [
        *left_out(state, schedule, last),
        *boot_unserved(state, "disabled", at),
        *account(state, schedule, (state.mark, since), "no_scheduler", at),
        *account(state, schedule, (since, last), "disabled", at),
        events.TaskResumed(at=at, task_name=state.name, author=author, note=note),
    ]
    return story.then(*told)


def start_manually(
    story: Story, now: datetime, policy: Policy, active: Sequence[ActiveRun] = ()
) -> Story:
    """Start a task for an operator; due occurrences stay due."""
    owed = boot_unserved(story.state, "coalesced", now)
    return _start(_cancelling(story.then(*owed), policy, active, now), "manual", None, now)


def _manual(story: Story, case: _Case) -> Story:
    """Start a paused task only if an operator requested a run."""
    if story.state.run_requested_at is None or not may_start(story.state, case.policy):
        return story
    return _start(_cancelling(story, case.policy, case.active, case.now), "manual", None, case.now)


def _due(story: Story, case: _Case, catch_up_window: timedelta | None) -> Story:
    state, (schedule, now, policy, active) = story.state, case
    latest = schedule.latest_at_or_before(now)
    occurrence = latest if latest is not None and latest > state.mark else None
    if owed := occurrence or state.boot_at:
        schedule.calendar_at(owed)
    story = story.then(*left_out(state, schedule, now))
    newest = occurrence or _boot_since(state)
    if newest is not None and _is_too_late(state, newest, now, catch_up_window):
        story = story.then(*too_late(state, schedule, occurrence, now, policy))
        state, occurrence = story.state, None
    if _is_blocked(state, policy):
        return _blocked(story, state, occurrence, case)
    reason = _reason(state, occurrence, now)
    if occurrence is not None:
        story = story.then(*passed_over(state, schedule, occurrence, now, policy))
    if reason is None:
        return _next_in_line(story, reason, case)
    return _start(_cancelling(story, policy, active, now), reason, occurrence, now)


def _boot_since(state: TaskState) -> datetime | None:
    """Return since when the start of the registration's minute is pending."""
    return None if state.boot_at is None else max(state.boot_at, state.registered_at)


def _is_too_late(
    state: TaskState, occurrence: datetime, now: datetime, catch_up_window: timedelta | None
) -> bool:
    """Return whether an occurrence is older than the catch-up window."""
    if catch_up_window is None:
        return False
    longest, began, freed = max(catch_up_window, ON_TIME), state.last_attempt_at, state.freed_at
    # If a run of the task blocked the occurrence, its age counts from the end of that run.
    if freed is not None and (began is None or began - occurrence <= longest):
        occurrence = max(occurrence, freed)
    return now - occurrence > longest


def _is_blocked(state: TaskState, policy: Policy) -> bool:
    """Return whether something blocks an occurrence."""
    if policy in CONCURRENT:
        return False
    in_order = policy in QUEUEING and (state.orphaned or state.pending_retry_until is not None)
    return state.running or state.waiting > 0 or in_order


def _blocked(story: Story, before: TaskState, occurrence: datetime | None, case: _Case) -> Story:
    """Apply the overlap policy to a blocked occurrence, then continue with the blocking one."""
    if occurrence is not None or before.boot_at is not None:
        match decide_overlap(case.policy, case.active):
            case Skip(blocked_by):
                story = story.then(*overlapped(before, case.schedule, case.now, blocked_by))
            case Wait(behind):
                story = _queued(story, before, occurrence, case, behind)
            case Start() if case.policy in QUEUEING:
                # No run is active: the pending retry or the interrupted run goes first.
                story = _queued(story, before, occurrence, case, None)
            case Start() | FollowUp():
                # The occurrence stays due, so there is nothing to record.
                pass
    if story.state.running:
        return story
    reason = _reason(story.state, None, case.now)
    if reason in ("orphaned", "retry"):
        return _start(story, reason, None, case.now)
    return _next_in_line(story, reason, case)


def _next_in_line(story: Story, reason: Reason | None, case: _Case) -> Story:
    line = sorted((run for run in case.active if run.waiting), key=lambda run: run.scheduled_for)
    if line and story.state.pending_retry_until is None:
        return _start_waiting(story, line[0], case.now)
    return _start(story, "manual", None, case.now) if reason == "manual" else story


def _queued(
    story: Story, state: TaskState, occurrence: datetime | None, case: _Case, behind: int | None
) -> Story:
    """Queue an occurrence behind the runs before it."""
    now = case.now
    if occurrence is not None:
        story = story.then(*passed_over(state, case.schedule, occurrence, now, case.policy))
    waits_for = occurrence or state.boot_at
    assert waits_for is not None
    waiting = state.waiting + 1
    story = story.then(
        events.TaskRunWaiting(
            at=now,
            task_name=state.name,
            scheduled_time=waits_for,
            behind=behind,
            waiting=waiting,
            reason="boot" if is_boot(state, occurrence) else "due",
        )
    )
    if waiting <= BACKLOG_WARNED_ABOVE:
        return story
    return story.then(events.TaskBacklogGrowing(at=now, task_name=state.name, waiting=waiting))


def _reason(state: TaskState, occurrence: datetime | None, now: datetime) -> Reason | None:
    pending = state.pending_retry_until
    if state.orphaned:
        return "orphaned"
    if pending is not None and now >= pending:
        return "retry"
    if is_boot(state, occurrence):
        return "boot"
    if occurrence is not None:
        return "due"
    return "manual" if state.run_requested_at is not None else None


def _start_waiting(story: Story, run: ActiveRun, now: datetime) -> Story:
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


def _cancelling(story: Story, policy: Policy, active: Sequence[ActiveRun], now: datetime) -> Story:
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


def _start(story: Story, reason: Reason, occurrence: datetime | None, now: datetime) -> Story:
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
