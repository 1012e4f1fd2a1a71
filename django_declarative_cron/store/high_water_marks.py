"""Marks: those that lie ahead of a clock that was set back, and those of pruned histories."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max, Q, QuerySet

from ..core.decide import BELIEVABLE
from ..models import Origin, ScheduledTask
from .database import again_after_conflict
from .guard import Locked, Member, locked


@again_after_conflict
def reconsider_after_step(member: Member, now: datetime) -> None:
    """Let the next tick look at every task whose marks lie ahead of the clock."""
    with locked(member) as held:
        if held is not None:
            reconsider(held, member, now)


def reconsider(held: Locked, member: Member, now: datetime) -> None:
    """Do the same under a lock that is held already."""
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    tasks.filter(ahead_of(now)).update(wake_at=now)


def ahead_of(now: datetime) -> Q:
    """Ask for the tasks that are to be looked at at once, and would be later."""
    ahead = now + BELIEVABLE
    owed = Q(orphaned=True) | Q(boot_at__isnull=False) | Q(run_requested_at__isnull=False)
    return Q(wake_at__gt=now) & (
        owed
        | Q(discharged_at__gt=ahead)
        | Q(registered_at__gt=ahead)
        | Q(pending_retry_until__isnull=False)
        # What a process without its type set aside, another one may have.
        | (Q(origin=Origin.HTTP) & ~Q(broken_reason=""))
    )


@again_after_conflict
def reconsider_all(member: Member, now: datetime) -> None:
    """Let the next tick look at every task: what its schedule means has changed."""
    with locked(member) as held:
        if held is not None:
            tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
            tasks.filter(wake_at__gt=now).update(wake_at=now)


def keep_history_marks(held: Locked, member: Member, gone: QuerySet[ScheduledTask]) -> None:
    """Let the deployment remember where the histories of tasks began whose rows go."""
    newest = gone.aggregate(newest=Max("history_from"))["newest"]
    if newest is not None and (held.row.history_from is None or held.row.history_from < newest):
        held.row.history_from = newest
        held.row.save(using=member.using, update_fields=["history_from"])
