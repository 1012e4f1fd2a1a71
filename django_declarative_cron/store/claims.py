"""Claim due tasks in one transaction, with a few statements for any number of tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import DataError, IntegrityError, OperationalError
from django.db.models import QuerySet

from ..core import events, repeated_failures
from ..core.decide import Decision, decide
from ..core.declarations.declaration import Declaration
from ..core.declarations.runners import EXTERNAL
from ..core.missed import with_causes
from ..core.overlap import ActiveRun
from ..models import ScheduledTask, SchedulerState
from ..signals import report
from . import (
    active_runs,
    apply_plan,
    database,
    recovery,
    registration_sets,
    rows,
)
from .active_runs import Claim, Started
from .apply_plan import open_pauses
from .database import is_lock_timeout, worded
from .guard import Candidacy, LockedDeployment, Member, Role, assume_role, locked
from .posted_tasks import StrangerError, declaration_of

BATCH = 1000
"""The most tasks considered in one transaction."""


@dataclass(slots=True)
class Claimed:
    """The result of one claiming transaction.

    Args:
        claims: runs to call now.
        more: whether further tasks may be due.
        strangers: whether a row belongs to a task that is not in the set.
    """

    role: Role
    claims: list[Claim] = field(default_factory=list)
    events: list[events.Event] = field(default_factory=list)
    considered: int = 0
    more: bool = False
    strangers: bool = False


def claim_due(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    *,
    reaping: bool,
    candidacy: Candidacy = Candidacy(),  # noqa: B008 - frozen
    busy: bool = False,
    unrecorded: Collection[str] = (),
) -> Claimed:
    """Start every due task, as far as this instance leads.

    Raises:
        django.db.Error: nothing was committed, nothing may be called.
    """
    try:
        return _claim(
            member,
            declarations,
            now,
            candidacy,
            reaping=reaping,
            busy=busy,
            unrecorded=unrecorded,
        )
    except (IntegrityError, DataError, OperationalError) as error:
        if isinstance(error, OperationalError) and not is_lock_timeout(error):
            raise
    return _claim_one_by_one(member, declarations, now, candidacy)


@database.again_after_conflict
def _claim(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    candidacy: Candidacy,
    *,
    reaping: bool = False,
    busy: bool = False,
    unrecorded: Collection[str] = (),
    only: int | None = None,
) -> Claimed:
    with locked(member, candidacy) as held:
        if held is None:
            return Claimed(Role.SUPERSEDED)
        claimed = Claimed(assume_role(held), events=held.events)
        if claimed.role is Role.LEADING:
            if only is None:
                due = _batch(held, now, claimed, reaping=reaping, unrecorded=unrecorded)
                due = repeated_failures.first(due, now, busy=busy, led_since=held.row.led_since)
            else:
                due = list(_due(member, now).filter(pk=only))
            _claim_tasks(held, declarations, due, now, claimed)
    return claimed


def _batch(
    held: LockedDeployment,
    now: datetime,
    claimed: Claimed,
    *,
    reaping: bool,
    unrecorded: Collection[str],
) -> list[ScheduledTask]:
    """Return the first due tasks, after the end of runs that nobody carries on."""
    if reaping or held.events:
        claimed.events += recovery.reap(held, now)
    due = list(_due(held.member, now)[: BATCH + 1])
    ended = recovery.expire(held, now, due)
    if ended:
        claimed.events += ended
        due = list(_due(held.member, now)[: BATCH + 1])
    is_full = len(due) > BATCH
    due = [row for row in due[:BATCH] if row.name not in unrecorded]
    claimed.more = is_full and bool(due)
    return due


def _claim_one_by_one(
    member: Member, declarations: Mapping[str, Declaration], now: datetime, candidacy: Candidacy
) -> Claimed:
    """Find the row that fails the batch: claim each task in its own transaction."""
    total = Claimed(Role.LEADING)
    with locked(member) as held:
        due = [] if held is None else list(_due(member, now).only("pk")[: BATCH + 1])
    for row in due[:BATCH]:
        try:
            single = _claim(member, declarations, now, candidacy, only=row.pk)
        except (IntegrityError, DataError) as error:
            report("Starting a task", error, "the task is set aside")
            total.events += _aside(member, row.pk, worded(error), now)
        except OperationalError as error:
            # A row of this task or of its runs is locked: it waits, the others do not.
            if not is_lock_timeout(error):
                raise
        else:
            total.role = single.role
            total.claims += single.claims
            total.events += single.events
            total.considered += single.considered
            total.strangers |= single.strangers
    total.more = len(due) > BATCH
    return total


def _aside(member: Member, pk: int, reason: str, now: datetime) -> list[events.Event]:
    with locked(member) as held:
        row = ScheduledTask.objects.using(member.using).filter(pk=pk).first()
        if held is None or row is None:
            return []
        told = rows.set_aside(row, reason, now, ASIDE)
        # Write only these columns: a bad value in another one would fail this write as well.
        mine = ScheduledTask.objects.using(member.using).filter(pk=pk)
        mine.update(broken_reason=row.broken_reason, wake_at=row.wake_at)
    return [told]


def _due(member: Member, now: datetime) -> QuerySet[ScheduledTask]:
    mine = SchedulerState.objects.filter(deployment=member.deployment).values("pk")[:1]
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=mine, wake_at__lte=now)
    return database.lockable(member.using, tasks.order_by("wake_at"))


def _claim_tasks(
    held: LockedDeployment,
    declarations: Mapping[str, Declaration],
    due: list[ScheduledTask],
    now: datetime,
    claimed: Claimed,
) -> None:
    decided = decide_each(held, declarations, due, now)
    claimed.strangers |= decided.strangers
    claimed.considered += len(due)
    declared = decided.begun_anew & declarations.keys()
    if declared:
        # The generation of the set that these tasks begin anew under.
        registration_sets.record_set(held, declarations.values(), declared, now)
    fields = [*(rows.DECLARED_FIELDS if decided.begun_anew else ()), *rows.STATE_FIELDS]
    claims, told = active_runs.write_decided(
        held, due, decided.events, now, decided.started, fields
    )
    claimed.events += told
    claimed.claims += [claim for claim in claims if claim.declaration.runner != EXTERNAL]


ASIDE = timedelta(minutes=5)
"""How long a row that cannot be considered is left alone."""

_BEGINS_ANEW = (events.TaskOverridden, events.TaskHighWaterMarkReset)


@dataclass(slots=True)
class Decided:
    """The decisions for due tasks, after they were applied to their rows.

    Args:
        begun_anew: names of tasks that begin anew.
    """

    started: list[Started] = field(default_factory=list)
    events: list[events.Event] = field(default_factory=list)
    begun_anew: set[str] = field(default_factory=set)
    strangers: bool = False


def decide_each(
    held: LockedDeployment,
    declarations: Mapping[str, Declaration],
    due: list[ScheduledTask],
    now: datetime,
) -> Decided:
    """Decide for due tasks one by one, and apply the decisions to their rows."""
    decided = Decided()
    active = active_runs.active_runs(held, due)
    for row in due:
        runs = active.get(row.name, [])
        try:
            declaration = declaration_of(row, declarations)
            decision = _decided(held, row, declaration, now, runs)
        except Exception as error:
            decided.strangers |= isinstance(error, StrangerError)
            decided.events.append(rows.set_aside(row, worded(error), now, ASIDE))
            continue
        rows.take(row, decision)
        row.wake_at = active_runs.wake_of(row, runs, now)
        decided.events += decision.events
        if any(isinstance(event, _BEGINS_ANEW) for event in decision.events):
            decided.begun_anew.add(row.name)
        if decision.start is not None:
            policy = declaration.overlap_policy
            decided.started.append(Started(row, decision.start, declaration, policy))
    return decided


def _decided(
    held: LockedDeployment,
    row: ScheduledTask,
    declaration: Declaration,
    now: datetime,
    active: Sequence[ActiveRun],
) -> Decision:
    if rows.stored_of(row).identity != declaration.identity:
        pause = open_pauses(held, now).get(row.name)
        return apply_plan.overridden(held, row, declaration, now, pause)
    state = rows.state_of(row)
    if state.waiting:
        state = replace(state, waiting=sum(run.waiting for run in active))
    schedule, policy = declaration.schedule, declaration.overlap_policy
    catch_up_window = declaration.operating.catch_up_window
    decision = decide(state, schedule, declaration.retry, now, policy, active, catch_up_window)
    is_broken, led_since = bool(row.broken_reason), held.row.led_since
    told = with_causes(decision.events, state, schedule, is_broken=is_broken, led_since=led_since)
    decision = replace(decision, events=told)
    if any(isinstance(event, events.TaskHighWaterMarkReset) for event in decision.events):
        # The names of occurrences may come a second time: not the same runs.
        row.epoch = held.next_epoch()
    return decision
