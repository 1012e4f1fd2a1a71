"""When a task runs next by its schedule, and when the scheduler has to look at it again; pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from .overlap import CONCURRENT, Policy
from .schedule import Schedule
from .state import TaskState, last_paused

BELIEVABLE = timedelta(minutes=5)
"""How far a mark may lie ahead of the clock: it was set back by no more."""


def is_believable(mark: datetime, now: datetime, schedule: Schedule) -> bool:
    """Return whether a mark may lie ahead of the clock, for a small step of it or for a spread."""
    return mark - now <= BELIEVABLE + schedule.offset


def bound(schedule: Schedule, state: TaskState) -> Schedule:
    """Return a schedule as it counts for a task now."""
    return schedule.anchored(state.registered_at).omitting(state.skip_at)


def look_ahead(
    state: TaskState, schedule: Schedule, now: datetime, policy: Policy
) -> tuple[datetime | None, datetime | None]:
    """Return when a task runs next by its schedule, and when to look at it again."""
    if state.paused_since is not None:
        until = state.paused_until
        following = None if until is None else _after_pause(state, schedule, until)
        wake = now if state.run_requested_at and may_start(state, policy) else until
    else:
        following = schedule.next_after(state.mark)
        wake = _wake_at(state, schedule, following, now, policy)
    return following, None if state.running and policy == "coalesce" else wake


def _after_pause(state: TaskState, schedule: Schedule, until: datetime) -> datetime | None:
    return schedule.next_after(max(last_paused(state, until), state.mark))


def may_start(state: TaskState, policy: Policy) -> bool:
    """Return whether no run of a task keeps another one from starting."""
    return not state.running or policy in CONCURRENT


def _wake_at(
    state: TaskState,
    schedule: Schedule,
    following: datetime | None,
    now: datetime,
    policy: Policy,
) -> datetime | None:
    owes = state.orphaned or state.run_requested_at is not None
    queues = state.waiting > 0 and state.pending_retry_until is None
    # The clock was set back while it ran.
    is_at_once = state.boot_at is not None or not is_believable(state.mark, now, schedule)
    if is_at_once or ((owes or queues) and may_start(state, policy)):
        return now
    horizon = now if following is None else following
    gaps = schedule.lost_between(state.mark, horizon)
    pending = state.pending_retry_until if may_start(state, policy) else None
    excluded = schedule.next_excluded(state.mark, following)
    instants = [
        *(following, pending, None if excluded is None else excluded.last),
        *(gap.resumes_at for gap in gaps[:1]),
        _let_pass(state, schedule),
    ]
    return min((instant for instant in instants if instant is not None), default=None)


def _let_pass(state: TaskState, schedule: Schedule) -> datetime | None:
    """Return the occurrence that a person lets pass, where it is one and still to come."""
    at = state.skip_at
    return at if at is not None and at > state.mark and schedule.is_skipped_at(at) else None
