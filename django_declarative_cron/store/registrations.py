"""Which registration sets were active, and from when: the rows of tasks keep the newest only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db.models import Max

from ..core.declaration import Declaration
from ..models import RegistrationSet, TaskRun
from .guard import Locked, Member

_SAVED = ["digest", "generation", "release", "initialized_at"]
_KEPT = (
    *("name", "cron", "timezone", "retry_delay_us", "dialect", "gap", "fold"),
    *("enabled", "overlap_policy"),
)


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
    data = declaration.as_data()
    spread = {"spread": data["spread"]} if "spread" in data else {}
    return {key: data[key] for key in _KEPT} | spread | {"fresh": is_fresh}
