"""For how long a deployment was watched, kept in its rows so that it outlives its watchers.

A leader keeps its watch in the deployment's row with each renewal; everybody keeps his own
in his instance's row with each heartbeat. Whoever takes the lead goes on with what was
watched, as far as one watch follows the other.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..core.liveness import Watch, gap_between, watched_since
from ..models import SchedulerInstance, SchedulerState

if TYPE_CHECKING:
    from .guard import Member

_WATCHERS = 100


def since(member: Member, kept: Watch | None, own: Watch | None, now: datetime) -> datetime:
    """Return since when the deployment has been watched without a gap."""
    gap, known = _gap(member), [watch for watch in (kept, own) if watch is not None]
    found = watched_since(known, now, gap)
    if kept is None or found <= kept[0] or _lasts(member, found, now):
        return found
    return watched_since([*known, *_of_all(member, now)], now, gap)


def silent_since(
    member: Member, kept: Watch | None, own: Watch | None, now: datetime, *, otherwise: datetime
) -> datetime:
    """Return the instant since which only the dead were not heard of."""
    lasts = _lasts(member, since(member, kept, own, now), now)
    return now - member.longest_silence if lasts else otherwise


def kept_in(row: SchedulerState) -> Watch | None:
    """Return the watch that was written down."""
    if row.watched_since is None or row.watched_until is None:
        return None
    return row.watched_since, row.watched_until


def keep(member: Member, row: SchedulerState, own: Watch | None, now: datetime) -> None:
    """Write down in memory for how long the deployment has been watched."""
    if own is not None:
        row.watched_since = since(member, kept_in(row), own, now)
        row.watched_until = now


def reaches(member: Member, own: Watch | None, now: datetime) -> datetime:
    """Return since when a process has watched, if it does now."""
    return watched_since([] if own is None else [own], now, _gap(member))


def _gap(member: Member) -> timedelta:
    return gap_between(member.renew, member.longest_silence)


def _lasts(member: Member, since: datetime, now: datetime) -> bool:
    return now - since >= member.longest_silence


def _of_all(member: Member, now: datetime) -> list[Watch]:
    """Return what the others wrote down lately."""
    others = SchedulerInstance.objects.using(member.using).filter(
        scheduler__deployment=member.deployment,
        watched_since__isnull=False,
        heartbeat_at__gt=now - member.longest_silence - member.renew - timedelta(seconds=1),
    )
    newest = others.order_by("-heartbeat_at").values_list("watched_since", "heartbeat_at")
    return [(since, heard) for since, heard in newest[:_WATCHERS] if since is not None]
