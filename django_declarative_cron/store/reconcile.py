"""Which registration set may take the place of which.

See docs/semantics.md, "Several schedulers and deployments".
The newest successful initialisation wins: its set is the active one, and processes with
another set are superseded. There are two exceptions.

- ``RELEASE`` is set on both sides, and the new one is the older one: it does not take
  the set back when it merely restarts. Of two releases made of numbers the smaller one is
  older; of others, such as hashes of commits, the one that was active first.
- No living process holds the active set: a living process activates its own set again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from django.db.models import BooleanField, ExpressionWrapper, Min, Q

from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.next_run import BELIEVABLE
from ..core.reconcile import Plan, Row, Stored, is_older, plan
from ..exceptions import TaskListMismatchError
from ..models import Origin, ScheduledTask, SchedulerState
from . import apply_plan, database, liveness, recovery, registration_sets
from .database import again_after_conflict, naming_what_is_held
from .guard import (
    Candidacy,
    LockedDeployment,
    Member,
    Role,
    assume_role,
    locked,
    take_lead,
    watch_of,
)
from .liveness import Process


class Terms(Enum):
    """The terms on which a registration set replaces another one."""

    UNLESS_OLDER = "unless it is of an older release"
    BY_FORCE = "in any case"
    ORPHANED = "where nobody holds the active one"


def may_take(held: LockedDeployment, release: str, terms: Terms) -> bool:
    """Return whether a set may become the active one."""
    active = held.row.digest
    if terms is Terms.BY_FORCE or active in ("", held.member.digest):
        return True
    if terms is Terms.UNLESS_OLDER:
        return not _is_older_release(held, release)
    own, now = held.candidacy.watched, held.database_now
    return not recovery.has_living_holder(held.member, active, watch_of(held.row), own, now)


def is_newer(held: LockedDeployment, release: str) -> bool:
    """Return whether a release is another one than that of the active set, and no older one."""
    is_other = release not in ("", held.row.release)
    return is_other and not _is_older_release(held, release)


def _is_older_release(held: LockedDeployment, release: str) -> bool:
    active = held.row.release
    if not release or not active or release == active:
        return False
    older = is_older(release, active)
    if older is not None:
        return older
    first, first_of_active = (_first(held, each) for each in (release, active))
    return first is not None and (first_of_active is None or first < first_of_active)


def _first(held: LockedDeployment, release: str) -> datetime | None:
    known = held.instances.filter(release=release)
    first: datetime | None = known.aggregate(first=Min("initialized_at"))["first"]
    return first


_CHUNK = 2000


def plan_for(using: str, deployment: str, declarations: Collection[Declaration]) -> Plan:
    """Compare the declarations with the rows; write nothing."""
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    stored = tasks.order_by().values_list(*Stored._fields)
    return plan(declarations, stored.iterator(chunk_size=_CHUNK))


def active_digest(using: str, deployment: str) -> str | None:
    """Return the digest of the active registration set in one query."""
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    return states.values_list("digest", flat=True).first()


def mismatch(member: Member, declarations: Iterable[Declaration]) -> TaskListMismatchError | None:
    """Return how the rows differ from a registration set in their names, or ``None``."""
    rows = ScheduledTask.objects.using(member.using).filter(
        scheduler__deployment=member.deployment, origin=Origin.SETTINGS
    )
    expected = {declaration.name for declaration in declarations}
    actual = set(rows.values_list("name", flat=True))
    return None if expected == actual else TaskListMismatchError(expected, actual)


def is_whole(member: Member, tasks: int) -> bool:
    """Return whether a deployment still has the rows its leader wrote."""
    rows = ScheduledTask.objects.using(member.using).filter(origin=Origin.SETTINGS)
    with database.direct(member.using):
        return rows.filter(scheduler__deployment=member.deployment).count() >= tasks


def survey(
    held: LockedDeployment, declarations: Sequence[Declaration], now: datetime
) -> tuple[Plan, bool]:
    """Compare the declarations with the rows.

    Returns:
        the changes to the rows, and whether nothing else is to do: the instance is a new one,
        nobody has died, no run is in progress and no mark lies ahead of the clock.
    """
    if held.is_new:
        return plan(declarations, ()), False
    # Values that are the same for all rows are queried once and added to each of them.
    is_to_do = ahead_of(now) | recovery.is_lost() | recovery.is_anybody(held)
    flag = ExpressionWrapper(is_to_do, output_field=BooleanField())
    tasks = held.tasks.order_by()
    asked = tasks.annotate(is_to_do=flag).values_list(*Stored._fields, "is_to_do")
    flags: set[bool | None] = set()

    def rows() -> Iterator[Row]:
        for row in asked.iterator(chunk_size=_CHUNK):
            flags.add(row[-1])
            yield row[:-1]

    todo = plan(declarations, rows())
    return todo, bool(flags) and not any(flags)


@dataclass(slots=True)
class Reconciled:
    """The result of one initialisation, with the events in causal order."""

    plan: Plan
    role: Role
    generation: int
    events: list[events.Event] = field(default_factory=list)


def reconcile(
    member: Member,
    process: Process,
    declarations: Sequence[Declaration],
    now: datetime,
    terms: Terms = Terms.UNLESS_OLDER,
    candidacy: Candidacy = Candidacy(),  # noqa: B008 - frozen
) -> Reconciled:
    """Make the declared set the active one (001 Override Resolution, Override Atomicity).

    Raises:
        ScheduleTaskError: one task cannot be scheduled.
        TaskListMismatchError: the database did not keep the written rows.
        django.db.Error: everything stands as before, in each of these cases.
    """
    with naming_what_is_held(member.using, member.deployment):
        return _reconcile(member, process, declarations, now, terms, candidacy)


@database.again_after_conflict
def _reconcile(
    member: Member,
    process: Process,
    declarations: Sequence[Declaration],
    now: datetime,
    terms: Terms,
    candidacy: Candidacy,
) -> Reconciled:
    with locked(member, candidacy, create=True, tasks=len(declarations)) as held:
        assert held is not None
        if not may_take(held, process.release, terms):
            liveness.register(held, process)
            return _superseded(held, terms, now)
        todo, is_calm = survey(held, declarations, now)
        if held.is_new or is_calm:
            liveness.register(held, process, initialized_at=now)
            told = apply_plan.apply(held, todo, now)
        else:
            told = _in_full(held, process, todo, now)
        flaw = None if todo.is_empty else mismatch(member, declarations)
        if flaw is not None:
            raise flaw
        role = _activate(held, process, declarations, todo, now)
    return Reconciled(todo, role, held.row.generation, [*held.events, *told])


def _in_full(
    held: LockedDeployment, process: Process, todo: Plan, now: datetime
) -> list[events.Event]:
    """Write a plan, and repair the state after crashes and clocks that were set back."""
    liveness.register(held, process)
    # First, because a run of the dead holds up no task that begins anew.
    told = recovery.reap(held, now)
    told += apply_plan.apply(held, todo, now)
    held.tasks.filter(ahead_of(now)).update(wake_at=now)
    recovery.free_of_lost_runs(held, now)
    liveness.initialized(held.member, now)
    return told


def _superseded(held: LockedDeployment, terms: Terms, now: datetime) -> Reconciled:
    generation = held.row.generation
    told: list[events.Event] = [events.SchedulerSuperseded(at=now, generation=generation)]
    is_new = terms is Terms.UNLESS_OLDER
    return Reconciled(Plan(), Role.SUPERSEDED, generation, told if is_new else [])


def _activate(
    held: LockedDeployment,
    process: Process,
    declarations: Sequence[Declaration],
    todo: Plan,
    now: datetime,
) -> Role:
    """Make the set the active one; a changed set takes the lead with it."""
    row, digest = held.row, held.member.digest
    is_other = row.digest != digest
    # Of the same set, rows may have been lost or damaged: their state begins anew.
    fresh = {d.name for d in todo.new} | {o.declaration.name for o in todo.overridden}
    if is_other or fresh:
        row.digest = digest
        row.release = process.release
        row.initialized_at = held.database_now
        registration_sets.record_set(held, declarations, fresh, now)
    elif is_newer(held, process.release):
        row.release = process.release
        held.save("release")
    if is_other and row.leader_id != held.member.instance:
        take_lead(held)
    return assume_role(held)


@again_after_conflict
def reconsider(member: Member, now: datetime, *which: Q) -> None:
    """Let the next tick consider tasks that are to be considered later: all, or some."""
    with locked(member) as held:
        if held is not None:
            held.tasks.filter(*which, wake_at__gt=now).update(wake_at=now)


def ahead_of(now: datetime) -> Q:
    """Return a condition: the task must be considered now, but would be later."""
    ahead = now + BELIEVABLE
    owed = Q(orphaned=True) | Q(boot_at__isnull=False) | Q(run_requested_at__isnull=False)
    return Q(wake_at__gt=now) & (
        owed
        | Q(discharged_at__gt=ahead)
        | Q(registered_at__gt=ahead)
        | Q(pending_retry_until__isnull=False)
        # A process without a task's type set it aside; another one may have the type.
        | (Q(origin=Origin.HTTP) & ~Q(broken_reason=""))
    )
