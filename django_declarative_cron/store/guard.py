"""The one guard of every evaluating transaction, the lease it checks, and the idle poll.

The protocol is described in the package's docstring. Databases without row locks (SQLite) take
their write lock as the transaction begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import QuerySet
from django.db.models.expressions import BaseExpression

from ..conf import options
from ..core import events
from ..core.liveness import Watch, gap_between, watched_since
from ..models import (
    Outcome,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from . import database


@dataclass(frozen=True, slots=True)
class Member:
    """One scheduler instance of one deployment.

    Args:
        using: database alias.
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
"""The time without any statement that a transaction on many tasks may take for each task."""

_NOBODY = UUID(int=0)

LONG_AGO = datetime(1500, 1, 1, tzinfo=UTC)
"""The heartbeat of a process that gave itself up."""


@dataclass(frozen=True, slots=True)
class Candidacy:
    """The grounds on which an instance leads, or wants to lead.

    Args:
        watched: span in which it has watched the others without a gap, if there is one.
        stands: return whether it still wants the lead; it is called under the lock, because an
            instance that was asked to stop in the meantime must not take the lead again.
    """

    watched: Watch | None = None
    stands: Callable[[], bool] = lambda: True


class Role(Enum):
    LEADING = "leading"
    STANDBY = "standby"
    SUPERSEDED = "superseded"


class LockedDeployment:
    """The locked row of a deployment.

    Args:
        row: to be changed and saved by the store only.
        database_now: the database's time when the row was read.
        candidacy: grounds on which the holder of the lock leads.
        is_new: this transaction has created the row.
    """

    def __init__(
        self,
        member: Member,
        row: SchedulerState,
        database_now: datetime,
        candidacy: Candidacy = Candidacy(),
        *,
        is_new: bool = False,
    ) -> None:
        self.member = member
        self.using = member.using
        self.row = row
        self.database_now = database_now
        self.candidacy = candidacy
        self.is_new = is_new
        self.events: list[events.Event] = []
        self._has_epoch = False

    @property
    def tasks(self) -> QuerySet[ScheduledTask]:
        return ScheduledTask.objects.using(self.using).filter(scheduler=self.row)

    def task(self, name: str) -> ScheduledTask | None:
        return self.tasks.filter(name=name).first()

    @property
    def runs(self) -> QuerySet[TaskRun]:
        return TaskRun.objects.using(self.using).filter(scheduler=self.row)

    @property
    def acts(self) -> QuerySet[TaskOverride]:
        return TaskOverride.objects.using(self.using).filter(scheduler=self.row)

    @property
    def instances(self) -> QuerySet[SchedulerInstance]:
        return SchedulerInstance.objects.using(self.using).filter(scheduler=self.row)

    def save(self, *fields: str) -> None:
        self.row.save(using=self.using, update_fields=fields)

    def next_epoch(self) -> int:
        """Return a number for this transaction that no registration of a task has had."""
        if not self._has_epoch:
            self._has_epoch = True
            self.row.epoch += 1
            self.save("epoch")
        return self.row.epoch


@contextmanager
def locked(
    member: Member, candidacy: Candidacy = Candidacy(), *, create: bool = False, tasks: int = 0
) -> Iterator[LockedDeployment | None]:
    """Hold the lock on the deployment's row to the end of one transaction.

    A process that is halted meanwhile keeps the row from others no longer than a lease.
    """
    with database.atomic(member.using, (member.lease + tasks * _OF_EACH).total_seconds()):
        row, is_new = _lock(member), False
        if row is None and create:
            fresh = SchedulerState(deployment=member.deployment)
            SchedulerState.objects.using(member.using).bulk_create([fresh], ignore_conflicts=True)
            row = _lock(member)
            # Another process may have been quicker to create it.
            is_new = row is not None and row.identifier == fresh.identifier
        yield (
            None
            if row is None
            else LockedDeployment(member, row, row.database_now, candidacy, is_new=is_new)
        )


def _lock(member: Member) -> Any:
    states = database.current(member.using, states_of(member))
    row: Any = next(iter(states.annotate(database_now=database.DatabaseNow())), None)
    virtual = getattr(member.database_time, "instant", None)
    if row is not None and virtual is not None:
        # The time of a simulation.
        row.database_now = virtual()
    return row


def states_of(member: Member) -> QuerySet[SchedulerState]:
    return SchedulerState.objects.using(member.using).filter(deployment=member.deployment)


def read_state(member: Member) -> Any:
    """Return the deployment's row with the database's time, ``None`` where it has none."""
    return states_of(member).annotate(database_now=member.database_time).first()


def outsider(database_time: BaseExpression | None = None) -> Member:
    """Return a member that is no scheduler instance: it holds no set and never leads."""
    given = options()
    return Member(
        using=database.alias(),
        deployment=given.DEPLOYMENT,
        instance=_NOBODY,
        digest="",
        lease=given.LEASE,
        renew=given.RENEW,
        database_time=database_time or database.DatabaseNow(),
    )


def assume_role(held: LockedDeployment) -> Role:
    """Take, keep or renew the lead where that is right; to be called under the lock."""
    row = held.row
    if row.digest != held.member.digest:
        return Role.SUPERSEDED
    if row.leader_id == held.member.instance:
        _renew(held)
        return Role.LEADING
    expires = row.lease_expires_at
    if row.leader_id is not None and expires is not None and expires > held.database_now:
        return Role.STANDBY
    if not held.candidacy.stands():
        return Role.STANDBY
    take_lead(held)
    return Role.LEADING


def take_lead(held: LockedDeployment) -> None:
    keep_watch(held.member, held.row, held.candidacy.watched, held.database_now)
    held.row.leader_id = held.member.instance
    held.row.term += 1
    held.row.lease_expires_at = held.database_now + held.member.lease
    held.row.led_since = held.database_now
    fields = ["leader", "term", "led_since", *_RENEWED]
    held.save(*fields)
    held.events.append(
        events.LeadershipGained(
            at=held.database_now, term=held.row.term, instance=str(held.member.instance)
        )
    )


def _renew(held: LockedDeployment) -> None:
    expires = held.database_now + held.member.lease
    if (
        held.row.lease_expires_at is None
        or expires - held.row.lease_expires_at >= held.member.renew
    ):
        keep_watch(held.member, held.row, held.candidacy.watched, held.database_now)
        held.row.lease_expires_at = expires
        held.save(*_RENEWED)


def release(member: Member) -> bool:
    """Give up the lead, so that another takes over immediately."""
    freed = states_of(member).filter(leader=member.instance)
    return bool(freed.update(leader=None, lease_expires_at=None))


# --- for how long the deployment was observed without a gap ---

_WATCHERS = 100


def _watched_since(
    member: Member, kept: Watch | None, own: Watch | None, now: datetime
) -> datetime:
    """Return since when the deployment has been watched without a gap."""
    gap, known = _gap(member), [watch for watch in (kept, own) if watch is not None]
    found = watched_since(known, now, gap)
    if kept is None or found <= kept[0] or _lasts(member, found, now):
        return found
    return watched_since([*known, *_of_all(member, now)], now, gap)


def silence_limit(member: Member, kept: Watch | None, own: Watch | None, now: datetime) -> datetime:
    """Return since when a process must have been silent to count as dead."""
    lasts = _lasts(member, _watched_since(member, kept, own, now), now)
    return now - member.longest_silence if lasts else LONG_AGO


def watch_of(row: SchedulerState) -> Watch | None:
    if row.watched_since is None or row.watched_until is None:
        return None
    return row.watched_since, row.watched_until


def keep_watch(member: Member, row: SchedulerState, own: Watch | None, now: datetime) -> None:
    """Write down in memory for how long the deployment has been watched."""
    if own is not None:
        row.watched_since = _watched_since(member, watch_of(row), own, now)
        row.watched_until = now


def watch_reaches(member: Member, own: Watch | None, now: datetime) -> datetime:
    """Return since when a process has watched, if it does now."""
    return watched_since([] if own is None else [own], now, _gap(member))


def _gap(member: Member) -> timedelta:
    return gap_between(member.renew, member.longest_silence)


def _lasts(member: Member, since: datetime, now: datetime) -> bool:
    return now - since >= member.longest_silence


def _of_all(member: Member, now: datetime) -> list[Watch]:
    """Return the watches that the others wrote down lately."""
    others = SchedulerInstance.objects.using(member.using).filter(
        scheduler__deployment=member.deployment,
        watched_since__isnull=False,
        heartbeat_at__gt=now - member.longest_silence - member.renew - timedelta(seconds=1),
    )
    newest = others.order_by("-heartbeat_at").values_list("watched_since", "heartbeat_at")
    return [(since, heard) for since, heard in newest[:_WATCHERS] if since is not None]


# --- the poll ---


@dataclass(frozen=True, slots=True)
class Peek:
    """The result of a poll of the deployment.

    Args:
        digest: of the active registration set, as its generation is.
        next_wake: when the first task is to be considered, or the first reservation is over.
        oldest_heartbeat: of all other instances that have not stopped.
        watched: from when to when the deployment was watched without a gap, if it was.
        cancels: runs of the instance that polls are to end.
        has_instance: the instance that polls still has a row.
    """

    leader: UUID | None
    term: int
    lease_expires_at: datetime | None
    digest: str
    generation: int
    database_now: datetime
    next_wake: datetime | None
    oldest_heartbeat: datetime | None
    watched: Watch | None
    cancels: bool = False
    has_instance: bool = True

    def role(self, member: Member) -> Role:
        if self.digest != member.digest:
            return Role.SUPERSEDED
        return Role.LEADING if self.leader == member.instance else Role.STANDBY

    @property
    def is_vacant(self) -> bool:
        """Return whether anyone may take the lead."""
        expires = self.lease_expires_at
        return self.leader is None or expires is None or expires <= self.database_now

    @property
    def lapses_in(self) -> float:
        """Return the seconds until anyone may take the lead."""
        if self.leader is None or self.lease_expires_at is None:
            return 0.0
        return (self.lease_expires_at - self.database_now).total_seconds()

    def shows_silence(self, member: Member, own: Watch | None) -> bool:
        """Return whether an instance that has not stopped is dead, as ``recovery.reap`` sees it."""
        oldest, now = self.oldest_heartbeat, self.database_now
        if oldest is None or oldest > now - member.longest_silence:
            return False
        return oldest <= silence_limit(member, self.watched, own, now)


def peek(member: Member) -> Peek | None:
    """Poll the deployment; return ``None`` where it has no row."""
    connection = connections[member.using]
    key = TaskRun._meta.get_field("instance").get_db_prep_value(member.instance, connection)
    with database.direct(member.using), connection.cursor() as cursor:
        cursor.execute(_poll_text(connection.vendor), [key, key, key, member.deployment])
        row = cursor.fetchone()
    return None if row is None else _seen(row, member)


_NOW = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
    "postgresql": "clock_timestamp() AT TIME ZONE 'UTC'",
    "mysql": "UTC_TIMESTAMP(6)",
}


@cache
def _poll_text(vendor: str) -> str:
    """Return the statement of an idle scheduler, sent each second and twice by a standby.

    It is written by hand because Django takes 2.1 ms to compile the same QuerySet each time,
    and this text takes 0.05 ms. The database looks up each part of it by an index, and gives
    every instant as UTC, without a zone.
    """
    state, instance = SchedulerState._meta.db_table, SchedulerInstance._meta.db_table
    task, run = ScheduledTask._meta.db_table, TaskRun._meta.db_table

    def utc(column: str) -> str:
        return f"{column} AT TIME ZONE 'UTC'" if vendor == "postgresql" else column

    # SQLite uses no index for IS NOT NULL, so that a range stands in its place.
    return f"""SELECT {_NOW[vendor]}, s.leader_id, s.term, s.digest, s.generation,
            {utc("s.lease_expires_at")}, {utc("s.watched_since")}, {utc("s.watched_until")},
            (SELECT {utc("min(wake_at)")} FROM {task} WHERE scheduler_id = s.id),
            (SELECT {utc("min(reserved_until)")} FROM {run}
                WHERE scheduler_id = s.id AND running_slot >= ''
                AND outcome = '{Outcome.RUNNING}' AND reservation IS NOT NULL),
            (SELECT {utc("min(heartbeat_at)")} FROM {instance}
                WHERE scheduler_id = s.id AND stopped_at IS NULL AND id <> %s),
            EXISTS (SELECT 1 FROM {run} WHERE instance_id = %s
                AND cancel_requested_at > '1500-01-01' AND running_slot IS NOT NULL),
            EXISTS (SELECT 1 FROM {instance} WHERE id = %s)
        FROM {state} s WHERE s.deployment = %s
    """


def _seen(row: Sequence[Any], member: Member) -> Peek:
    database_now, leader, term, digest, generation = row[:5]
    lease_expires_at, since, until, next_wake, reserved_until, oldest = map(_instant, row[5:11])
    virtual = getattr(member.database_time, "instant", None)
    return Peek(
        leader=None if leader is None else UUID(str(leader)),
        term=term,
        lease_expires_at=lease_expires_at,
        digest=digest,
        generation=generation,
        database_now=_instant(database_now) if virtual is None else virtual(),
        next_wake=min(filter(None, (next_wake, reserved_until)), default=None),
        oldest_heartbeat=oldest,
        watched=None if since is None or until is None else (since, until),
        cancels=bool(row[11]),
        has_instance=bool(row[12]),
    )


def _instant(value: Any) -> Any:
    """Read an instant in UTC; SQLite gives the text that it has stored."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return None if value is None else value.replace(tzinfo=UTC)
