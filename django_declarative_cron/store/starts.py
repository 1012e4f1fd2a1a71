"""A run as it is offered to external workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connections

from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.declarations.runners import EXTERNAL
from ..core.overlap import Policy
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import database, operator_actions, overlaps
from .guard import Locked, Member


def offer(run: TaskRun, declaration: Declaration) -> TaskRun:
    """Let a run that was decided wait for a worker, in memory."""
    run.outcome, run.started_at, run.instance_id = Outcome.WAITING, None, None
    run.waits_in = declaration.queue
    run.job = job_of(declaration)
    return run


def job_of(declaration: Declaration) -> dict[str, Any]:
    """Return what a worker is told of a task's runs, JSON-native."""
    return {
        "type": declaration.target.text,
        "args": list(declaration.target.args),
        "queue": declaration.queue,
        "tags": list(declaration.tags),
        "meta": dict(declaration.meta),
        "timeout": None if declaration.timeout is None else declaration.timeout.total_seconds(),
        "max_attempts": declaration.retry.max_attempts,
    }


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that is committed as started and must now be called.

    Args:
        run: id of its row.
        task_name: of the task.
        started: the event of its start.
        term: under which it was claimed.
        declaration: what is to be called, and how.
    """

    run: int
    task_name: str
    started: events.TaskRunStarted
    term: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class Started:
    """A start that was decided and is to be written.

    Args:
        row: of the task, with the state after the start.
        event: of the start.
        declaration: of the task.
        policy: by which it was decided.
    """

    row: ScheduledTask
    event: events.TaskRunStarted
    declaration: Declaration
    policy: Policy


def write_starts(
    held: Locked, member: Member, started: list[Started], unserved: list[TaskRun]
) -> list[Claim]:
    """Write the runs that start; their tasks' rows point at them and are still to be saved."""
    operator_actions.sign(held, member.using, unserved)
    overlaps.begin(held, member, [(each.row, each.event) for each in started])
    _offer_waited(member, started)
    fresh = [each for each in started if each.event.waited is None]
    runs = [_run_row(held, member, each) for each in fresh]
    new = [*unserved, *runs]
    database.insert(member.using, new)
    _with_ids(held, member, [run for run in new if run.running_slot])
    for each, run in zip(fresh, runs, strict=True):
        each.row.running_run = run.pk
    _consume_requests(held, member, [each.event for each in started])
    return [_claim_of(each, held.row.term) for each in started]


def _offer_waited(member: Member, started: Iterable[Started]) -> None:
    """Let runs that waited behind others wait for a worker, each in the queue of its task."""
    for each in started:
        if each.event.waited is not None and each.declaration.runner == EXTERNAL:
            offered = offer(TaskRun(), each.declaration)
            TaskRun.objects.using(member.using).filter(pk=each.event.waited).update(
                outcome=offered.outcome,
                started_at=None,
                instance=None,
                waits_in=offered.waits_in,
                job=offered.job,
            )


def _claim_of(each: Started, term: int) -> Claim:
    run = each.row.running_run
    assert run is not None
    started = each.event.but(run=run)
    return Claim(run, started.task_name, started, term, each.declaration)


def _run_row(held: Locked, member: Member, started: Started) -> TaskRun:
    row, event = started.row, started.event
    run = TaskRun(
        scheduler=held.row,
        outcome=Outcome.RUNNING,
        instance_id=member.instance,
        term=held.row.term,
        task_name=event.task_name,
        origin=row.origin,
        scheduled_for=event.scheduled_time,
        started_at=event.actual_time,
        reason=event.reason,
        attempt=event.attempt,
        epoch=row.epoch,
        running_slot=overlaps.slot_of(event.task_name, started.policy),
    )
    return offer(run, started.declaration) if started.declaration.runner == EXTERNAL else run


def _with_ids(held: Locked, member: Member, runs: list[TaskRun]) -> None:
    """Fetch the ids where the database does not hand them out with the insert."""
    if connections[member.using].features.can_return_rows_from_bulk_insert or not runs:
        return
    slots = {run.running_slot: run for run in runs}
    stored = TaskRun.objects.using(member.using).filter(
        scheduler=held.row, running_slot__in=list(slots)
    )
    for pk, slot in stored.values_list("pk", "running_slot"):
        slots[slot].pk = pk


def _consume_requests(
    held: Locked, member: Member, started: Iterable[events.TaskRunStarted]
) -> None:
    """Close the requests of people that these starts answer."""
    names = [event.task_name for event in started if event.answers_request]
    if names:
        asked = TaskOverride.objects.using(member.using).filter(
            scheduler=held.row,
            kind=TaskOverride.Kind.RUN,
            ended_at=None,
            task_name__in=names,
        )
        asked.update(ended_at=held.database_now)
