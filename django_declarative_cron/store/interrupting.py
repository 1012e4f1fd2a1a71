"""Runs whose process is gone, and what follows for their tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..core import events
from ..core.decide import Story, settle
from ..core.starting import BACKFILL
from ..core.suspicion import SUSPICIOUS
from ..models import Outcome, ScheduledTask, SchedulerInstance, TaskRun
from . import bulk, database, outbox, overlaps, rows
from .guard import Locked, Member
from .liveness import ALIVE_UNTIL, last_sign_of_life

_RUN_FIELDS = ["outcome", "finished_at", "running_slot", "error", "detail"]


def interrupt(
    held: Locked, member: Member, found: Sequence[TaskRun], now: datetime
) -> list[events.Event]:
    """End runs as interrupted; the newest one of a task restarts, unless it was to end.

    A run whose task's row somebody else holds is left for another time.

    Args:
        held: the locked row of the deployment.
        member: who leads.
        found: the runs, locked.
        now: the instant of the tick.
    """
    if not found:
        return []
    tasks, elsewhere = _tasks_of(held, member, found)
    found = [run for run in found if run.pk not in elsewhere]
    beside = {
        run.task_name
        for run in found
        if run.pk in tasks and overlaps.may_have_others(run, tasks[run.pk])
    }
    others = overlaps.others(held, member, beside, [run.pk for run in found])
    _load_instances(member, found)
    told: list[events.Event] = []
    for run in found:
        task, other = tasks.get(run.pk), others.get(run.task_name)
        told.append(_interrupted(run, task, other, member, now))
        told += [] if task is None else _suspicion(task, now)
        _end(run, now)
    bulk.upsert(member.using, found, _RUN_FIELDS)
    bulk.upsert(member.using, tasks.values(), rows.STATE_FIELDS)
    return outbox.tell(held, member.using, told, tasks.values(), found)


def _tasks_of(
    held: Locked, member: Member, found: Sequence[TaskRun]
) -> tuple[dict[int, ScheduledTask], set[int]]:
    """Give the tasks by their newest run, and the runs whose task's row somebody else holds."""
    ids = [run.pk for run in found]
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    newest = tasks.filter(running_run__in=ids)
    free, elsewhere = database.lock(member.using, newest, "running_run", ids)
    return {task.running_run: task for task in free if task.running_run is not None}, elsewhere


def _interrupted(
    run: TaskRun, task: ScheduledTask | None, other: int | None, member: Member, now: datetime
) -> events.TaskRunInterrupted:
    knows = task is not None and task.epoch == run.epoch and not _is_overtaken(run, task)
    event = events.TaskRunInterrupted(
        at=now,
        task_name=run.task_name,
        scheduled_time=run.scheduled_for,
        old_instance=str(run.instance_id),
        new_instance=str(member.instance),
        restarts=knows and run.cancel_requested_at is None and run.reason != BACKFILL,
        run=run.pk,
        others=other is not None,
    )
    if task is None:
        return event
    state = Story(rows.state_of(task)).then(event).state
    try:
        schedule, policy = rows.schedule_of(task), rows.policy_of(task)
        rows.take(task, settle(Story(state), schedule, now, policy))
    except rows.DAMAGE as damage:
        rows.set_aside(task, str(damage), now)
        task.running_run = None
    if other is not None:
        task.running_run = other
    return event


def _is_overtaken(run: TaskRun, task: ScheduledTask) -> bool:
    return overlaps.may_have_others(run, task) and overlaps.is_overtaken(run, task)


def _suspicion(task: ScheduledTask, now: datetime) -> list[events.Event]:
    """Tell once of a task that may be what ends its process."""
    if task.interruptions != SUSPICIOUS:
        return []
    count = task.interruptions
    return [events.TaskRepeatedlyInterrupted(at=now, task_name=task.name, interruptions=count)]


def _load_instances(member: Member, found: Sequence[TaskRun]) -> None:
    known = SchedulerInstance.objects.using(member.using).defer("lapses")
    instances = known.in_bulk([run.instance_id for run in found if run.instance_id])
    for run in found:
        run.instance = instances.get(run.instance_id)


def _end(run: TaskRun, now: datetime) -> None:
    heard = run.reserved_until if run.reservation is not None else last_sign_of_life(run)
    if heard is not None:
        run.detail = {**(run.detail or {}), ALIVE_UNTIL: min(heard, now).isoformat()}
    run.outcome = Outcome.INTERRUPTED
    run.finished_at = now
    run.running_slot = None
    who = "process it ran in is gone" if run.reservation is None else "worker is not heard of"
    run.error = f"the {who}"
