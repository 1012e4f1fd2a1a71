"""Starts that were committed although the database's answer was lost on the way.

A connection may break between the commit and the word of it. The run then stands
there as started by an instance that lives and does not know of it: nobody would ever
call it, and its task would wait for its end.
"""

from __future__ import annotations

from collections.abc import Collection

from ..core import events
from ..models import TaskRun
from . import database
from .claims import Claim
from .guard import Member, locked


@database.again_after_conflict
def unanswered(member: Member, known: Collection[int], names: Collection[str]) -> list[Claim]:
    """Find an instance's own starts that it does not know of.

    The lock is what makes it certain: a transaction that was cut off holds it until the
    server has ended it one way or the other.

    Args:
        member: who started them; it starts nothing meanwhile.
        known: ids of the runs it knows of.
        names: of the tasks in its registration set.

    Returns:
        what must now be called.
    """
    with locked(member) as held:
        if held is None:
            return []
        mine = TaskRun.objects.using(member.using).filter(
            scheduler=held.row, instance=member.instance, running_slot__isnull=False
        )
        return [
            Claim(run.pk, run.task_name, _started(run), run.term)
            for run in mine.order_by("pk")
            if run.pk not in known and run.task_name in names
        ]


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
