"""Occurrences that did not run, each with its reason; none is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from . import events
from .next_run import bound
from .overlap import RULES, Policy
from .schedule import Schedule
from .state import TaskState

_TICK: Final = timedelta(microseconds=1)

ON_TIME: Final = timedelta(minutes=1)
"""A start within this time is on time and no catch-up."""

MISSED: Final = ("no_scheduler", "too_late", "broken", "held_up")
"""Reasons of occurrences that should have run and were not started in time."""


def left_out(state: TaskState, schedule: Schedule, until: datetime) -> list[events.TaskSkipped]:
    """Return the skipped occurrences since the mark, each with its reason."""
    return [
        *_lost(state, schedule, until),
        *_excluded(state, schedule, until),
        *_skipped(state, schedule, until),
    ]


def _excluded(state: TaskState, schedule: Schedule, until: datetime) -> list[events.TaskSkipped]:
    return [
        replace(
            _skip(state.name, "excluded", (day.first, day.last), day.count, until),
            calendar=day.calendar,
        )
        for day in schedule.excluded_between(state.mark, until)
    ]


def _skipped(state: TaskState, schedule: Schedule, until: datetime) -> list[events.TaskSkipped]:
    at = schedule.omitted
    if at is None or not state.mark < at <= until or not schedule.is_skipped_at(at):
        return []
    return [_skip(state.name, "skip_next", (at, at), 1, until)]


def _lost(state: TaskState, schedule: Schedule, until: datetime) -> list[events.TaskSkipped]:
    """Return the occurrences since the mark in gaps of the clock (``dst_skip``)."""
    return [
        events.TaskSkipped(
            at=until,
            task_name=state.name,
            reason="dst_skip",
            scheduled_time=lost.resumes_at,
            count=lost.count,
            detail=lost.civil.isoformat(),
        )
        for lost in schedule.lost_between(state.mark, until)
    ]


def passed_over(
    state: TaskState, schedule: Schedule, occurrence: datetime, now: datetime, policy: Policy
) -> list[events.TaskSkipped]:
    """Return the missed occurrences for which the newest one catches up."""
    told = [] if is_boot(state, occurrence) else boot_unserved(state, "no_scheduler", now)
    if schedule.next_after(state.mark) == occurrence:
        return told
    last = schedule.latest_at_or_before(occurrence - _TICK) or state.mark
    return [*told, *_missed(state, schedule, last, now, policy, "no_scheduler")]


def too_late(
    state: TaskState,
    schedule: Schedule,
    occurrence: datetime | None,
    now: datetime,
    policy: Policy,
) -> list[events.TaskSkipped]:
    """Return the occurrences if the newest of them is too old for a catch-up."""
    told = boot_unserved(state, "too_late", now)
    if occurrence is None:
        return told
    return [*told, *_missed(state, schedule, occurrence, now, policy, "too_late")]


def _missed(
    state: TaskState,
    schedule: Schedule,
    last: datetime,
    now: datetime,
    policy: Policy,
    reason: str,
) -> list[events.TaskSkipped]:
    """Return the missed occurrences up to an instant, with other reasons for those during a run."""
    freed = min(max(state.freed_at or state.mark, state.mark), last)
    during_a_run = RULES[policy].past_run_reason
    if not during_a_run:
        freed = state.mark
    # An operator may have run the task long after occurrences that no scheduler started.
    began = min(max(state.last_attempt_at or state.mark, state.mark), freed)
    return [
        *account(state, schedule, (state.mark, began), reason, now),
        *account(state, schedule, (began, freed), during_a_run, now),
        *account(state, schedule, (freed, last), reason, now),
    ]


def is_boot(state: TaskState, occurrence: datetime | None) -> bool:
    """Return whether a start is that of the registration's minute.

    A registration may end in the minute after the one it began in. Its start then serves the
    occurrence of that minute, and the one before it is not missed: it precedes the registration.
    """
    if state.boot_at is None:
        return False
    return occurrence is None or occurrence - state.registered_at <= ON_TIME


def with_causes(
    told: Iterable[events.TaskEvent],
    state: TaskState,
    schedule: Schedule,
    *,
    is_broken: bool,
    led_since: datetime | None,
) -> tuple[events.TaskEvent, ...]:
    """Return events with the true reasons of occurrences that a leader did not start.

    Args:
        told: the events of one decision.
        state: before the decision.
        schedule: of the task.
        is_broken: the task could not be evaluated until now.
        led_since: the time when the present leader took over, if known.
    """
    schedule = bound(schedule, state)
    found: list[events.TaskEvent] = []
    for each in told:
        if not isinstance(each, events.TaskSkipped) or each.reason != "no_scheduler":
            found.append(each)
        elif is_broken:
            found.append(replace(each, reason="broken"))
        else:
            found += _by_leader(each, state, schedule, led_since)
    return tuple(found)


def _by_leader(
    event: events.TaskSkipped, state: TaskState, schedule: Schedule, led_since: datetime | None
) -> list[events.TaskSkipped]:
    """Split a range of missed occurrences where the present leader took over."""
    first, last = event.scheduled_from or event.scheduled_time, event.scheduled_time
    if led_since is None or led_since > last:
        return [event]
    if led_since <= first:
        return [replace(event, reason="held_up")]
    before, taken = first - _TICK, led_since - _TICK
    return [
        *account(state, schedule, (before, taken), "no_scheduler", event.at),
        *account(state, schedule, (taken, last), "held_up", event.at),
    ]


def boot_unserved(state: TaskState, reason: str, now: datetime) -> list[events.TaskSkipped]:
    """Return the pending occurrence of the registration's minute as not run."""
    if state.boot_at is None:
        return []
    return [_skip(state.name, reason, (state.boot_at, state.boot_at), 1, now)]


def overlapped(
    state: TaskState, schedule: Schedule, now: datetime, blocked_by: int | None
) -> list[events.TaskSkipped]:
    """Return the occurrences during an active run (002 ``skip``)."""
    return [
        *boot_unserved(state, "overlap_skip", now),
        *account(state, schedule, (state.mark, now), "overlap_skip", now, blocked_by),
    ]


def account(
    state: TaskState,
    schedule: Schedule,
    span: tuple[datetime, datetime],
    reason: str,
    now: datetime,
    blocked_by: int | None = None,
) -> list[events.TaskSkipped]:
    """Return at most one event for the occurrences of a span that did not run."""
    after, until = span
    first = schedule.next_after(after) if until > after else None
    last = schedule.latest_at_or_before(until)
    if first is None or last is None or first > until:
        return []
    count = schedule.count_between(after, until)
    return [_skip(state.name, reason, (first, last), count, now, blocked_by)]


def _skip(
    name: str,
    reason: str,
    span: tuple[datetime, datetime],
    count: int,
    now: datetime,
    blocked_by: int | None = None,
) -> events.TaskSkipped:
    return events.TaskSkipped(
        at=now,
        task_name=name,
        reason=reason,
        scheduled_time=span[1],
        count=count,
        outcome="missed" if reason in MISSED else "skipped",
        scheduled_from=span[0] if count > 1 else None,
        blocked_by=blocked_by,
    )
