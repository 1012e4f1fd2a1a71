"""Claiming what is due: one transaction, a handful of statements, whatever the number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import DataError, IntegrityError, OperationalError, connections
from django.db.models import QuerySet

from ..core import events, suspicion
from ..core.declaration import Declaration
from ..core.runners import EXTERNAL
from ..fields import InstantField
from ..models import ScheduledTask, SchedulerState
from ..signals import report
from . import bulk, database, dead, outbox, overlaps, peek, registrations, rows
from .deciding import ASIDE, decide_each
from .faults import is_lock_timeout, worded
from .guard import Bid, Locked, Member, Standing, locked, stand
from .last import OTHERS_FOLLOW
from .mending import mending
from .prepared import Asked, Prepared
from .starts import Claim, Started, write_starts
from .uncollected import uncollected

__all__ = ["Claim", "Claimed", "Started", "claim_due", "write_starts"]

BATCH = 1000
"""The most tasks considered in one transaction."""

_INSTANT = InstantField()

_tasks = Prepared(ScheduledTask)

Hold = Callable[[list[Claim]], bool]


class WithdrawnError(Exception):
    """Say that what was claimed ahead of an instant is not to be committed."""


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
        seen: what a look behind it has found, where one went with it.
    """

    standing: Standing
    claims: list[Claim] = field(default_factory=list)
    events: list[events.Event] = field(default_factory=list)
    considered: int = 0
    more: bool = False
    strangers: bool = False
    seen: peek.Peek | None = None


def claim_due(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    *,
    reaping: bool,
    bid: Bid = Bid(),  # noqa: B008 - frozen
    busy: bool = False,
    unrecorded: Collection[str] = (),
    hold: Hold | None = None,
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
        hold: waits until the instant has come, before anything is committed, and tells
            whether it may be; it is given what is to be called then. Tasks whose runs may
            end meanwhile are left for that time.

    Raises:
        WithdrawnError: it may not; nothing was committed.
        django.db.Error: nothing was committed, nothing may be called.
    """
    # What is claimed one by one is committed one by one: that must not be done twice.
    batch = partial(_claim, member, declarations, now, reaping, bid, busy, unrecorded, hold)
    try:
        return mending(member.using, member.deployment, batch)
    except (IntegrityError, DataError, OperationalError) as error:
        if isinstance(error, OperationalError) and not is_lock_timeout(error):
            raise
        if hold is not None:
            raise WithdrawnError from error
    return _claim_one_by_one(member, declarations, now, bid)


@database.again_after_conflict
@uncollected()
def _claim(
    member: Member,
    declarations: Mapping[str, Declaration],
    now: datetime,
    reaping: bool,
    bid: Bid,
    busy: bool,
    unrecorded: Collection[str],
    hold: Hold | None,
) -> Claimed:
    with locked(member, bid, beside=[_asked_first(member, now)]) as held:
        if held is None:
            return Claimed(Standing.SUPERSEDED)
        claimed = Claimed(stand(held, member), events=held.events)
        if claimed.standing is Standing.LEADING:
            # One more, which tells that there are more.
            due = _first_due(held, member, now)
            if reaping or held.events:
                claimed.events += dead.reap(held, member, now)
                due = _first_due(held, member, now)
            ended = dead.expire(held, member, now, due)
            if ended:
                claimed.events += ended
                due = _first_due(held, member, now)
            is_full = len(due) > BATCH
            due = [row for row in due[:BATCH] if row.name not in unrecorded]
            if hold is not None:
                due = [row for row in due if row.running_run is None]
            claimed.more = is_full and bool(due)
            due = suspicion.first(due, now, busy=busy, led_since=held.row.led_since)
            _claim_tasks(held, member, declarations, due, now, claimed, is_last=hold is None)
            if hold is not None and (due or claimed.events):
                database.check_now(member.using)
                if not hold(claimed.claims):
                    raise WithdrawnError
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


def get_ready(member: Member, now: datetime) -> None:
    """Word what each claim asks, before anything is due.

    Args:
        member: who asks.
        now: any instant.
    """
    _tasks.get_ready(member.using, _asked_first(member, now).make)


def _first_due(held: Locked, member: Member, now: datetime) -> list[ScheduledTask]:
    return held.fetch(member.using, _asked_first(member, now))


def _asked_first(member: Member, now: datetime) -> Asked[ScheduledTask]:
    instant = _INSTANT.get_db_prep_value(now, connections[member.using])
    return Asked(_tasks, lambda: _due(member, now)[: BATCH + 1], [member.deployment, instant])


def _due(member: Member, now: datetime) -> QuerySet[ScheduledTask]:
    # Asked on the way to the deployment's row: nobody knows its key yet.
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
    *,
    is_last: bool = False,
) -> None:
    stored = bulk.Read(due, rows.STATE_FIELDS)
    decided = decide_each(held, member, declarations, due, now)
    claimed.events += decided.events
    claimed.strangers |= decided.strangers
    claimed.considered += len(due)
    if decided.begun_anew:
        _note(held, member, declarations, decided.begun_anew, now)
    replaced = overlaps.request_cancels(held, member, claimed.events)
    claimed.events += overlaps.ends_of(replaced, now)
    beside = rows.DECLARED_FIELDS if decided.rewrites else ()
    last = OTHERS_FOLLOW
    if is_last and outbox.asks_nothing():
        last = peek.behind(held, member, is_asked=not claimed.more)
    claims = write_starts(held, member, decided.started, decided.unserved, stored, beside, last)
    claimed.seen = peek.read(last.row, member)
    claimed.claims += [claim for claim in claims if claim.declaration.runner != EXTERNAL]
    starts = [claim.started for claim in claims]
    ended = [*decided.unserved, *replaced]
    claimed.events = outbox.tell(held, member.using, claimed.events, due, ended, starts)


def _note(
    held: Locked,
    member: Member,
    declarations: Mapping[str, Declaration],
    begun_anew: set[str],
    now: datetime,
) -> None:
    """Write down from when tasks begin anew, under a generation that is written at once."""
    registrations.note(held, member, declarations.values(), begun_anew, now)
    held.save(member.using, ())
