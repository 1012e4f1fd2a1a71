"""The idle looks: one query each, compiled once, without a lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import Count, DateTimeField, Exists, OuterRef, Q, QuerySet, Subquery, Value

from ..conf import external_workers
from ..core.vigil import Watch
from ..fields import from_count, timezone_is_dropped
from ..models import (
    Origin,
    Outcome,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from . import planned, vigil
from .active import ACTIVE
from .cancelling import to_end
from .database import DatabaseNow, direct
from .guard import LONG_AGO, Locked, Member, Standing
from .last import Last
from .mending import mending

_COLUMNS = (
    "leader",
    "term",
    "lease_expires_at",
    "digest",
    "generation",
    "database_now",
    "next_wake",
    "oldest_heartbeat",
    "watched_since",
    "watched_until",
    "cancels",
    "reserved_until",
)


@dataclass(frozen=True, slots=True)
class Peek:
    """What an idle look at the deployment says.

    Args:
        leader: instance that leads, if any.
        term: its term.
        lease_expires_at: end of its lease.
        digest: of the active registration set.
        generation: of the active registration set.
        database_now: the database's time.
        next_wake: when the first task is to be considered, or the first reservation is over.
        oldest_heartbeat: of all other instances that have not stopped.
        watched: from when to when the deployment was watched without a gap, if it was.
        cancels: runs of the one who looks are to end.
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

    def standing(self, member: Member) -> Standing:
        """Tell what a member is now.

        Args:
            member: who asks.
        """
        if self.digest != member.digest:
            return Standing.SUPERSEDED
        return Standing.LEADING if self.leader == member.instance else Standing.STANDBY

    @property
    def is_vacant(self) -> bool:
        """Tell whether anyone may take the lead."""
        expires = self.lease_expires_at
        return self.leader is None or expires is None or expires <= self.database_now

    @property
    def lapses_in(self) -> float:
        """Give the seconds until anyone may take the lead."""
        if self.leader is None or self.lease_expires_at is None:
            return 0.0
        return (self.lease_expires_at - self.database_now).total_seconds()

    def shows_silence(self, member: Member, own: Watch | None) -> bool:
        """Tell whether an instance that has not stopped is dead, as ``dead.reap`` sees it.

        Args:
            member: who asks; the longest silence it grants is the measure.
            own: its watch over the others.
        """
        oldest, now = self.oldest_heartbeat, self.database_now
        if oldest is None or oldest > now - member.longest_silence:
            return False
        return oldest <= vigil.silent_since(member, self.watched, own, now, otherwise=LONG_AGO)


def peek(member: Member) -> Peek | None:
    """Look at the deployment.

    Args:
        member: who asks.

    Returns:
        what is seen, ``None`` where the deployment has no row.
    """
    asked = _asked(member)

    def look() -> Peek | None:
        with direct(member.using):
            row = planned.first_row(connections[member.using], *asked)
        return read(row, member)

    return mending(member.using, member.deployment, look)


def behind(held: Locked, member: Member, *, is_asked: bool) -> Last:
    """Let the next write of a transaction be its last one, with the same look behind it.

    Args:
        held: the locked row of the deployment.
        member: who asks.
        is_asked: whether anybody is to look then.

    Returns:
        what goes behind the write; nothing where each statement goes alone.
    """

    def look() -> str:
        return planned.inside(connections[member.using], _asked(member)[0])

    return held.last(look if is_asked else str)


def read(row: tuple[Any, ...] | None, member: Member) -> Peek | None:
    """Give what a look has found.

    Args:
        row: of its answer, if it has one.
        member: who asked.
    """
    return None if row is None else _read(row, member)


def is_whole(member: Member, tasks: int) -> bool:
    """Tell whether a deployment still has the rows its leader wrote.

    Args:
        member: who leads.
        tasks: number of tasks in its registration set.
    """
    sql, parameters = _compiled_count(member.using, member.deployment, member.instance)
    with direct(member.using), connections[member.using].cursor() as cursor:
        cursor.execute(sql, parameters)
        row = cursor.fetchone()
    return row is not None and bool(row[0]) and row[1] >= tasks


# Building a query costs several times what running it does.


def _asked(member: Member) -> tuple[str, tuple[Any, ...] | None]:
    is_dropped = timezone_is_dropped(connections[member.using])
    who = member.using, member.deployment, member.instance
    return _compiled(*who, external_workers(), is_dropped)


@lru_cache(maxsize=64)
def _compiled(
    using: str, deployment: str, instance: UUID, workers: bool, is_dropped: bool
) -> tuple[str, tuple[Any, ...] | None]:
    # How instants are asked for depends on USE_TZ, as ``is_dropped`` does.
    first = ScheduledTask.objects.filter(scheduler=OuterRef("pk"), wake_at__isnull=False)
    others = SchedulerInstance.objects.filter(scheduler=OuterRef("pk"), stopped_at=None)
    oldest = others.exclude(id=instance).order_by("heartbeat_at")
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    query = states.annotate(
        database_now=DatabaseNow(),
        next_wake=Subquery(first.order_by("wake_at").values("wake_at")[:1]),
        oldest_heartbeat=Subquery(oldest.values("heartbeat_at")[:1]),
        cancels=Exists(to_end(using, instance)),
        reserved_until=_first_reservation() if workers else Value(None, DateTimeField()),
    )
    return _composed(query.values_list(*_COLUMNS), using)


def _first_reservation() -> Subquery:
    """Give the end of the first reservation: a removed task has no instant that tells of it."""
    reserved = TaskRun.objects.filter(
        ACTIVE,
        scheduler=OuterRef("pk"),
        outcome=Outcome.RUNNING,
        reservation__isnull=False,
        reserved_until__isnull=False,
    )
    return Subquery(reserved.order_by("reserved_until").values("reserved_until")[:1])


@lru_cache(maxsize=64)
def _compiled_count(using: str, deployment: str, instance: UUID) -> tuple[str, tuple[Any, ...]]:
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    declared = Q(tasks__origin=Origin.SETTINGS)
    in_order = Q(tasks__wake_at=None) | Q(tasks__wake_at__lte=datetime.max.replace(tzinfo=UTC))
    query = states.annotate(
        has_instance=Exists(SchedulerInstance.objects.filter(id=instance)),
        # What stands behind every date is a text that no claim ever finds.
        task_count=Count("tasks", filter=declared & in_order),
    )
    return _text(query.values_list("has_instance", "task_count"), using)


def _composed(query: QuerySet[Any, Any], using: str) -> tuple[str, tuple[Any, ...] | None]:
    """Give a text with its values inside, where the database's driver would put them there."""
    sql, parameters = _text(query, using)
    connection = connections[using]
    if connection.vendor != "postgresql":
        return sql, parameters
    operations: Any = connection.ops
    return str(operations.compose_sql(sql, parameters)), None


def _text(query: QuerySet[Any, Any], using: str) -> tuple[str, tuple[Any, ...]]:
    sql, parameters = query.query.get_compiler(using).as_sql()
    return sql, tuple(parameters)


def _read(row: tuple[Any, ...], member: Member) -> Peek:
    leader, term, expires, digest, generation, database_now, wake, *others = row
    oldest, since, until, cancels, reserved = others
    virtual = getattr(member.database_time, "instant", None)
    now = _instant(database_now) if virtual is None else virtual()
    return Peek(
        leader=leader if leader is None or isinstance(leader, UUID) else UUID(str(leader)),
        term=term,
        lease_expires_at=_instant(expires),
        digest=digest,
        generation=generation,
        database_now=now,
        next_wake=min(filter(None, map(_instant, (wake, reserved))), default=None),
        oldest_heartbeat=_instant(oldest),
        watched=None if since is None or until is None else (_instant(since), _instant(until)),
        cancels=bool(cancels),
    )


def _instant(raw: Any) -> Any:
    """Read what a driver hands out for an instant: aware, or naive UTC, or text, or a count."""
    if raw is None or getattr(raw, "tzinfo", None) is UTC:
        return raw
    if isinstance(raw, int):
        return from_count(raw)
    value = datetime.fromisoformat(raw) if isinstance(raw, str) else raw
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
