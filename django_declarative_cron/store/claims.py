"""Claiming what is due: one transaction, a handful of statements, whatever the number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import DataError, IntegrityError, OperationalError
from django.db.models import QuerySet

from ..core import events, suspicion
from ..core.declaration import Declaration
from ..core.runners import EXTERNAL
from ..models import ScheduledTask, SchedulerState
from ..signals import report
from . import bulk, database, dead, outbox, overlaps, registrations, rows
from .deciding import ASIDE, decide_each
from .faults import is_lock_timeout, worded
from .guard import Bid, Locked, Member, Standing, locked, stand
from .mending import mending
from .starts import Claim, Started, write_starts

__all__ = ["Claim", "Claimed", "Started", "claim_due", "write_starts"]

BATCH = 1000
"""The most tasks considered in one transaction."""


@dataclass(slots=True)
class Claimed:
    """What one claiming transaction did.

    Args:
        standing: what the instance is to the deployment.
        claims: runs to call now.
        events: what happened, in causal order.
        considered: number of tasks looked at.
        more: whether further tasks may be due.
        strangers: whether a row of a task was met that is not in the set.
    """

    standing: Standing
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
    bid: Bid = Bid(),  # noqa: B008 - frozen
    busy: bool = False,
    unrecorded: Collection[str] = (),
) -> Claimed:
    """Start every due task, as far as this instance leads.

    Args:
        member: who asks.
        declarations: its registration set by name.
        now: the instant of the tick.
        reaping: look for runs of dead processes too.
        bid: on what grounds it leads.
        busy: runs of its own are in flight.
        unrecorded: tasks whose runs have ended without a word of it in the database yet;
            to the database they still run, so they are left for another time.

    Raises:
        django.db.Error: nothing was committed, nothing may be called.
    """
    # What is claimed one by one is committed one by one: that must not be done twice.
    batch = partial(_claim, member, declarations, now, reaping, bid, busy, unrecorded)
    try:
        return mending(member.using, member.deployment, batch)
    except (IntegrityError, DataError, OperationalError) as error:
        if isinstance(error, OperationalError) and not is_lock_timeout(error):
            raise
    return _claim_one_by_one(member, declarations, now, bid)


@database.again_after_conflict
def _claim(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    reaping: bool,
    bid: Bid,
    busy: bool,
    unrecorded: Collection[str],
) -> Claimed:
    with locked(member, bid) as held:
        if held is None:
            return Claimed(Standing.SUPERSEDED)
        claimed = Claimed(stand(held, member), events=held.events)
        if claimed.standing is Standing.LEADING:
            if reaping or held.events:
                claimed.events += dead.reap(held, member, now)
            due = _first_due(member, now)
            ended = dead.expire(held, member, now, due)
            if ended:
                claimed.events += ended
                due = _first_due(member, now)
            is_full = len(due) > BATCH
            due = [row for row in due[:BATCH] if row.name not in unrecorded]
            claimed.more = is_full and bool(due)
            due = suspicion.first(due, now, busy=busy, led_since=held.row.led_since)
            _claim_tasks(held, member, declarations, due, now, claimed)
    return claimed


def _claim_one_by_one(
    member: Member, declarations: Mapping[str, Declaration], now: datetime, bid: Bid
) -> Claimed:
    """Find the row that spoils the batch: each task in a transaction of its own."""
    total = Claimed(Standing.LEADING)
    with locked(member) as held:
        due = [] if held is None else list(_due(member, now).only("pk")[: BATCH + 1])
        names = [row.pk for row in due]
    for pk in names[:BATCH]:
        try:
            _claim_single(member, declarations, now, pk, bid, total)
        except (IntegrityError, DataError) as error:
            report("Starting a task", error, "the task is set aside")
            total.events += _aside(member, pk, worded(error), now)
        except OperationalError as error:
            # Somebody holds a row of this task, or of its runs: it waits, the others do not.
            if not is_lock_timeout(error):
                raise
    total.more = len(names) > BATCH
    return total


@database.again_after_conflict
def _claim_single(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    pk: int,
    bid: Bid,
    total: Claimed,
) -> None:
    single = Claimed(Standing.LEADING)
    with locked(member, bid) as held:
        if held is None or stand(held, member) is not Standing.LEADING:
            total.standing = Standing.STANDBY
            return
        due = list(_due(member, now).filter(pk=pk))
        _claim_tasks(held, member, declarations, due, now, single)
    total.claims += single.claims
    total.events += single.events
    total.considered += single.considered
    total.strangers |= single.strangers


def _aside(member: Member, pk: int, reason: str, now: datetime) -> list[events.Event]:
    with locked(member) as held:
        row = ScheduledTask.objects.using(member.using).filter(pk=pk).first()
        if held is None or row is None:
            return []
        told = rows.set_aside(row, reason, now, ASIDE)
        # Only these columns: what is wrong with the others would spoil this write as well.
        mine = ScheduledTask.objects.using(member.using).filter(pk=pk)
        mine.update(broken_reason=row.broken_reason, wake_at=row.wake_at)
    return [told]


def _first_due(member: Member, now: datetime) -> list[ScheduledTask]:
    """Return the first batch that is due, and one more row where there are more."""
    return list(_due(member, now)[: BATCH + 1])


def _due(member: Member, now: datetime) -> QuerySet[ScheduledTask]:
    mine = SchedulerState.objects.filter(deployment=member.deployment).values("pk")[:1]
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=mine, wake_at__lte=now)
    return database.lockable(member.using, tasks.order_by("wake_at"))


def _claim_tasks(
    held: Locked,
    member: Member,
    declarations: Mapping[str, Declaration],
    due: list[ScheduledTask],
    now: datetime,
    claimed: Claimed,
) -> None:
    decided = decide_each(held, member, declarations, due, now)
    claimed.events += decided.events
    claimed.strangers |= decided.strangers
    claimed.considered += len(due)
    if decided.begun_anew:
        # The generation of the set that these tasks begin anew under.
        registrations.note(held, member, declarations.values(), decided.begun_anew, now)
    replaced = overlaps.request_cancels(held, member, claimed.events)
    claimed.events += overlaps.ends_of(replaced, now)
    claims = write_starts(held, member, decided.started, decided.unserved)
    fields = [*(rows.DECLARED_FIELDS if decided.rewrites else ()), *rows.STATE_FIELDS]
    bulk.upsert(member.using, due, fields)
    claimed.claims += [claim for claim in claims if claim.declaration.runner != EXTERNAL]
    starts = [claim.started for claim in claims]
    ended = [*decided.unserved, *replaced]
    claimed.events = outbox.tell(held, member.using, claimed.events, due, ended, starts)
