"""The idle look: one query, without a lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, DateTimeField, Exists, OuterRef, Q, Subquery, Value

from ..conf import external_workers
from ..core.liveness import Watch
from ..models import Origin, Outcome, ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from . import observation
from .cancellation import to_end
from .database import DatabaseNow, direct
from .guard import LONG_AGO, Member, Standing
from .row_repair import mending
from .rows import ACTIVE


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
        """Return what a member is now."""
        if self.digest != member.digest:
            return Standing.SUPERSEDED
        return Standing.LEADING if self.leader == member.instance else Standing.STANDBY

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
        """Return whether an instance that has not stopped is dead, as ``dead.reap`` sees it."""
        oldest, now = self.oldest_heartbeat, self.database_now
        if oldest is None or oldest > now - member.longest_silence:
            return False
        return oldest <= observation.silent_since(
            member, self.watched, own, now, otherwise=LONG_AGO
        )


def peek(member: Member) -> Peek | None:
    """Look at the deployment.

    Returns:
        what is seen, ``None`` where the deployment has no row.
    """

    def look() -> Peek | None:
        with direct(member.using):
            row: Any = _deployment(member).first()
        return None if row is None else _seen(row, member)

    return mending(member.using, member.deployment, look)


def _deployment(member: Member) -> Any:
    due = ScheduledTask.objects.filter(scheduler=OuterRef("pk"), wake_at__isnull=False)
    others = SchedulerInstance.objects.filter(scheduler=OuterRef("pk"), stopped_at=None)
    oldest = others.exclude(id=member.instance).order_by("heartbeat_at")
    states = SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
    return states.annotate(
        database_now=DatabaseNow(),
        next_wake=Subquery(due.order_by("wake_at").values("wake_at")[:1]),
        oldest_heartbeat=Subquery(oldest.values("heartbeat_at")[:1]),
        cancels=Exists(to_end(member.using, member.instance)),
        reserved_until=(
            _first_reservation() if external_workers() else Value(None, DateTimeField())
        ),
    )


def _first_reservation() -> Subquery:
    """Return the end of the first reservation: no wake time tells of one of a removed task."""
    reserved = TaskRun.objects.filter(
        ACTIVE,
        scheduler=OuterRef("pk"),
        outcome=Outcome.RUNNING,
        reservation__isnull=False,
        reserved_until__isnull=False,
    )
    return Subquery(reserved.order_by("reserved_until").values("reserved_until")[:1])


def _seen(row: Any, member: Member) -> Peek:
    virtual = getattr(member.database_time, "instant", None)
    return Peek(
        leader=row.leader_id,
        term=row.term,
        lease_expires_at=row.lease_expires_at,
        digest=row.digest,
        generation=row.generation,
        database_now=row.database_now if virtual is None else virtual(),
        next_wake=min(filter(None, (row.next_wake, row.reserved_until)), default=None),
        oldest_heartbeat=row.oldest_heartbeat,
        watched=observation.kept_in(row),
        cancels=row.cancels,
    )


def is_whole(member: Member, tasks: int) -> bool:
    """Return whether a deployment still has the rows its leader wrote."""
    declared = Q(tasks__origin=Origin.SETTINGS)
    # An instant beyond every date is a text that no claim ever finds.
    in_order = Q(tasks__wake_at=None) | Q(tasks__wake_at__lte=datetime.max.replace(tzinfo=UTC))
    states = SchedulerState.objects.using(member.using).filter(deployment=member.deployment)
    counted = states.annotate(
        has_instance=Exists(SchedulerInstance.objects.filter(id=member.instance)),
        task_count=Count("tasks", filter=declared & in_order),
    )
    with direct(member.using):
        row = counted.values_list("has_instance", "task_count").first()
    return row is not None and bool(row[0]) and row[1] >= tasks
