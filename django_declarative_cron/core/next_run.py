"""The next run of a task by its schedule, its next start, and the next evaluation of the task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from .overlap import CONCURRENT, DEFERRING, POLICY_OF_SHORT_FORM, QUEUEING, Policy
from .schedule import Schedule
from .state import TaskState, last_paused

BELIEVABLE = timedelta(minutes=5)
"""Clock steps back by no more than this keep the high-water mark."""


def is_believable(mark: datetime, now: datetime, schedule: Schedule) -> bool:
    """Return whether a mark ahead of the clock results from a small clock step or a spread."""
    return mark - now <= BELIEVABLE + schedule.offset


def bound(schedule: Schedule, state: TaskState) -> Schedule:
    """Return a schedule with the anchor and the skipped occurrence of a task."""
    return schedule.anchored(state.registered_at).omitting(state.skip_at)


def look_ahead(
    state: TaskState, schedule: Schedule, now: datetime, policy: Policy
) -> tuple[datetime | None, datetime | None]:
    """Return the next run of a task by its schedule, and when to evaluate the task next."""
    if state.paused_since is not None:
        until = state.paused_until
        following = None if until is None else _after_pause(state, schedule, until)
        wake = now if state.run_requested_at and may_start(state, policy) else until
    else:
        following = schedule.next_after(state.mark)
        wake = _wake_at(state, schedule, following, now, policy)
    return following, None if state.running and policy in DEFERRING else wake


def _after_pause(state: TaskState, schedule: Schedule, until: datetime) -> datetime | None:
    return schedule.next_after(max(last_paused(state, until), state.mark))


def may_start(state: TaskState, policy: Policy) -> bool:
    """Return whether another run of a task may start now."""
    return not state.running or policy in CONCURRENT


def _wake_at(
    state: TaskState,
    schedule: Schedule,
    following: datetime | None,
    now: datetime,
    policy: Policy,
) -> datetime | None:
    is_pending = state.orphaned or state.run_requested_at is not None
    queues = state.waiting > 0 and state.pending_retry_until is None
    # The last condition: the clock was set back during a run.
    is_at_once = state.boot_at is not None or not is_believable(state.mark, now, schedule)
    if is_at_once or ((is_pending or queues) and may_start(state, policy)):
        return now
    horizon = now if following is None else following
    gaps = schedule.lost_between(state.mark, horizon)
    pending = state.pending_retry_until if may_start(state, policy) else None
    excluded = schedule.next_excluded(state.mark, following)
    instants = [
        *(following, pending, None if excluded is None else excluded.last),
        *(gap.resumes_at for gap in gaps[:1]),
        _skipped(state, schedule),
    ]
    return min((instant for instant in instants if instant is not None), default=None)


def _skipped(state: TaskState, schedule: Schedule) -> datetime | None:
    """Return the occurrence that an operator skips, if it is still to come."""
    at = state.skip_at
    return at if at is not None and at > state.mark and schedule.is_skipped_at(at) else None


@dataclass(frozen=True, slots=True)
class NextStart:
    """The next start of a task.

    Args:
        at: the instant; one that has passed means as soon as a scheduler can.
        reason: ``retry`` for a retry, ``due`` for an occurrence.
    """

    at: datetime
    reason: Literal["retry", "due"]


def next_start(
    state: TaskState, next_run_at: datetime | None, policy: Policy = POLICY_OF_SHORT_FORM
) -> NextStart | None:
    """Return the next start, or ``None`` where none will come by itself.

    An occurrence pre-empts a retry that would come after it, except under a policy that queues:
    there it waits for the retry. A retry that falls under a pause starts at the end of the pause.
    """
    retry = state.pending_retry_until
    if state.paused_since is not None:
        if state.paused_until is None:
            return None
        retry = None if retry is None else max(retry, state.paused_until)
    if retry is not None and (next_run_at is None or retry <= next_run_at or policy in QUEUEING):
        return NextStart(retry, "retry")
    return None if next_run_at is None else NextStart(next_run_at, "due")
