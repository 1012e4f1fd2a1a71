"""Reconciling the rows with what is declared, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from ..core import events
from ..core.decide import Decision, Story, end_pause, settle
from ..core.declaration import Declaration
from ..core.reconcile import Override, Plan, Stored, plan
from ..core.state import first_coming
from ..models import ScheduledTask, TaskOverride, TaskRun
from ..signals import is_heard
from . import (
    bulk,
    database,
    dead,
    instances,
    marks,
    moving,
    outbox,
    overlaps,
    passing,
    registrations,
    rows,
)
from .coming import Known, open_pauses, scheduling
from .database import chunks
from .guard import Bid, Locked, Member, Standing, locked, stand, take_lead
from .held import naming_what_is_held
from .instances import Process
from .succession import Terms, is_newer, may_take
from .survey import require_match, stored


@dataclass(slots=True)
class Reconciled:
    """What one initialisation did.

    Args:
        plan: what was new, preserved, overridden, orphaned.
        standing: what the instance is to the deployment now.
        generation: of the active registration set.
        events: what happened, in causal order.
    """

    plan: Plan
    standing: Standing
    generation: int
    events: list[events.Event] = field(default_factory=list)


def reconcile(
    member: Member,
    process: Process,
    declarations: Sequence[Declaration],
    now: datetime,
    terms: Terms = Terms.UNLESS_OLDER,
    bid: Bid = Bid(),  # noqa: B008 - frozen
) -> Reconciled:
    """Make the declared set the active one (001 Override Resolution, Override Atomicity).

    Args:
        member: who initialises.
        process: where it runs.
        declarations: the whole set, validated.
        now: the instant of the initialisation.
        terms: on which the set takes the place of another one; where it may not, nothing
            is written but that the instance is there.
        bid: on what grounds it leads.

    Raises:
        ScheduleTaskError: one task cannot be scheduled.
        TaskListMismatchError: the database did not keep what was written.
        django.db.Error: everything stands as before, in each of these cases.
    """
    with naming_what_is_held(member.using, member.deployment):
        return _reconcile(member, process, declarations, now, terms, bid)


@database.again_after_conflict
def _reconcile(
    member: Member,
    process: Process,
    declarations: Sequence[Declaration],
    now: datetime,
    terms: Terms,
    bid: Bid,
) -> Reconciled:
    with locked(member, bid, create=True) as held:
        if held is None:
            raise LookupError(f"deployment {member.deployment!r} vanished while it was locked")
        instances.register(held, member, process)
        if not may_take(held, member, process.release, terms):
            return _superseded(held, terms, now)
        tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
        todo = plan(declarations, stored(tasks))
        # First, because a run of the dead holds up no task that begins anew.
        told = dead.reap(held, member, now)
        told += apply(held, member, todo, now)
        if not todo.is_empty:
            require_match(tasks, declarations)
        marks.reconsider(held, member, now)
        dead.free_of_lost_runs(held, member, now)
        standing = _activate(held, member, process, declarations, todo, now)
        instances.initialized(member, now)
    return Reconciled(todo, standing, held.row.generation, [*held.events, *told])


def _superseded(held: Locked, terms: Terms, now: datetime) -> Reconciled:
    generation = held.row.generation
    told: list[events.Event] = [events.SchedulerSuperseded(at=now, generation=generation)]
    is_new = terms is Terms.UNLESS_OLDER
    return Reconciled(Plan(), Standing.SUPERSEDED, generation, told if is_new else [])


def _activate(
    held: Locked,
    member: Member,
    process: Process,
    declarations: Sequence[Declaration],
    todo: Plan,
    now: datetime,
) -> Standing:
    """Make the set the active one; a changed set takes the lead with it."""
    row, digest = held.row, member.digest
    is_other = row.digest != digest
    # Of the same set, rows may have been lost or damaged: their state begins anew.
    fresh = {d.name for d in todo.new} | {o.declaration.name for o in todo.overridden}
    if is_other or fresh:
        row.digest = digest
        row.release = process.release
        row.initialized_at = held.database_now
        registrations.note(held, member, declarations, fresh, now)
    elif is_newer(held, member, process.release):
        row.release = process.release
        row.save(using=member.using, update_fields=["release"])
    if is_other and row.leader_id != member.instance:
        take_lead(held, member)
    return stand(held, member)


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
    told: list[events.Event] = [
        *outbox.tell(held, member.using, _remove(held, member, todo.orphaned, now), ()),
        *_add(held, member, todo.new, now),
        *_override(held, member, todo.overridden, now),
        *_update(held, member, todo.updated, now),
    ]
    if is_heard(events.TaskPreserved):
        told += [events.TaskPreserved(at=now, task_name=d.name) for d in todo.preserved]
    return told


def _remove(
    held: Locked, member: Member, names: Sequence[str], now: datetime
) -> list[events.TaskEvent]:
    """Remove the rows of names that are no longer declared; runs and acts stay."""
    told: list[events.TaskEvent] = []
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    for chunk in chunks(names):
        gone = tasks.filter(name__in=chunk)
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


def _add(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> list[events.TaskEvent]:
    """Write new rows, a statement for some of them: no server waits for all to be thought of."""
    told: list[events.TaskEvent] = []
    for chunk in chunks(declarations):
        told += _add_some(held, member, chunk, now)
    return told


def _add_some(
    held: Locked, member: Member, declarations: Sequence[Declaration], now: datetime
) -> list[events.TaskAdded]:
    known = Known.of(held, member, declarations, now)
    epoch = held.next_epoch(member.using)
    make = bulk.maker(ScheduledTask, scheduler_id=held.row.pk, epoch=epoch, created_at=now)
    fresh, told = [], []
    for declaration in declarations:
        row = make()
        rows.declare(row, declaration, held.row.identifier)
        with scheduling(declaration):
            event = known.added(declaration, now)
            running = known.running.get(declaration.name)
            state = replace(first_coming(event), running=running is not None)
            policy = declaration.overlap_policy
            rows.take(row, settle(Story(state), declaration.schedule, now, policy))
        row.running_run = running
        fresh.append(row)
        told.append(event)
    bulk.insert(member.using, fresh)
    return told


def _override(
    held: Locked, member: Member, overrides: Sequence[Override], now: datetime
) -> list[events.Event]:
    if not overrides:
        return []
    known = Known.of(held, member, [o.declaration for o in overrides], now)
    told: list[events.Event] = []
    by_name = {override.declaration.name: override for override in overrides}
    for chunk in _rows_by_name(held, member, by_name):
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
