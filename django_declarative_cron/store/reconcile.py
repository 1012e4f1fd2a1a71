"""Reconciling the rows with what is declared, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ..core import events
from ..core.declaration import Declaration
from ..core.reconcile import Plan
from ..models import ScheduledTask
from . import applying, database, dead, instances, marks, registrations
from .guard import Bid, Locked, Member, Standing, locked, stand, take_lead
from .held import naming_what_is_held
from .instances import Process
from .succession import Terms, is_newer, may_take
from .survey import require_match, survey


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
    with locked(member, bid, create=True, tasks=len(declarations)) as held:
        if held is None:
            raise LookupError(f"deployment {member.deployment!r} vanished while it was locked")
        if not may_take(held, member, process.release, terms):
            instances.register(held, member, process)
            return _superseded(held, terms, now)
        found = survey(held, member, declarations, now)
        todo = found.plan
        if held.is_new or found.is_calm:
            instances.register(held, member, process, initialized_at=now)
            told = applying.apply(held, member, todo, now)
        else:
            told = _in_full(held, member, process, todo, now)
        if not todo.is_empty:
            tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
            require_match(tasks, declarations)
        standing = _activate(held, member, process, declarations, todo, now)
    return Reconciled(todo, standing, held.row.generation, [*held.events, *told])


def _in_full(
    held: Locked, member: Member, process: Process, todo: Plan, now: datetime
) -> list[events.Event]:
    """Write a plan, and see to what the dead and clocks that were set back have left."""
    instances.register(held, member, process)
    # First, because a run of the dead holds up no task that begins anew.
    told = dead.reap(held, member, now)
    told += applying.apply(held, member, todo, now)
    marks.reconsider(held, member, now)
    dead.free_of_lost_runs(held, member, now)
    instances.initialized(member, now)
    return told


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
