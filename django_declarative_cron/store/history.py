"""The kept history: which registration sets were active, and which old runs are deleted.

The rows of tasks keep the newest set only. A set too large for one row is kept in parts. The name
of a task selects its part, and a part is identified by its content: if one of 100,000 tasks has
changed, the next set shares all parts but one with the set before.

Runs are deleted in batches that block nobody. Of each task the newest success, the newest failure
and the newest run that timed out are kept for ever; a run in progress is no history yet. The start
of the complete history is stored, because the axiom checker must know it.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db.models import Max, Q, QuerySet

from ..core.declarations.declaration import MICROSECOND, Declaration, digest_of_set
from ..models import (
    Outcome,
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerState,
    TaskRun,
)
from . import database
from .guard import LockedDeployment, Member, states_of
from .rows import is_over

# --- registration sets ---

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


# --- pruning ---

BATCH = 500
"""The most rows deleted in one transaction."""

_REMEMBERED = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT)


def prune_old(member: Member, before: datetime, after: int = 0) -> int:
    """Delete the unneeded runs of a batch that ended before an instant.

    Runs that are kept for ever are passed over, so that the others are always reached.

    Returns:
        the id after which to go on, 0 when nothing old is left to be looked at.
    """
    old = _history(member).filter(finished_at__lt=before, id__gt=after).order_by("id")
    found = dict(old.values_list("id", "task_name")[:BATCH])
    _delete(member, found, found.values(), None)
    return max(found) if len(found) == BATCH else 0


def behind(member: Member, now: datetime) -> datetime:
    """Return the time by which history ages: the earlier of the host's and the database's.

    By the clock of a host that is years ahead for a minute, all of it would be old.
    """
    # Read no other column of the row: damage in it must not prevent pruning.
    times = states_of(member).annotate(database_now=member.database_time)
    by_database: list[datetime] = list(times.values_list("database_now", flat=True))
    return min([now, *by_database])


def prune_surplus(member: Member, name: str, keep: int) -> int:
    """Delete a batch of a task's runs beyond its newest ones.

    Returns:
        how many were deleted.
    """
    of_task = _of_tasks(member, [name]).order_by("-id")
    newest_gone = of_task.values_list("id", flat=True)[keep : keep + 1]
    for limit in newest_gone:
        surplus = of_task.filter(id__lte=limit).values_list("id", flat=True)
        return _delete(member, surplus[:BATCH], [name], name)
    return 0


def _history(member: Member) -> QuerySet[TaskRun]:
    return TaskRun.objects.using(member.using).filter(
        scheduler__deployment=member.deployment, running_slot=None
    )


def _of_tasks(member: Member, names: Iterable[str]) -> QuerySet[TaskRun]:
    """Return the surplus runs of some tasks, by the index of their histories."""
    states = SchedulerState.objects.filter(deployment=member.deployment)
    runs = TaskRun.objects.using(member.using).filter(scheduler=states.values("pk")[:1])
    return runs.filter(is_over(), task_name__in=set(names))


def _delete(member: Member, found: Iterable[int], names: Iterable[str], of: str | None) -> int:
    newest = _of_tasks(member, names).filter(outcome__in=_REMEMBERED)
    kept = newest.values("task_name", "outcome").annotate(newest=Max("id"))
    doomed = set(found) - set(kept.values_list("newest", flat=True))
    if not doomed:
        return 0
    with database.atomic(member.using, member.lease.total_seconds()):
        runs = TaskRun.objects.using(member.using).filter(id__in=doomed)
        _note(member, runs.aggregate(newest=Max("finished_at"))["newest"], of)
        rows, _ = runs.delete()
    return rows


def _note(member: Member, forgotten: datetime | None, name: str | None) -> None:
    """Record that history begins later: of one task, or of all if it has no row."""
    if forgotten is None:
        return
    before = Q(history_from=None) | Q(history_from__lt=forgotten)
    if name is not None:
        tasks = ScheduledTask.objects.using(member.using)
        row = tasks.filter(scheduler__deployment=member.deployment, name=name)
        row.filter(before).update(history_from=forgotten)
        if row.exists():
            return
    if states_of(member).filter(before).update(history_from=forgotten):
        _forget_sets(member, forgotten)


def _forget_sets(member: Member, before: datetime) -> None:
    """Delete the registration sets that no run of the remaining history was started under."""
    sets = RegistrationSet.objects.using(member.using)
    ours = sets.filter(scheduler__deployment=member.deployment)
    newest = ours.filter(registered_at__lt=before).aggregate(newest=Max("generation"))["newest"]
    if newest is not None:
        ours.filter(generation__lt=newest).delete()
        forget_parts(member)
