"""Delete old history, in batches that block nobody.

Of each task the newest success, the newest failure and the newest run that timed out are kept
for ever; a run in progress is no history yet. The start of the complete history is stored,
because the axiom checker must know it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Max, Q, QuerySet

from ..models import Outcome, RegistrationSet, ScheduledTask, SchedulerState, TaskRun
from . import database, registration_sets
from .guard import Member, states_of
from .rows import is_over

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
        registration_sets.forget_parts(member)
