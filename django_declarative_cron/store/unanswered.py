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
from . import database
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
            scheduler=held.row, instance=member.instance, running_slot__isnull=False
        )
        lost = [run for run in mine.order_by("pk") if run.pk not in known]
        by_name = {**declarations, **dict(_posted(held, member, lost))}
        return [
            Claim(run.pk, run.task_name, _started(run), run.term, by_name[run.task_name])
            for run in lost
            if run.task_name in by_name
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


def _started(run: TaskRun) -> events.TaskRunStarted:
    return events.TaskRunStarted(
        at=run.started_at,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        actual_time=run.started_at,
        is_retry=run.reason == "retry",
        reason=run.reason,
        attempt=run.attempt,
    )
