"""Operator actions: pause, resume, skip the next run, run now, clear the retry state."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime

from ..conf import options
from ..core import events
from ..core.decide import end_pause, settle
from ..core.missed import account, left_out, with_causes
from ..core.next_run import bound
from ..core.schedule import Schedule
from ..core.state import Story, TaskState
from ..exceptions import TaskTryDeserializeError
from ..models import ScheduledTask, TaskOverride
from ..signals import publish_on_commit
from . import active_runs, database, rows
from .database import naming_what_is_held
from .guard import LockedDeployment, locked, outsider

Kind = TaskOverride.Kind
Change = Callable[[Story, Schedule, ScheduledTask], Story | None]


@dataclass(frozen=True, slots=True)
class Act:
    """The author, time and reason of an action.

    Args:
        note: why, for the audit.
        author_key: primary key of the user, where there is one.
        reason: why the scheduler itself does it; empty for people's acts.
    """

    author: str
    at: datetime
    note: str = ""
    author_key: str = ""
    reason: str = ""


def pause(names: Collection[str], act: Act, *, until: datetime | None = None) -> list[str]:
    """Pause tasks: no occurrence runs until they are resumed.

    Returns:
        the names it took effect on.
    """

    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story:
        # A disabled declaration has no end, even if a person names one.
        end = until if row.enabled else None
        return story.then(
            *_missed_while_broken(story, schedule, row, act.at),
            events.TaskPaused(
                at=act.at, task_name=story.state.name, author=act.author, note=act.note, until=end
            ),
        )

    return _act(names, act, Kind.PAUSE, change, until=until)


def _missed_while_broken(
    story: Story, schedule: Schedule, row: ScheduledTask, now: datetime
) -> list[events.TaskSkipped]:
    """Record the missed occurrences of a broken task before the pause hides that it broke."""
    if not row.broken_reason or row.paused_since is not None:
        return []
    state = story.state
    schedule = bound(schedule, state)
    span = (state.mark, now)
    return [*left_out(state, schedule, now), *account(state, schedule, span, "no_scheduler", now)]


def skip_next(names: Collection[str], act: Act) -> list[str]:
    """Skip the next occurrence of tasks; everything else goes on, retries too.

    Returns:
        the names it took effect on; not a paused task, nor one with its next occurrence
        skipped already, or without a future occurrence.
    """

    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story | None:
        state = story.state
        if state.paused_since is not None or not row.enabled or _is_skipped(state, act.at):
            return None
        following = schedule.next_after(max(state.mark, act.at))
        return None if following is None else story.then(_skip(state, act, following))

    return _act(names, act, Kind.SKIP, change)


def unskip(names: Collection[str], act: Act) -> list[str]:
    """Undo the skip of the next occurrence.

    Returns:
        the names of which an occurrence was to be skipped.
    """

    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story | None:
        if not _is_skipped(story.state, act.at):
            return None
        return story.then(_skip(story.state, act, None))

    return _act(names, act, Kind.UNSKIP, change)


def _skip(state: TaskState, act: Act, occurrence: datetime | None) -> events.TaskSkipRequested:
    return events.TaskSkipRequested(
        at=act.at,
        task_name=state.name,
        author=act.author,
        note=act.note,
        scheduled_time=occurrence,
    )


def _is_skipped(state: TaskState, now: datetime) -> bool:
    """Return whether an occurrence is to be skipped that is still to come."""
    return state.skip_at is not None and state.skip_at > max(state.mark, now)


def resume(names: Collection[str], act: Act) -> list[str]:
    """End pauses; occurrences that fell into them are recorded and do not run.

    Returns:
        the names it took effect on; a task disabled by its declaration is none of them.
    """

    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story | None:
        if story.state.paused_since is None or not row.enabled:
            return None
        return end_pause(story, schedule, act.at, author=act.author, note=act.note)

    return _act(names, act, Kind.RESUME, change)


def request_run(names: Collection[str], act: Act) -> list[str]:
    """Request one run now, apart from the schedule; a paused task runs too.

    Returns:
        the names it took effect on.
    """
    return _request(names, act, only_retrying=False)


def retry_now(names: Collection[str], act: Act) -> list[str]:
    """Ask for one run now in the place of a pending retry: its start ends the wait.

    Returns:
        the names that had a retry pending.
    """
    text = f"Retried at once: {act.note}" if act.note else "Retried at once."
    return _request(names, replace(act, note=text), only_retrying=True)


def _request(names: Collection[str], act: Act, *, only_retrying: bool) -> list[str]:
    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story | None:
        if only_retrying and story.state.pending_retry_until is None:
            return None
        return story.then(
            events.TaskRunRequested(
                at=act.at, task_name=story.state.name, author=act.author, note=act.note
            )
        )

    return _act(names, act, Kind.RUN, change)


def clear_retry(names: Collection[str], act: Act) -> list[str]:
    """Drop a pending retry; the next occurrence runs as declared.

    Returns:
        the names that had a retry pending.
    """

    def change(story: Story, schedule: Schedule, row: ScheduledTask) -> Story | None:
        pending = story.state.pending_retry_until
        if pending is None:
            return None
        return story.then(
            events.TaskRetryCleared(
                at=act.at,
                task_name=story.state.name,
                author=act.author,
                note=act.note,
                pending_retry_until=pending,
            )
        )

    return _act(names, act, Kind.CLEAR_RETRY, change)


def _act(
    names: Collection[str],
    act: Act,
    kind: TaskOverride.Kind,
    change: Change,
    *,
    until: datetime | None = None,
) -> list[str]:
    using, deployment = database.alias(), options().DEPLOYMENT
    with (
        naming_what_is_held(using, deployment),
        locked(outsider(), tasks=len(names)) as held,
    ):
        if held is None:
            return []
        tasks = database.current(using, held.tasks.filter(name__in=names).order_by("name"))
        changed, told = _changed(held, list(tasks), act, change)
        _, told = active_runs.write_decided(held, changed, told, act.at)
        audit(held, changed, act, kind, until=until)
        publish_on_commit(told, using)
    return [row.name for row in changed]


def _changed(
    held: LockedDeployment, tasks: list[ScheduledTask], act: Act, change: Change
) -> tuple[list[ScheduledTask], list[events.Event]]:
    changed: list[ScheduledTask] = []
    told: list[events.Event] = []
    for row in tasks:
        try:
            terms = rows.terms_of(row)
        except TaskTryDeserializeError:
            continue
        state, is_broken = rows.state_of(row), bool(row.broken_reason)
        schedule = terms.schedule
        story = change(Story(state), schedule, row)
        if story is not None:
            rows.take(row, settle(story, schedule, act.at, terms.overlap_policy))
            changed.append(row)
            told += with_causes(
                story.events, state, schedule, is_broken=is_broken, led_since=held.row.led_since
            )
    return changed, told


def audit(
    held: LockedDeployment,
    changed: list[ScheduledTask],
    act: Act | Callable[[ScheduledTask], Act],
    kind: TaskOverride.Kind,
    *,
    until: datetime | None = None,
) -> None:
    """Record the actions; a new pause or a resume ends earlier pauses."""
    told = [(row, act(row) if callable(act) else act) for row in changed]
    if kind in _ENDED_BY and told:
        _end(held, changed, max(each.at for _, each in told), _ENDED_BY[kind])
    acts = [
        entry(held.row.pk, row.name, kind, each, row.skip_at if kind is Kind.SKIP else until)
        for row, each in told
    ]
    database.insert(held.using, acts)


def entry(
    scheduler: int, name: str, kind: TaskOverride.Kind, act: Act, until: datetime | None = None
) -> TaskOverride:
    stays_open = kind in (Kind.PAUSE, Kind.RUN, Kind.SKIP)
    return TaskOverride(
        scheduler_id=scheduler,
        task_name=name,
        kind=kind,
        until=until,
        reason=act.reason,
        note=act.note,
        author=act.author[:255],
        author_key=act.author_key[:255],
        created_at=act.at,
        ended_at=None if stays_open else act.at,
    )


_ENDED_BY = {
    Kind.PAUSE: Kind.PAUSE,
    Kind.RESUME: Kind.PAUSE,
    Kind.SKIP: Kind.SKIP,
    Kind.UNSKIP: Kind.SKIP,
}
"""Which open acts are over when another one is done."""


def _end(
    held: LockedDeployment, changed: list[ScheduledTask], at: datetime, kind: TaskOverride.Kind
) -> None:
    acts = held.acts.filter(
        kind=kind,
        ended_at=None,
        task_name__in=[row.name for row in changed],
    )
    acts.update(ended_at=at)
