"""Which registration sets were active, and from when: the rows of tasks keep the newest only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max

from ..core.declaration import MICROSECOND, Declaration
from ..models import RegistrationSet, TaskRun
from .guard import Locked, Member

_SAVED = ["digest", "generation", "release", "initialized_at"]


def note(
    held: Locked,
    member: Member,
    declarations: Iterable[Declaration],
    fresh: Collection[str],
    now: datetime,
) -> None:
    """Write down what is registered from now on, under a generation of its own.

    Args:
        held: the locked row of the deployment; it is saved.
        member: who registers it.
        declarations: the whole set.
        fresh: names of the tasks whose state begins here.
        now: the instant of the registration.
    """
    held.row.generation += 1
    held.row.save(using=member.using, update_fields=_SAVED)
    newest = TaskRun.objects.using(member.using).aggregate(newest=Max("pk"))["newest"]
    RegistrationSet.objects.using(member.using).create(
        scheduler=held.row,
        generation=held.row.generation,
        registered_at=now,
        # Whatever the clocks say: the runs up to this one were started before.
        after_run=newest or 0,
        instance_id=member.instance,
        tasks=[_kept(declaration, declaration.name in fresh) for declaration in declarations],
    )


def _kept(declaration: Declaration, is_fresh: bool) -> dict[str, Any]:
    delay, schedule = declaration.retry_delay, declaration.schedule
    spread = declaration.operating.spread
    return {
        "name": declaration.name,
        "cron": declaration.cron,
        "timezone": declaration.timezone,
        "retry_delay_us": None if delay is None else delay // MICROSECOND,
        "dialect": declaration.dialect,
        "gap": schedule.gap,
        "fold": schedule.fold,
        "enabled": declaration.enabled,
        "overlap_policy": declaration.overlap_policy,
        **({"spread": spread.total_seconds()} if spread else {}),
        "fresh": is_fresh,
    }
