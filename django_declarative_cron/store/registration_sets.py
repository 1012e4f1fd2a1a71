"""The history of active registration sets; the rows of tasks keep the newest only.

A set too large for one row is kept in parts. The name of a task selects its part, and a part is
identified by its content: if one of 100,000 tasks has changed, the next set shares all parts but
one with the set before.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max

from ..core.declarations.declaration import MICROSECOND, Declaration, digest_of_set
from ..models import Origin, RegistrationPart, RegistrationSet, ScheduledTask, TaskRun
from . import database
from .guard import LockedDeployment, Member

PART = 1000
"""How many registrations a row has, about; a hundred and seventy bytes each."""

_AT_ONCE = 20
"""How many parts are written in one statement: some megabytes."""

_LOST = [None]
"""Placeholder for registrations that are missing or cannot be read."""


def record_set(
    held: LockedDeployment,
    declarations: Collection[Declaration],
    fresh: Collection[str],
    now: datetime,
) -> None:
    """Store the set that is active from now on, under a generation of its own."""
    held.row.generation += 1
    held.save("digest", "generation", "release", "initialized_at")
    newest = TaskRun.objects.using(held.using).aggregate(newest=Max("pk"))["newest"]
    is_large = len(declarations) > PART
    RegistrationSet.objects.using(held.using).create(
        scheduler=held.row,
        generation=held.row.generation,
        registered_at=now,
        # Runs up to this one were started before, even if clocks disagree.
        after_run=newest or 0,
        instance_id=held.member.instance,
        tasks=[] if is_large else [_kept(d) | {"fresh": d.name in fresh} for d in declarations],
        parts=_write_parts(held, declarations, fresh) if is_large else [],
    )


def _write_parts(
    held: LockedDeployment, declarations: Collection[Declaration], fresh: Collection[str]
) -> list[tuple[str, bool]]:
    """Write new parts; return each part's digest, and whether its tasks are fresh."""
    found = {
        (digest_of_set(some), is_fresh): some
        for (_, is_fresh), some in _parted(declarations, fresh).items()
    }
    parts = RegistrationPart.objects.using(held.using).filter(scheduler=held.row)
    known = set(database.current(held.using, parts).values_list("digest", flat=True))
    missing = {digest: some for (digest, _), some in found.items() if digest not in known}
    for chunk in database.chunks(missing.items(), _AT_ONCE):
        rows = [
            RegistrationPart(scheduler=held.row, digest=digest, tasks=list(map(_kept, some)))
            for digest, some in chunk
        ]
        database.insert(held.using, rows)
    return list(found)


def _parted(
    declarations: Collection[Declaration], fresh: Collection[str]
) -> dict[tuple[int, bool], list[Declaration]]:
    found: dict[tuple[int, bool], list[Declaration]] = {}
    count = 1 << (len(declarations) // PART).bit_length()
    for declaration in declarations:
        name = declaration.name
        place = zlib.crc32(name.encode("utf-8", "surrogatepass")) % count
        found.setdefault((place, name in fresh), []).append(declaration)
    return found


def of_set(using: str, row: RegistrationSet) -> list[Any]:
    """Return the registrations of a set as they are stored, read from all of its rows."""
    if not row.parts:
        return row.tasks if isinstance(row.tasks, list) else _LOST
    parts = RegistrationPart.objects.using(using).filter(scheduler=row.scheduler_id)
    found: list[Any] = []
    for digest, is_fresh in _pairs(row.parts):
        tasks = parts.filter(digest=digest).values_list("tasks", flat=True).first()
        found += _each(tasks, is_fresh) if isinstance(tasks, list) and tasks else _LOST
    return found


def _pairs(parts: Any) -> Iterator[tuple[Any, Any]]:
    for pair in parts if isinstance(parts, list) else _LOST:
        yield tuple(pair) if isinstance(pair, list) and len(pair) == 2 else ("", False)


def _each(tasks: list[Any], is_fresh: Any) -> list[Any]:
    return [{**task, "fresh": is_fresh} if isinstance(task, dict) else task for task in tasks]


def forget_parts(member: Member) -> None:
    """Delete the parts that no set has any more; the deployment's row is locked."""
    ours = {"scheduler__deployment": member.deployment}
    sets = RegistrationSet.objects.using(member.using).filter(**ours)
    lists = database.current(member.using, sets.exclude(parts=[])).values_list("parts", flat=True)
    used = {digest for each in lists for digest, _ in _pairs(each)}
    parts = RegistrationPart.objects.using(member.using)
    known = dict(parts.filter(**ours).values_list("pk", "digest"))
    for chunk in database.chunks(key for key, digest in known.items() if digest not in used):
        parts.filter(pk__in=chunk).delete()


def _kept(declaration: Declaration) -> dict[str, Any]:
    delay, spread = declaration.retry_delay, declaration.operating.spread
    return {
        "name": declaration.name,
        "cron": declaration.cron,
        "timezone": declaration.timezone,
        "retry_delay_us": None if delay is None else delay // MICROSECOND,
        "dialect": declaration.dialect,
        "gap": declaration.schedule.gap,
        "fold": declaration.schedule.fold,
        "enabled": declaration.enabled,
        "overlap_policy": declaration.overlap_policy,
        **({"spread": spread.total_seconds()} if spread else {}),
    }


_SETS = 50
"""How many of the newest registration sets are searched for the name."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of a task, and its newest run.

    ``at`` is ``None`` where no kept registration set says so, as for tasks that came over HTTP.
    """

    at: datetime | None
    last: TaskRun


def removal_of(using: str, deployment: str, name: str) -> Removal | None:
    """Return the removal of a task, ``None`` for a task that is registered or never ran."""
    tasks = ScheduledTask.objects.using(using)
    if tasks.filter(scheduler__deployment=deployment, name=name).exists():
        return None
    runs = TaskRun.objects.using(using).filter(scheduler__deployment=deployment, task_name=name)
    last = runs.defer("traceback", "log", "output", "result").order_by("-id").first()
    if last is None:
        return None
    at = None if last.origin == Origin.HTTP else _removed_at(using, deployment, name)
    return Removal(at, last)


def _removed_at(using: str, deployment: str, name: str) -> datetime | None:
    """Return when the first set without the name was registered."""
    ours = RegistrationSet.objects.using(using).filter(scheduler__deployment=deployment)
    found: datetime | None = None
    for row in ours.order_by("-generation")[:_SETS]:
        names = {each.get("name") for each in of_set(using, row) if isinstance(each, dict)}
        if name in names:
            return found
        found = row.registered_at
    return None
