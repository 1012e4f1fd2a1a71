"""Handing out what is in the outbox, to whoever delivers it: in order, to one at a time.

A task's events are handed out together, and only with the oldest of them: while that is in
somebody's hands, or waits to be tried again, the others wait behind it. What was handed out
and neither delivered nor given back is handed out again when its time is over, so a process
may die with it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Min, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from ..core import events
from ..fields import InstantField
from ..models import OutboxEvent, SchedulerState
from . import database
from .guard import Member

MOST = 400
"""The most events handed out at once."""

MOST_OF_ONE = 50
"""The most events of one task handed out at once."""

_ERROR = 500


@dataclass(frozen=True, slots=True)
class Parcel:
    """One event in somebody's hands.

    Args:
        id: of its row.
        event_id: the same in each attempt.
        type: such as ``job.completed``.
        task_name: of the task.
        body: what is posted, JSON.
        attempts: that have failed.
    """

    id: int
    event_id: str
    type: str
    task_name: str
    body: str
    attempts: int


@database.again_after_conflict
def take(
    member: Member, hold: timedelta, tasks: int, *, leaving: bool = False
) -> list[list[Parcel]]:
    """Take events to deliver, those of one task in one list, oldest first.

    Args:
        member: who delivers; only the leader is given any.
        hold: how long they are its own.
        tasks: of how many tasks at most.
        leaving: it has given up the lead, and delivers what it still can.
    """
    # Looked for without a transaction, because mostly nothing is there.
    with database.direct(member.using):
        found = _state(member)
        if found is None or not (leaving or found.leader_id == member.instance):
            return []
        now = found.database_now
        if not _waiting(member, found).exists():
            return []
    with database.atomic(member.using):
        heads = database.lockable(member.using, _due(_waiting(member, found), now).order_by("id"))
        mine = _with_followers(member, found, list(heads[:tasks]))
        held = OutboxEvent.objects.using(member.using).filter(pk__in=[row.pk for row in mine])
        held.update(claimed_by=member.instance, claimed_until=now + hold)
    return _by_task(mine)


def _state(member: Member) -> Any:
    states = SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
    return states.annotate(database_now=member.database_time).first()


def _waiting(member: Member, state: SchedulerState) -> QuerySet[OutboxEvent]:
    rows = OutboxEvent.objects.using(member.using)
    return rows.filter(scheduler=state, set_aside_at=None)


def _due(waiting: QuerySet[OutboxEvent], now: datetime) -> QuerySet[OutboxEvent]:
    """Give the oldest event of each task, as far as it may be tried now."""
    oldest = waiting.order_by().values("task_name").annotate(oldest=Min("id")).values("oldest")
    return waiting.filter(
        Q(claimed_until=None) | Q(claimed_until__lte=now),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        pk__in=oldest,
    )


def _with_followers(member: Member, state: Any, heads: list[OutboxEvent]) -> list[OutboxEvent]:
    """Add what waits behind the oldest events: nobody else is given it."""
    if not heads:
        return []
    oldest = {head.task_name: head.pk for head in heads}
    behind = _waiting(member, state).filter(task_name__in=list(oldest), pk__gt=heads[0].pk)
    others = behind.exclude(pk__in=list(oldest.values())).order_by("id")
    return [*heads, *others[: max(MOST - len(heads), 0)]]


def _by_task(rows: list[OutboxEvent]) -> list[list[Parcel]]:
    found: dict[str, list[Parcel]] = {}
    for row in rows:
        parcels = found.setdefault(row.task_name, [])
        parcel = Parcel(row.pk, str(row.event_id), row.type, row.task_name, row.body, row.attempts)
        if len(parcels) < MOST_OF_ONE:
            parcels.append(parcel)
    return list(found.values())


@database.again_after_conflict
def give_back(
    member: Member,
    delivered: Collection[Parcel],
    refused: Collection[tuple[Parcel, str, timedelta]],
) -> None:
    """Forget what was delivered, note what was refused, and let go of everything else.

    What has meanwhile been handed to somebody else is theirs.

    Args:
        member: who delivered.
        delivered: what was taken in.
        refused: what was not, why, and how long to wait until it is tried again.
    """
    with database.atomic(member.using):
        found = _state(member)
        if found is None:
            return
        mine = OutboxEvent.objects.using(member.using).filter(
            scheduler=found, claimed_by=member.instance
        )
        mine.filter(pk__in=[parcel.id for parcel in delivered]).delete()
        for parcel, error, pause in refused:
            mine.filter(pk=parcel.id).update(
                attempts=F("attempts") + 1,
                error=error[:_ERROR],
                refused_since=Coalesce("refused_since", Value(found.database_now, InstantField())),
                next_attempt_at=found.database_now + pause,
            )
        mine.update(claimed_by=None, claimed_until=None)


@database.again_after_conflict
def tidy(member: Member, give_up_after: timedelta, most: int) -> list[events.Event]:
    """Set aside what is refused for too long, and forget the oldest where there are too many.

    Args:
        member: who leads.
        give_up_after: how long an event is tried, from its first refusal.
        most: how many events are kept.
    """
    with database.atomic(member.using):
        found = _state(member)
        if found is None or found.leader_id != member.instance:
            return []
        return [*_set_aside(member, found, give_up_after), *_forget(member, found, most)]


def _set_aside(member: Member, state: Any, give_up_after: timedelta) -> list[events.Event]:
    now = state.database_now
    poison = _waiting(member, state).filter(
        attempts__gt=0, refused_since__lt=now - give_up_after, claimed_by=None
    )
    rows = list(database.lockable(member.using, poison.order_by("id"))[:MOST])
    ours = OutboxEvent.objects.using(member.using).filter(pk__in=[row.pk for row in rows])
    if rows:
        ours.update(set_aside_at=now)
    return [
        events.EventSetAside(
            at=now,
            event_id=str(row.event_id),
            type=row.type,
            about=row.task_name,
            attempts=row.attempts,
            error=row.error,
        )
        for row in rows
    ]


def _forget(member: Member, state: Any, most: int) -> list[events.Event]:
    everything = OutboxEvent.objects.using(member.using).filter(scheduler=state)
    surplus = everything.count() - most
    if surplus <= 0:
        return []
    [newest] = everything.order_by("id").values_list("pk", flat=True)[surplus - 1 : surplus]
    everything.filter(pk__lte=newest).delete()
    return [events.EventsForgotten(at=state.database_now, count=surplus, most=most)]


def try_again(using: str, deployment: str) -> int:
    """Let events that were set aside be delivered after all, with as much time as new ones.

    Args:
        using: database alias.
        deployment: its name.

    Returns:
        how many there were.
    """
    rows = OutboxEvent.objects.using(using).filter(
        scheduler__deployment=deployment, set_aside_at__isnull=False
    )
    with database.atomic(using):
        found = list(rows.values_list("pk", flat=True))
        mine = OutboxEvent.objects.using(using).filter(pk__in=found)
        return mine.update(set_aside_at=None, next_attempt_at=None, refused_since=None, attempts=0)
