"""Runs that another process calls: in whose hands a run is, and how it changes hands.

A run that waits in the queue of an engine is in the hands of the scheduler that claimed it.
The worker that takes it up becomes its instance, under the deployment's lock: from then on
its heartbeat keeps the run, its result is fenced by it, and the scheduler lets go. A message
that comes twice, or for a run that was given up meanwhile, finds it in other hands.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from ..core import events
from ..models import Outcome, ScheduledTask, TaskRun
from . import database, instances
from .guard import Member, locked
from .instances import Process
from .unanswered import start_of


@dataclass(frozen=True, slots=True)
class Taken:
    """A run that was taken up.

    Args:
        started: the event of its start.
        task: the row of its task.
    """

    started: events.TaskRunStarted
    task: ScheduledTask


@database.again_after_conflict
def take_up(member: Member, process: Process, run: int, of: UUID) -> Taken | None:
    """Become the instance of a run, if it is still in the hands of who queued it.

    Args:
        member: who is going to call it; it is registered with it.
        process: where it runs.
        run: id of its row.
        of: instance that queued it.

    Returns:
        the run, ``None`` where it is in other hands or has ended.
    """
    with locked(member) as held:
        if held is None:
            return None
        row = _open(member, [run], of).filter(scheduler=held.row).select_for_update().first()
        if row is None:
            return None
        tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
        task = tasks.filter(name=row.task_name).first()
        if task is None:
            return None
        instances.register(held, member, process)
        row.instance_id = member.instance
        row.save(using=member.using, update_fields=["instance"])
        return Taken(start_of(row), task)


def in_hands(member: Member, runs: Collection[int]) -> set[int]:
    """Give those of some runs that nobody has taken up yet.

    Args:
        member: who queued them.
        runs: ids of their rows.
    """
    with database.direct(member.using):
        return {
            pk
            for chunk in database.chunks(runs)
            for pk in _open(member, chunk, member.instance).values_list("pk", flat=True)
        }


@database.again_after_conflict
def let_go(member: Member, runs: Collection[int]) -> None:
    """Leave runs that nobody has taken up; the next scheduler finds them interrupted.

    Args:
        member: who queued them, and stops.
        runs: ids of their rows.
    """
    with locked(member) as held:
        if held is not None:
            for chunk in database.chunks(runs):
                _open(member, chunk, member.instance).update(instance=None)


def _open(member: Member, runs: Collection[int], of: UUID) -> Any:
    return TaskRun.objects.using(member.using).filter(
        pk__in=list(runs), outcome=Outcome.RUNNING, instance=of
    )
