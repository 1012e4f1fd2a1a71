"""The one guard of every evaluating transaction, and the lease it checks.

One deployment has one row, ``SchedulerState``. Whoever evaluates (claims,
records, reconciles, acts for a person) locks that row first and holds it to the
commit, so evaluating transactions of one deployment happen one after another.

- **Leader.** The row names one instance and when its lease ends, by the
  database's clock. While the row is locked and names me, nobody else can have
  taken over: taking over needs the same lock. So a leader whose lease ran out
  unnoticed may go on as long as its name still stands there.
- **Term.** Every change of the leader gives a new, higher term. What a leader
  writes carries its term; a row that names another instance fences it off.
- **Set.** An instance that holds another registration set than the active one
  is superseded and starts nothing.
- Databases without row locks (SQLite) take their write lock as the transaction begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import BaseExpression

from ..core import events
from ..core.liveness import Watch
from ..models import SchedulerState
from . import database, observation


@dataclass(frozen=True, slots=True)
class Member:
    """Who asks: one scheduler instance of one deployment.

    Args:
        using: database alias.
        deployment: its name.
        instance: UUID of the process.
        digest: of the registration set it holds.
        lease: how long it leads without renewing.
        renew: how often it renews.
        database_time: expression of the database's time, given by the clock.
        dead_after: how long a silent process counts as alive; as long as a lease unless given.
    """

    using: str
    deployment: str
    instance: UUID
    digest: str
    lease: timedelta
    renew: timedelta
    database_time: BaseExpression
    dead_after: timedelta | None = None

    @property
    def longest_silence(self) -> timedelta:
        """Return how long a process may be unheard of and count as alive."""
        return self.lease if self.dead_after is None else self.dead_after


_RENEWED = ["lease_expires_at", "watched_since", "watched_until"]

_OF_EACH = timedelta(milliseconds=1)
"""What a transaction about many tasks may take in between for each, with nothing to be seen."""

LONG_AGO = datetime(1500, 1, 1, tzinfo=UTC)
"""The heartbeat of a process that gave itself up."""


@dataclass(frozen=True, slots=True)
class Bid:
    """On what grounds an instance leads, or wants to.

    Args:
        watched: from when to when it has watched the others without a gap, if it has.
        stands: tells under the lock whether it still wants the lead: who is asked to
            stop meanwhile and gives it up must not take it again.
    """

    watched: Watch | None = None
    stands: Callable[[], bool] = lambda: True


class Standing(Enum):
    """What an instance is to its deployment."""

    LEADING = "leading"
    STANDBY = "standby"
    SUPERSEDED = "superseded"


class Locked:
    """The locked row of a deployment.

    Args:
        row: the row, to be changed and saved by the store only.
        database_now: the database's time when the row was read.
        bid: on what grounds the one who holds it leads.
        is_new: this transaction has created the row.
    """

    def __init__(
        self,
        row: SchedulerState,
        database_now: datetime,
        bid: Bid = Bid(),
        *,
        is_new: bool = False,
    ) -> None:
        self.row = row
        self.database_now = database_now
        self.bid = bid
        self.is_new = is_new
        self.events: list[events.Event] = []
        self._has_epoch = False

    def next_epoch(self, using: str) -> int:
        """Return a number for this transaction that no registration of a task has had."""
        if not self._has_epoch:
            self._has_epoch = True
            self.row.epoch += 1
            self.row.save(using=using, update_fields=["epoch"])
        return self.row.epoch


@contextmanager
def locked(
    member: Member, bid: Bid = Bid(), *, create: bool = False, tasks: int = 0
) -> Iterator[Locked | None]:
    """Hold the lock on the deployment's row to the end of one transaction.

    A process that is halted meanwhile keeps the row from others no longer than a lease.
    """
    with database.atomic(member.using, _longest(member.lease, tasks)):
        row, is_new = _lock(member.using, member.deployment, member.database_time), False
        if row is None and create:
            fresh = SchedulerState(deployment=member.deployment)
            SchedulerState.objects.using(member.using).bulk_create([fresh], ignore_conflicts=True)
            row = _lock(member.using, member.deployment, member.database_time)
            # Another process may have been quicker to create it.
            is_new = row is not None and row.identifier == fresh.identifier
        yield None if row is None else Locked(row, row.database_now, bid, is_new=is_new)


@contextmanager
def locked_deployment(
    using: str, deployment: str, lease: timedelta, tasks: int = 1
) -> Iterator[Locked | None]:
    """Hold the lock on the deployment's row for the act of a person, who is no instance."""
    with database.atomic(using, _longest(lease, tasks)):
        row = _lock(using, deployment, database.DatabaseNow())
        yield None if row is None else Locked(row, row.database_now)


def _longest(lease: timedelta, tasks: int) -> float:
    """Return the seconds that a halted process may hold the row; a large set is read meanwhile."""
    return (lease + tasks * _OF_EACH).total_seconds()


def _lock(using: str, deployment: str, database_time: BaseExpression) -> Any:
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    rows = database.current(using, states).annotate(database_now=database.DatabaseNow())
    row: Any = next(iter(rows), None)
    virtual = getattr(database_time, "instant", None)
    if row is not None and virtual is not None:
        # The time of a simulation.
        row.database_now = virtual()
    return row


def stand(held: Locked, member: Member) -> Standing:
    """Take, keep or renew the lead where that is right; to be called under the lock."""
    row = held.row
    if row.digest != member.digest:
        return Standing.SUPERSEDED
    if row.leader_id == member.instance:
        _renew(held, member)
        return Standing.LEADING
    expires = row.lease_expires_at
    if row.leader_id is not None and expires is not None and expires > held.database_now:
        return Standing.STANDBY
    if not held.bid.stands():
        return Standing.STANDBY
    take_lead(held, member)
    return Standing.LEADING


def take_lead(held: Locked, member: Member) -> None:
    """Lead from now on, under a new term."""
    observation.keep(member, held.row, held.bid.watched, held.database_now)
    held.row.leader_id = member.instance
    held.row.term += 1
    held.row.lease_expires_at = held.database_now + member.lease
    held.row.led_since = held.database_now
    fields = ["leader", "term", "led_since", *_RENEWED]
    held.row.save(using=member.using, update_fields=fields)
    held.events.append(
        events.LeadershipGained(
            at=held.database_now, term=held.row.term, instance=str(member.instance)
        )
    )


def _renew(held: Locked, member: Member) -> None:
    expires = held.database_now + member.lease
    if held.row.lease_expires_at is None or expires - held.row.lease_expires_at >= member.renew:
        observation.keep(member, held.row, held.bid.watched, held.database_now)
        held.row.lease_expires_at = expires
        held.row.save(using=member.using, update_fields=_RENEWED)


def release(member: Member) -> bool:
    """Give up the lead, so that another takes over at once."""
    freed = _states(member).filter(leader=member.instance)
    return bool(freed.update(leader=None, lease_expires_at=None))


def _states(member: Member) -> QuerySet[SchedulerState]:
    return SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
