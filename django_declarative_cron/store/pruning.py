"""Forgetting old history, in batches that nobody waits for.

Of each task the newest success and the newest failure are kept for ever; a run
in progress is no history yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max, QuerySet

from ..models import Outcome, TaskRun
from . import database
from .guard import Member

BATCH = 500
"""The most rows deleted in one transaction."""

_REMEMBERED = (Outcome.SUCCEEDED, Outcome.FAILED)


def prune_old(member: Member, before: datetime) -> int:
    """Delete a batch of runs that ended before an instant.

    Args:
        member: whose deployment.
        before: the instant.

    Returns:
        how many were deleted.
    """
    old = _history(member).filter(finished_at__lt=before).order_by("id")
    found = dict(old.values_list("id", "task_name")[:BATCH])
    return _delete(member, found, set(found.values()))


def prune_surplus(member: Member, name: str, keep: int) -> int:
    """Delete a batch of a task's runs beyond its newest ones.

    Args:
        member: whose deployment.
        name: of the task.
        keep: how many are kept.

    Returns:
        how many were deleted.
    """
    of_task = _history(member).filter(task_name=name).order_by("-id")
    newest_gone = of_task.values_list("id", flat=True)[keep : keep + 1]
    for limit in newest_gone:
        surplus = of_task.filter(id__lte=limit).values_list("id", flat=True)
        return _delete(member, dict.fromkeys(surplus[:BATCH], name), {name})
    return 0


def _history(member: Member) -> QuerySet[TaskRun]:
    return TaskRun.objects.using(member.using).filter(
        scheduler__deployment=member.deployment, running_slot=None
    )


def _delete(member: Member, found: dict[int, str], names: Iterable[str]) -> int:
    newest = _history(member).filter(task_name__in=names, outcome__in=_REMEMBERED)
    kept = newest.values("task_name", "outcome").annotate(newest=Max("id"))
    doomed = set(found) - set(kept.values_list("newest", flat=True))
    if not doomed:
        return 0
    with database.atomic(member.using):
        rows, _ = TaskRun.objects.using(member.using).filter(id__in=doomed).delete()
    return rows
