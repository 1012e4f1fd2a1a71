"""Starts that were committed although the database's answer was lost on the way.

A connection may break between the commit and the word of it. The run then stands
there as started by an instance that lives and does not know of it: nobody would ever
call it, and its task would wait for its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from ..core import events
from ..core.declaration import Declaration
from ..models import Origin, ScheduledTask, TaskRun
from . import database, outbox
from .active import ACTIVE
from .claims import Claim
from .declared import UnreadableError, own
from .guard import Locked, Member, locked


@database.again_after_conflict
def unanswered(
    member: Member, known: Collection[int], declarations: Mapping[str, Declaration]
) -> list[Claim]:
    """Find an instance's own starts that it does not know of.

    The lock is what makes it certain: a transaction that was cut off holds it until the
    server has ended it one way or the other.

    Args:
        member: who started them; it starts nothing meanwhile.
        known: ids of the runs it knows of.
        declarations: its registration set by name.

    Returns:
        what must now be called.
    """
    with locked(member) as held:
        if held is None:
            return []
        mine = TaskRun.objects.using(member.using).filter(
            ACTIVE, scheduler=held.row, instance=member.instance
        )
        lost = [run for run in mine.order_by("pk") if run.pk not in known]
        by_name = {**declarations, **dict(_posted(held, member, lost))}
        lost = [run for run in lost if run.task_name in by_name]
        return [
            Claim(run.pk, run.task_name, start, run.term, by_name[run.task_name])
            for run, start in zip(lost, _started(held, member, lost), strict=True)
        ]


def _posted(
    held: Locked, member: Member, lost: Collection[TaskRun]
) -> Iterator[tuple[str, Declaration]]:
    names = {run.task_name for run in lost if run.origin == Origin.HTTP}
    tasks = ScheduledTask.objects.using(member.using).filter(
        scheduler=held.row, origin=Origin.HTTP, name__in=names
    )
    for row in tasks if names else ():
        with suppress(UnreadableError):
            yield row.name, own(row)


def _started(
    held: Locked, member: Member, lost: Collection[TaskRun]
) -> list[events.TaskRunStarted]:
    if not lost:
        return []
    tasks = ScheduledTask.objects.using(member.using).filter(
        scheduler=held.row, name__in={run.task_name for run in lost}
    )
    counts = {task.running_run: task.run_count for task in tasks}
    return outbox.recall(held, [start_of(run, counts.get(run.pk, 0)) for run in lost], tasks)


def start_of(run: TaskRun, run_count: int = 0) -> events.TaskRunStarted:
    """Give the event of a start from its row.

    Args:
        run: the row.
        run_count: of its task, with this run.
    """
    return events.TaskRunStarted(
        at=run.started_at,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        actual_time=run.started_at,
        is_retry=run.reason == "retry",
        reason=run.reason,
        attempt=run.attempt,
        run_count=run_count,
        run=run.pk,
    )
