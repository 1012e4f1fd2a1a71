"""Writing a plan: rows of tasks that come, change, or go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from ..core import events
from ..core.decide import Decision, Story, end_pause, settle
from ..core.declaration import Declaration
from ..core.reconcile import Override, Plan, Stored
from ..models import ScheduledTask, TaskOverride, TaskRun
from ..signals import is_heard
from . import adding, bulk, marks, moving, outbox, overlaps, passing, rows
from .coming import Known, open_pauses, scheduling
from .database import chunks
from .guard import Locked, Member


def apply(held: Locked, member: Member, todo: Plan, now: datetime) -> list[events.Event]:
    """Write a plan.

    Args:
        held: the locked row of the deployment.
        member: on whose behalf.
        todo: what is new, updated, overridden, orphaned.
        now: the instant.

    Returns:
        what happened, in causal order.
    """
    told: list[events.Event] = []
    if not todo.is_empty:
        told += outbox.tell(held, member.using, _remove(held, member, todo.orphaned, now), ())
        told += adding.add(held, member, todo.new, now)
        told += _override(held, member, todo.overridden, now)
        told += _update(held, member, todo.updated, now)
    if is_heard(events.TaskPreserved):
        told += [events.TaskPreserved(at=now, task_name=d.name) for d in todo.preserved]
    return told


def _remove(
    held: Locked, member: Member, names: Sequence[str], now: datetime
) -> list[events.Event]:
    """Remove the rows of names that are no longer declared; runs and acts stay."""
    told: list[events.Event] = []
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    for chunk in chunks(names):
        gone = tasks.filter(name__in=chunk)
        told += _withdraw(held, member, chunk, gone, now)
        fields = ("name", "last_attempt_at", "waiting")
        for name, last, waiting in gone.order_by("name").values_list(*fields):
            if waiting:
                told += overlaps.drop_waiting(held, member, name or "", now)
            told.append(
                events.TaskOrphaned(
                    at=now,
                    task_name=name or "",
                    last_execution_time=last,
                    scheduler_identifier=str(held.row.identifier),
                )
            )
        marks.keep_history_marks(held, member, gone)
        gone.delete()
    return told


def _withdraw(
    held: Locked,
    member: Member,
    names: Collection[str],
    tasks: Iterable[ScheduledTask],
    now: datetime,
) -> list[events.Event]:
    """End the runs that no external worker has fetched: a task that comes again starts afresh."""
    withdrawn = overlaps.withdraw(held, member, names, now)
    if not withdrawn:
        return []
    return outbox.tell(held, member.using, overlaps.ends_of(withdrawn, now), tasks, withdrawn)


def _override(
    held: Locked, member: Member, overrides: Sequence[Override], now: datetime
) -> list[events.Event]:
    if not overrides:
        return []
    known = Known.of(held, member, [o.declaration for o in overrides], now)
    told: list[events.Event] = []
    by_name = {override.declaration.name: override for override in overrides}
    for chunk in _rows_by_name(held, member, by_name):
        moved = [row for row in chunk if row.origin != by_name[row.name].declaration.origin]
        told += _take_over(held, member, moved, now)
        for row in chunk:
            declaration = by_name[row.name].declaration
            name = declaration.name
            pause, boot_at = known.pauses.get(name), known.boot_of(name)
            with scheduling(declaration):
                decision = overridden(held, member, row, declaration, now, pause, boot_at=boot_at)
            told += decision.events
            rows.take(row, decision)
        bulk.upsert(member.using, chunk, rows.DECLARED_FIELDS + rows.STATE_FIELDS)
        told = outbox.tell(held, member.using, told, chunk)
    return told


def _take_over(
    held: Locked, member: Member, moved: Sequence[ScheduledTask], now: datetime
) -> list[events.Event]:
    """Let no run that waits for an external worker hold up a task that has other owners now."""
    if not moved:
        return []
    told = _withdraw(held, member, [row.name or "" for row in moved], moved, now)
    ended = {event.run for event in told if isinstance(event, events.TaskRunCancelled)}
    for row in moved:
        if row.running_run in ended:
            row.running_run = None
    return told


def overridden(
    held: Locked,
    member: Member,
    row: ScheduledTask,
    declaration: Declaration,
    now: datetime,
    pause: TaskOverride | None,
    *,
    boot_at: datetime | None = None,
) -> Decision:
    """Start a task's state afresh from its declaration (001 Overridden Task).

    Args:
        held: the locked row of the deployment.
        member: who reconciles.
        row: the task's row; its declaration is written into it, its state is not.
        declaration: what is declared now.
        now: the instant of the override.
        pause: of a person, in force for its name.
        boot_at: the occurrence it owes at once, if any.
    """
    stored = Stored(row.name, row.cron, row.timezone, row.retry_delay, row.digest, row.origin)
    changes = Override(declaration, stored).changes()
    event = events.TaskOverridden(
        at=now,
        task_name=declaration.name,
        change_type=",".join(changes) or "damage",
        old_state={field: pair[0] for field, pair in changes.items()},
        new_state={field: pair[1] for field, pair in changes.items()},
        boot_at=None if row.running_run is not None else boot_at,
    )
    enabled_before, damage = row.enabled, rows.damage_of(row, now)
    rows.declare(row, declaration, held.row.identifier)
    row.epoch = held.next_epoch(member.using)
    waited = overlaps.drop_waiting(held, member, row.name, now) if row.waiting else []
    story = Story(rows.state_of(row)).then(*damage, *waited, event)
    story = _switched(story, declaration, enabled_before, pause, now)
    return settle(story, declaration.schedule, now, declaration.overlap_policy)


def _update(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> list[events.Event]:
    """Write what changed beside the schedule; the state is kept (001 Preserved Task)."""
    by_name = {declaration.name: declaration for declaration in declarations}
    told: list[events.Event] = []
    pauses = open_pauses(held, member, now) if declarations else {}
    for chunk in _rows_by_name(held, member, by_name):
        unserved: list[TaskRun] = []
        for row in chunk:
            declaration = by_name[row.name]
            enabled_before, moved = row.enabled, moving.events_of(row, declaration, now)
            rows.declare(row, declaration, held.row.identifier)
            story = Story(rows.state_of(row)).then(*moved)
            pause = pauses.get(declaration.name)
            with scheduling(declaration):
                story = _switched(story, declaration, enabled_before, pause, now)
                policy = declaration.overlap_policy
                rows.take(row, settle(story, declaration.schedule, now, policy))
            unserved += rows.unserved_rows(held.row, row, story.events)
            told += story.events
        passing.sign(held, member.using, unserved)
        bulk.insert(member.using, unserved)
        bulk.upsert(member.using, chunk, rows.DECLARED_FIELDS + rows.STATE_FIELDS)
        told = outbox.tell(held, member.using, told, chunk)
    return told


def _switched(
    story: Story,
    declaration: Declaration,
    enabled_before: bool,
    pause: TaskOverride | None,
    now: datetime,
) -> Story:
    """Let ``enabled`` switched off and on behave as a pause (semantics 9)."""
    name = declaration.name
    if enabled_before and not declaration.enabled:
        return story.then(events.TaskPaused(at=now, task_name=name, author=declaration.origin))
    if declaration.enabled and not enabled_before:
        if pause is None:
            return end_pause(story, declaration.schedule, now, author=declaration.origin, note="")
        return story.then(
            events.TaskPaused(at=now, task_name=name, author=pause.author, until=pause.until)
        )
    return story


def _rows_by_name(held: Locked, member: Member, names: Iterable[str]) -> Iterable[Any]:
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    for chunk in chunks(names):
        yield list(tasks.filter(name__in=chunk))
