"""Marks that lie ahead of a clock that was set back."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from ..core.decide import BELIEVABLE
from ..models import ScheduledTask
from .guard import Locked, Member, locked


def reconsider_after_step(member: Member, now: datetime) -> None:
    """Let the next tick look at every task whose marks lie ahead of the clock.

    Args:
        member: who asks.
        now: the instant after the step.
    """
    with locked(member) as held:
        if held is not None:
            reconsider(held, member, now)


def reconsider(held: Locked, member: Member, now: datetime) -> None:
    """Do the same under a lock that is held already.

    Args:
        held: the locked row of the deployment.
        member: who asks.
        now: the instant to judge by.
    """
    ahead = now + BELIEVABLE
    tasks = ScheduledTask.objects.using(member.using).filter(
        scheduler=held.row, running_run=None, wake_at__gt=now
    )
    tasks.filter(
        Q(discharged_at__gt=ahead)
        | Q(registered_at__gt=ahead)
        | Q(pending_retry_until__isnull=False)
    ).update(wake_at=now)
