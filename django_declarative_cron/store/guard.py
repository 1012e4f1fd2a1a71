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

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet
from django.db.models.expressions import BaseExpression

from ..core import events
from ..core.vigil import Watch
from ..models import SchedulerInstance, SchedulerState
from . import database, vigil
from .beside import save_with
from .last import OTHERS_FOLLOW, Last
from .limits import Way
from .prepared import Asked, Prepared, together

M = TypeVar("M", bound=Model)


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
        """Give how long a process may be unheard of and count as alive."""
        return self.lease if self.dead_after is None else self.dead_after


_row = Prepared(SchedulerState)

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
        bid: on what grounds who holds it leads.
        is_new: this transaction has made the row.
        beside: what was asked as it was locked, and the rows that were found.
        way: of the transaction's statements, where it may end by one of them.

    An instance may come whose own row is still to be written, beside this one; so may be fields
    of it.
    """

    def __init__(
        self,
        row: SchedulerState,
        database_now: datetime,
        bid: Bid = Bid(),
        *,
        is_new: bool = False,
        beside: Mapping[Prepared[Any], list[Any]] = MappingProxyType({}),
        way: Way | None = None,
    ) -> None:
        self.is_new = is_new
        self._way = way
        self._beside = dict(beside)
        self.row = row
        self.database_now = database_now
        self.bid = bid
        self.events: list[events.Event] = []
        self.newcomer: SchedulerInstance | None = None
        self._has_epoch = False
        self._later: list[str] = []

    def fetch(self, using: str, asked: Asked[M]) -> list[M]:
        """Give what was found as the row was locked, the first time; or else ask.

        Args:
            using: database alias.
            asked: what may have been asked already, of the same parameters.
        """
        found = self._beside.pop(asked.prepared, None)
        return asked.fetch(using) if found is None else found

    def save(self, using: str, fields: Sequence[str]) -> None:
        """Write fields of the row and what is still to be written, in one statement.

        Args:
            using: database alias.
            fields: their names.
        """
        fields = [*self._later, *fields]
        if self.newcomer is None:
            if fields:
                self.row.save(using=using, update_fields=fields)
        elif fields:
            save_with(using, self.row, fields, self.newcomer)
        else:
            self.newcomer.save(using=using, force_insert=True)
        self.newcomer, self._later = None, []

    def save_later(self, fields: Sequence[str]) -> None:
        """Let the next ``save`` write fields of the row, at the latest the end of the transaction.

        Args:
            fields: their names.
        """
        self._later += fields

    def last(self, look: Callable[[], str]) -> Last:
        """Let the next write be the last one, with the commit behind it, where that can be.

        Args:
            look: words what is asked behind it, for the caller to read.
        """
        is_done = self.newcomer is None and not self._later
        if self._way is None or not self._way.may_end or not is_done:
            return OTHERS_FOLLOW
        return Last(self._way, look())

    def next_epoch(self, using: str) -> int:
        """Give this transaction a number that no registration of a task has had.

        Args:
            using: database alias.
        """
        if not self._has_epoch:
            self._has_epoch = True
            self.row.epoch += 1
            self.row.save(using=using, update_fields=["epoch"])
        return self.row.epoch


@contextmanager
def locked(
    member: Member,
    bid: Bid = Bid(),
    *,
    create: bool = False,
    tasks: int = 0,
    beside: Sequence[Asked[Any]] = (),
) -> Iterator[Locked | None]:
    """Hold the deployment's row to the end of one transaction.

    Who is halted meanwhile keeps it from others no longer than a lease.

    Args:
        member: who asks.
        bid: on what grounds it leads.
        create: make the row where the deployment is new; otherwise ``None`` is given.
        tasks: how many it is about, where they may be many.
        beside: what is asked next, on the same way if it may be; ``Locked.fetch`` gives it.
    """
    longest = _longest(member.lease, tasks)
    with database.atomic(member.using, longest, of_many=create) as way:
        asked = member.using, member.deployment, member.database_time
        row, *found = _lock(*asked, beside, is_ours=way is not None)
        fresh = None
        if row is None and create:
            fresh = SchedulerState(deployment=member.deployment)
            SchedulerState.objects.using(member.using).bulk_create([fresh], ignore_conflicts=True)
            # What was asked while there was no row to lock may be out of date.
            [row], beside, found = _lock(*asked), (), []
        # Somebody else may have been quicker to make it.
        is_new = row is not None and fresh is not None and row.identifier == fresh.identifier
        if row is None:
            yield None
            return
        known = dict(zip([each.prepared for each in beside], found, strict=True))
        held = Locked(row, row.database_now, bid, is_new=is_new, beside=known, way=way)
        yield held
        held.save(member.using, ())


@contextmanager
def locked_deployment(
    using: str, deployment: str, lease: timedelta, tasks: int = 1
) -> Iterator[Locked | None]:
    """Hold the deployment's row for the act of a person, who is no instance.

    Args:
        using: database alias.
        deployment: its name.
        lease: which schedulers of it have: no longer is it kept from them.
        tasks: how many it is about.
    """
    with database.atomic(using, _longest(lease, tasks), of_many=True):
        [row] = _lock(using, deployment, database.DatabaseNow())
        yield None if row is None else Locked(row, row.database_now)


def _longest(lease: timedelta, tasks: int) -> float:
    """Give the seconds that who is halted may hold the row; a large set is read meanwhile."""
    return (lease + tasks * _OF_EACH).total_seconds()


def _lock(
    using: str,
    deployment: str,
    database_time: BaseExpression,
    beside: Sequence[Asked[Any]] = (),
    *,
    is_ours: bool = False,
) -> list[Any]:
    """Give the locked row, or ``None``, and what was found by what is asked beside it."""

    def query() -> QuerySet[SchedulerState]:
        states = SchedulerState.objects.using(using).filter(deployment=deployment)
        return database.current(using, states).annotate(database_now=database.DatabaseNow())

    rows, *found = together(using, [Asked(_row, query, [deployment]), *beside], is_ours=is_ours)
    row: Any = next(iter(rows), None)
    virtual = getattr(database_time, "instant", None)
    if row is not None and virtual is not None:
        # The time of a simulation.
        row.database_now = virtual()
    return [row, *found]


def stand(held: Locked, member: Member) -> Standing:
    """Take, keep or renew the lead where that is right; to be called under the lock.

    Args:
        held: the locked row.
        member: who asks.
    """
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
    """Lead from now on, under a new term.

    Args:
        held: the locked row.
        member: who leads.
    """
    vigil.keep(member, held.row, held.bid.watched, held.database_now)
    held.row.leader_id = member.instance
    held.row.term += 1
    held.row.lease_expires_at = held.database_now + member.lease
    held.row.led_since = held.database_now
    held.save(member.using, ["leader", "term", "led_since", *_RENEWED])
    held.events.append(
        events.LeadershipGained(
            at=held.database_now, term=held.row.term, instance=str(member.instance)
        )
    )


def _renew(held: Locked, member: Member) -> None:
    expires = held.database_now + member.lease
    if held.row.lease_expires_at is None or expires - held.row.lease_expires_at >= member.renew:
        vigil.keep(member, held.row, held.bid.watched, held.database_now)
        held.row.lease_expires_at = expires
        held.row.save(using=member.using, update_fields=_RENEWED)


def release(member: Member) -> bool:
    """Give up the lead, so that another takes over at once.

    Args:
        member: who leaves.
    """
    freed = _states(member).filter(leader=member.instance)
    return bool(freed.update(leader=None, lease_expires_at=None))


def _states(member: Member) -> QuerySet[SchedulerState]:
    return SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
