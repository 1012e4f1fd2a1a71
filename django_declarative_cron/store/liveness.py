"""Register scheduler instances, record their heartbeats, and record their end."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from ..core.liveness import Watch
from ..fields import InstantField
from ..models import SchedulerInstance
from . import database
from .guard import (
    LONG_AGO,
    LockedDeployment,
    Member,
    keep_watch,
    read_state,
    release,
    states_of,
    watch_reaches,
)

Lapse = tuple[datetime, datetime]
"""Where a clock leapt from and to; backwards where it was set back."""

_LAPSES_KEPT = 1000

_SAID_AGAIN = [
    *("digest", "heartbeat_at", "watched_since"),
    *("mute_since", "stop_requested_at", "stopped_at"),
]


@dataclass(frozen=True, slots=True)
class Process:
    """Where a scheduler instance runs, and the project's release, where it says one."""

    host: str
    pid: int
    release: str = ""


def register(
    held: LockedDeployment, process: Process, initialized_at: datetime | None = None
) -> None:
    """Write the row of a process that begins to schedule; a living row is kept."""
    database.upsert(held.using, [_row(held, process, initialized_at)], _SAID_AGAIN)


def _row(
    held: LockedDeployment, process: Process, initialized_at: datetime | None
) -> SchedulerInstance:
    return SchedulerInstance(
        id=held.member.instance,
        scheduler=held.row,
        host=process.host,
        pid=process.pid,
        release=process.release,
        digest=held.member.digest,
        started_at=held.database_now,
        heartbeat_at=held.database_now,
        watched_since=held.database_now,
        initialized_at=initialized_at,
    )


def initialized(member: Member, now: datetime) -> None:
    """Record that the set of an instance is the active one; keep the first time."""
    first = Coalesce("initialized_at", Value(now, InstantField()))
    _mine(member).update(initialized_at=first, digest=member.digest)


def _mine(member: Member) -> QuerySet[SchedulerInstance]:
    return SchedulerInstance.objects.using(member.using).filter(id=member.instance)


@database.again_after_conflict
def heartbeat(member: Member, watched: Watch | None = None) -> bool:
    """Record a heartbeat of a process, and renew its lease if it leads.

    Returns:
        whether its row is still there.
    """
    with database.direct(member.using):
        return _heartbeat(member, watched)


def _briefly(member: Member) -> AbstractContextManager[object]:
    """Open a transaction that stays open no longer than a lease if its process halts."""
    return database.atomic(member.using, member.lease.total_seconds())


def _heartbeat(member: Member, watched: Watch | None) -> bool:
    state = read_state(member)
    if state is None:
        return False
    now = state.database_now
    try:
        # Either row may be locked: write each in its own transaction with limits, so that
        # one lock does not prevent the other write.
        with _briefly(member):
            return _is_heard(_mine(member), member, now, mute_since=None, watched=watched)
    finally:
        if state.leader_id == member.instance:
            keep_watch(member, state, watched, now)
            with _briefly(member):
                lead = states_of(member).filter(leader=member.instance, term=state.term)
                lead.update(
                    lease_expires_at=now + member.lease,
                    watched_since=state.watched_since,
                    watched_until=state.watched_until,
                )


@database.again_after_conflict
def vouch(member: Member, *, is_mute: bool = True) -> bool:
    """Record a heartbeat for a process that cannot, or could not until now; renew no lease.

    Args:
        is_mute: another process writes it; otherwise it is the process itself that speaks again.

    Returns:
        whether it has a row, and has neither left in order nor given itself up.
    """
    here = _mine(member).filter(
        # A process that left in order gave its last sign of life at that instant.
        Q(stopped_at=None) | Q(heartbeat_at__lt=F("stopped_at")),
        heartbeat_at__gt=LONG_AGO,
    )
    with database.direct(member.using):
        row = here.annotate(database_now=member.database_time).first()
        if row is None:
            return False
        since = (row.mute_since or row.heartbeat_at) if is_mute else None
        return _is_heard(here, member, row.database_now, mute_since=since)


def _is_heard(
    mine: QuerySet[SchedulerInstance],
    member: Member,
    now: datetime,
    *,
    mute_since: datetime | None,
    watched: Watch | None = None,
) -> bool:
    heard = mine.filter(heartbeat_at__gt=now - member.longest_silence)
    since = watch_reaches(member, watched, now)
    values = {"heartbeat_at": now, "watched_since": since, "mute_since": mute_since}
    return bool(heard.update(stopped_at=None, **values)) or _comes_back(member, now, mute_since)


def _comes_back(member: Member, now: datetime, mute_since: datetime | None) -> bool:
    """Mark a process as alive again after it was silent and counted as dead."""
    with _briefly(member):
        row = _own_row(member)
        if row is None:
            return False
        if row.heartbeat_at > LONG_AGO:
            row.lapses = _with(row.lapses, [(row.heartbeat_at, now)])
        row.heartbeat_at, row.stopped_at, row.mute_since = now, None, mute_since
        row.watched_since = now
        fields = ["lapses", "heartbeat_at", "watched_since", "stopped_at", "mute_since"]
        row.save(using=member.using, update_fields=fields)
    return True


@database.again_after_conflict
def lapsed(member: Member, lapses: Iterable[Lapse]) -> None:
    """Record time that a process was suspended, or that its clock showed twice."""
    with _briefly(member):
        row = _own_row(member)
        if row is not None:
            row.lapses = _with(row.lapses, lapses)
            row.save(using=member.using, update_fields=["lapses"])


def _own_row(member: Member) -> SchedulerInstance | None:
    return _mine(member).select_for_update().first()


def _with(known: list[list[str]], lapses: Iterable[Lapse]) -> list[list[str]]:
    added = [[since.isoformat(), until.isoformat()] for since, until in lapses]
    return [*known, *added][-_LAPSES_KEPT:]


@database.again_after_conflict
def stop_requested(member: Member, now: datetime) -> None:
    """Record that a process begins to stop, and release its lead: its runs may take long."""
    _step_down(member, _mine(member), stop_requested_at=now)


@database.again_after_conflict
def leave(member: Member, now: datetime) -> None:
    """Record that a process has stopped, and release its lead."""
    # An orderly end is the last sign of life; a process found dead was silent before.
    _step_down(member, _mine(member), stopped_at=now, heartbeat_at=now, watched_since=now)


@database.again_after_conflict
def give_up(member: Member) -> None:
    """Count a process as dead from now on: it goes, and its runs go with it.

    One that has left in order keeps its row as it is.
    """
    asked = Coalesce("stop_requested_at", member.database_time)
    here = _mine(member).filter(stopped_at=None)
    _step_down(member, here, heartbeat_at=LONG_AGO, stop_requested_at=asked)


def _step_down(member: Member, row: QuerySet[SchedulerInstance], **values: Any) -> None:
    with _briefly(member):
        release(member)
        row.update(**values)
