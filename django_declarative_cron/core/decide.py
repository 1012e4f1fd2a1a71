"""What is to be done for one task at one instant; pure.

The answer is a value: the events that follow from the state and the instant,
among them at most one start, and when to look again. Order of the reasons to
run: an interrupted run, a retry, an occurrence, the boot obligation, a person.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from . import events
from .events import TaskEvent, TaskRunStarted
from .retry import Retry
from .schedule import Schedule
from .state import TaskState, apply

Reason = Literal["orphaned", "retry", "due", "boot", "manual"]

BELIEVABLE = timedelta(minutes=5)
"""How far the clock may have stepped back before a mark is not believed."""

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows for one task.

    Args:
        state: the state after all events below.
        events: what happened, in causal order; the start, if any, is the last one.
        start: the start among them, or ``None``.
        next_run_at: the next occurrence that will run, ``None`` where none will.
        wake_at: when to look again, ``None`` for "when something happens to it".
    """

    state: TaskState
    events: tuple[TaskEvent, ...]
    start: TaskRunStarted | None
    next_run_at: datetime | None
    wake_at: datetime | None


def decide(state: TaskState, schedule: Schedule, retry: Retry, now: datetime) -> Decision:
    """Decide for one task (001 Task State Transitions, 004 Obligation).

    Args:
        state: as of the last event.
        schedule: its expression and zone.
        retry: its retry rule.
        now: the instant of the tick, aware UTC.
    """
    story = Story(state)
    if not state.running:
        story = _expired_pause(_believed(story, retry, now), schedule, now)
        story = _manual(story, now) if story.state.paused_since else _due(story, schedule, now)
    return settle(story, schedule, now)


def settle(story: Story, schedule: Schedule, now: datetime) -> Decision:
    """Say when a task runs next and when to look at it again.

    Args:
        story: its state and what led to it.
        schedule: its schedule.
        now: the instant of the tick.
    """
    next_run_at, wake_at = _ahead(story.state, schedule, now)
    last = story.events[-1] if story.events else None
    start = last if isinstance(last, events.TaskRunStarted) else None
    return Decision(story.state, story.events, start, next_run_at, wake_at)


def _ahead(
    state: TaskState, schedule: Schedule, now: datetime
) -> tuple[datetime | None, datetime | None]:
    if state.paused_since is not None:
        until = state.paused_until
        following = None if until is None else schedule.next_after(max(until, state.mark))
        wake = now if state.run_requested_at else until
    else:
        following = schedule.next_after(state.mark)
        wake = _wake_at(state, schedule, following, now)
    return following, None if state.running else wake


def _wake_at(
    state: TaskState, schedule: Schedule, following: datetime | None, now: datetime
) -> datetime | None:
    if state.orphaned or state.boot_at is not None or state.run_requested_at is not None:
        return now
    horizon = now if following is None else following
    lost = schedule.lost_between(state.mark, horizon)
    instants = [following, state.pending_retry_until, *(gap.resumes_at for gap in lost[:1])]
    return min((instant for instant in instants if instant is not None), default=None)


@dataclass(frozen=True, slots=True)
class Story:
    """A state and the events that led to it."""

    state: TaskState
    events: tuple[TaskEvent, ...] = ()

    def then(self, *following: TaskEvent) -> Story:
        """Let events happen.

        Args:
            following: what happens next, in causal order.
        """
        state = self.state
        for event in following:
            state = apply(event, state)
        return Story(state, self.events + following)


def _believed(story: Story, retry: Retry, now: datetime) -> Story:
    """Set back what lies further ahead than a believable step of the clock."""
    state, pending = story.state, story.state.pending_retry_until
    latest = retry.latest_retry_at(now)
    if state.mark - now <= BELIEVABLE and (pending is None or pending - latest <= BELIEVABLE):
        return story
    return story.then(
        events.TaskMarkReset(
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
    """End a pause: account for what fell under it; nothing runs for it (semantics 9).

    Args:
        story: of a paused task.
        schedule: its schedule.
        at: end of the pause.
        author: who ended it; empty where it expired.
        note: why.
    """
    state = story.state
    since = max(min(state.paused_since or at, at), state.mark)
    told: list[events.TaskEvent] = [
        *_lost(state, schedule, at),
        *_boot_unserved(state, "disabled", at),
        *_account(state, schedule, (state.mark, since), "no_scheduler", at),
        *_account(state, schedule, (since, at), "disabled", at),
        events.TaskResumed(at=at, task_name=state.name, author=author, note=note),
    ]
    return story.then(*told)


def _manual(story: Story, now: datetime) -> Story:
    """Start a paused task only where a person asked for it."""
    if story.state.run_requested_at is None:
        return story
    return _start(story, "manual", None, now)


def start_now(story: Story, now: datetime) -> Story:
    """Start a task for a person, whatever its schedule says; what is due stays due.

    Args:
        story: of a task that is not running.
        now: the instant of the start.
    """
    owed = _boot_unserved(story.state, "coalesced", now)
    return _start(story.then(*owed), "manual", None, now)


def _due(story: Story, schedule: Schedule, now: datetime) -> Story:
    state = story.state
    latest = schedule.latest_at_or_before(now)
    occurrence = latest if latest is not None and latest > state.mark else None
    reason = _reason(state, occurrence, now)
    story = story.then(*_lost(state, schedule, now))
    if occurrence is not None:
        story = story.then(*_passed_over(state, schedule, occurrence, now))
    return story if reason is None else _start(story, reason, occurrence, now)


def _reason(state: TaskState, occurrence: datetime | None, now: datetime) -> Reason | None:
    pending = state.pending_retry_until
    if state.orphaned:
        return "orphaned"
    if pending is not None and now >= pending:
        return "retry"
    if occurrence is not None:
        return "due"
    if state.boot_at is not None:
        return "boot"
    return "manual" if state.run_requested_at is not None else None


def _start(story: Story, reason: Reason, occurrence: datetime | None, now: datetime) -> Story:
    state = story.state
    repeats = occurrence is None and reason in ("retry", "orphaned")
    started = events.TaskRunStarted(
        at=now,
        task_name=state.name,
        scheduled_time=occurrence or _repeated(state, reason, now),
        actual_time=now,
        is_retry=reason == "retry",
        reason=reason,
        attempt=state.attempt + 1 if repeats else 1,
        discharged_at=occurrence or (state.boot_at if reason == "boot" else None),
        answers_request=state.run_requested_at is not None,
        run_count=state.run_count + 1,
    )
    return story.then(*_retry_told(state, reason, now), started)


def _repeated(state: TaskState, reason: Reason, now: datetime) -> datetime:
    """Give the occurrence of a start that no new occurrence asks for."""
    if reason == "boot" and state.boot_at is not None:
        return state.boot_at
    if reason == "manual" or state.occurrence_at is None:
        return now
    return state.occurrence_at


def _retry_told(state: TaskState, reason: Reason, now: datetime) -> tuple[events.TaskEvent, ...]:
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


def _lost(state: TaskState, schedule: Schedule, until: datetime) -> list[events.TaskSkipped]:
    """Tell of the gaps that swallowed occurrences since the mark (``dst_skip``)."""
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


def _passed_over(
    state: TaskState, schedule: Schedule, occurrence: datetime, now: datetime
) -> list[events.TaskSkipped]:
    """Account for the occurrences that the newest one is caught up for."""
    told = _boot_unserved(state, "no_scheduler", now)
    if schedule.next_after(state.mark) == occurrence:
        return told
    last = schedule.latest_at_or_before(occurrence - _TICK) or state.mark
    freed = min(max(state.freed_at or state.mark, state.mark), last)
    return [
        *told,
        *_account(state, schedule, (state.mark, freed), "coalesced", now),
        *_account(state, schedule, (freed, last), "no_scheduler", now),
    ]


def _boot_unserved(state: TaskState, reason: str, now: datetime) -> list[events.TaskSkipped]:
    if state.boot_at is None:
        return []
    return [_skip(state.name, reason, (state.boot_at, state.boot_at), 1, now)]


def _account(
    state: TaskState,
    schedule: Schedule,
    span: tuple[datetime, datetime],
    reason: str,
    now: datetime,
) -> list[events.TaskSkipped]:
    """Tell in at most one event which occurrences of a span did not run."""
    after, until = span
    first = schedule.next_after(after) if until > after else None
    last = schedule.latest_at_or_before(until)
    if first is None or last is None or first > until:
        return []
    count = schedule.count_between(after, until)
    return [_skip(state.name, reason, (first, last), count, now)]


def _skip(
    name: str, reason: str, span: tuple[datetime, datetime], count: int, now: datetime
) -> events.TaskSkipped:
    return events.TaskSkipped(
        at=now,
        task_name=name,
        reason=reason,
        scheduled_time=span[1],
        count=count,
        outcome="missed" if reason == "no_scheduler" else "skipped",
        scheduled_from=span[0] if count > 1 else None,
    )
