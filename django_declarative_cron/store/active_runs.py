"""Runs that start, run concurrently, wait for one another, or are asked to end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import connections
from django.db.models import Case, F, QuerySet, Value, When

from ..core import events
from ..core.decide import BACKFILL
from ..core.declarations.declaration import Declaration
from ..core.declarations.runners import EXTERNAL
from ..core.overlap import CONCURRENT, ActiveRun, Policy
from ..fields import InstantField
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import bulk_update, database, outbox, rows
from .guard import LockedDeployment, Member
from .rows import ACTIVE, STATE_FIELDS, is_apart, own_slot, runs_beside

Active = Mapping[str, list[ActiveRun]]

_LATER = timedelta(seconds=1)
"""How soon a reservation is looked at again that seems to be over and is not."""


def may_have_others(run: TaskRun, task: ScheduledTask, known: Declaration | None = None) -> bool:
    """Return whether further runs of a task may run concurrently with one of them."""
    return is_apart(run) or runs_beside(task, known)


def is_overtaken(run: TaskRun, task: ScheduledTask) -> bool:
    """Return whether a newer occurrence was started beside a run, even if that one has ended."""
    newest = task.occurrence_at
    return newest is not None and run.scheduled_for < newest and run.reason != BACKFILL


def active_runs(held: LockedDeployment, tasks: Iterable[ScheduledTask]) -> Active:
    """Return the active and waiting runs of tasks that need them for the next decision."""
    # The other tasks have no active run, so most ticks need no query.
    asked = {task.name: task for task in tasks if task.waiting or task.running_run is not None}
    if not asked:
        return {}
    found: dict[str, list[ActiveRun]] = {name: [] for name in asked}
    fields = ("task_name", "pk", "scheduled_for", "outcome")
    further = ("cancel_requested_at", "reason", "reserved_until")
    runs = _active(held).filter(task_name__in=list(asked)).order_by("pk")
    for name, pk, scheduled_for, outcome, asked_at, reason, until in runs.values_list(
        *fields, *further
    ):
        waits = outcome == Outcome.WAITING and pk != asked[name].running_run
        found[name].append(ActiveRun(pk, scheduled_for, waits, asked_at is not None, reason, until))
    for name, task in asked.items():
        # Deleting the row of a run does not end the run.
        if task.running_run is not None and task.running_run not in {r.run for r in found[name]}:
            since = task.occurrence_at or task.registered_at
            found[name].append(ActiveRun(task.running_run, since))
    return found


def wake_of(row: ScheduledTask, active: Sequence[ActiveRun], now: datetime) -> datetime | None:
    """Return when to look at a task again: not after the end of a worker's reservation."""
    ends = [max(run.reserved_until, now + _LATER) for run in active if run.reserved_until]
    return min([*ends, *filter(None, [row.wake_at])], default=None)


def _active(held: LockedDeployment) -> QuerySet[TaskRun]:
    return held.runs.filter(ACTIVE)


def others(
    held: LockedDeployment, names: Collection[str], ended: Collection[int]
) -> dict[str, int]:
    """Return the newest run that goes on, of each task that has one."""
    going_on = _active(held).filter(task_name__in=names).exclude(outcome=Outcome.WAITING)
    return dict(going_on.exclude(pk__in=ended).order_by("pk").values_list("task_name", "pk"))


def request_cancels(held: LockedDeployment, told: Iterable[events.Event]) -> list[TaskRun]:
    """Record the runs that are asked to end; waiting ones end immediately.

    Returns:
        those that no external worker had fetched: they have ended too, and no event says so yet.
    """
    asked = [event for event in told if isinstance(event, events.TaskRunCancelRequested)]
    if not asked:
        return []
    at = asked[0].at
    mine = _active(held).filter(cancel_requested_at=None)
    # A run that no worker has fetched yet can end immediately.
    waiting = mine.filter(pk__in=[event.run for event in asked], waits_in__isnull=False)
    offered = list(waiting.order_by("pk"))
    unstarted = {run.pk for run in offered} | {event.run for event in asked if event.waits}
    _end_waiting(mine.filter(pk__in=unstarted), at)
    mine.filter(pk__in={event.run for event in asked} - unstarted).update(cancel_requested_at=at)
    return offered


def withdraw(held: LockedDeployment, names: Collection[str], now: datetime) -> list[TaskRun]:
    """End runs that no external worker has fetched yet: their tasks are not theirs any more.

    Returns:
        their rows; no event says so yet.
    """
    offered = _active(held).filter(task_name__in=names, waits_in__isnull=False)
    withdrawn = list(offered.order_by("pk"))
    _end_waiting(_active(held).filter(pk__in=[run.pk for run in withdrawn]), now)
    return withdrawn


def ends_of(offered: Iterable[TaskRun], now: datetime) -> list[events.TaskRunCancelled]:
    """Return the events of runs that ended before any external worker fetched them."""
    return [
        events.TaskRunCancelled(
            at=now,
            task_name=run.task_name,
            duration=0.0,
            history_only=True,
            run=run.pk,
            others=True,
        )
        for run in offered
    ]


def drop_waiting(
    held: LockedDeployment, name: str, now: datetime
) -> list[events.TaskRunCancelRequested]:
    """End every waiting run of a task: its past occurrences are no longer pending."""
    return _drop(_behind(held, name), name, now, "overridden")


def drop_one_waiting(
    held: LockedDeployment, run: TaskRun, now: datetime
) -> list[events.TaskRunCancelRequested]:
    """End a run that waits behind another one, where somebody asks for it."""
    mine = _behind(held, run.task_name).filter(pk=run.pk)
    return _drop(mine, run.task_name, now, "requested")


def _behind(held: LockedDeployment, name: str) -> QuerySet[TaskRun]:
    return _active(held).filter(task_name=name, outcome=Outcome.WAITING, waits_in=None)


def _drop(
    waiting: QuerySet[TaskRun], name: str, now: datetime, reason: str
) -> list[events.TaskRunCancelRequested]:
    told = [
        events.TaskRunCancelRequested(at=now, task_name=name, run=run, reason=reason, waits=True)
        for run in waiting.order_by("pk").values_list("pk", flat=True)
    ]
    _end_waiting(waiting, now)
    return told


def _end_waiting(waiting: QuerySet[TaskRun], at: datetime) -> None:
    waiting.update(
        outcome=Outcome.CANCELLED,
        cancel_requested_at=at,
        finished_at=at,
        running_slot=None,
        waits_in=None,
    )


def start_waiting_runs(
    held: LockedDeployment, begun: list[tuple[ScheduledTask, events.TaskRunStarted]]
) -> None:
    begun = [(row, event) for row, event in begun if event.waited is not None]
    for row, event in begun:
        row.running_run = event.waited
    for is_concurrent in (False, True):
        runs = {
            event.waited: event.actual_time
            for row, event in begun
            if event.waited and runs_beside(row) is is_concurrent
        }
        if not runs:
            continue
        # A run that blocks others takes the one slot of its task; a concurrent one keeps its own.
        values = {} if is_concurrent else {"running_slot": F("task_name")}
        _active(held).filter(pk__in=runs).update(
            outcome=Outcome.RUNNING,
            started_at=_dates(runs),
            instance_id=held.member.instance,
            term=held.row.term,
            **values,
        )


def _dates(runs: Mapping[int, datetime]) -> Case:
    """Date the start of each run: most of one tick begin at one instant.

    If a run ended after the tick had begun, its end dates the next start of its task.
    """
    common, *_ = runs.values()
    others = [
        When(pk=run, then=Value(at, InstantField())) for run, at in runs.items() if at != common
    ]
    return Case(*others, default=Value(common, InstantField()))


def offer(run: TaskRun, declaration: Declaration) -> TaskRun:
    """Queue a decided run for a worker, in memory."""
    run.outcome, run.started_at, run.instance_id = Outcome.WAITING, None, None
    run.waits_in = declaration.queue
    run.job = job_of(declaration)
    return run


def job_of(declaration: Declaration) -> dict[str, Any]:
    """Return the JSON-native job of a task's runs, as a worker gets it."""
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
    """A run that is committed as started and must now be called."""

    run: int
    task_name: str
    started: events.TaskRunStarted
    term: int
    declaration: Declaration


@dataclass(frozen=True, slots=True)
class Started:
    """A start that was decided and is to be written; its row has the state after it."""

    row: ScheduledTask
    event: events.TaskRunStarted
    declaration: Declaration
    policy: Policy


def write_decided(
    held: LockedDeployment,
    tasks: Sequence[ScheduledTask],
    told: Iterable[events.Event],
    now: datetime,
    started: Sequence[Started] = (),
    fields: Sequence[str] = STATE_FIELDS,
) -> tuple[list[Claim], list[events.Event]]:
    """Write what was decided for tasks: the runs that end, wait, start and are left out.

    Args:
        told: the events of these tasks only; what recovery told is written already.

    Returns:
        the runs that start, and the events with their facts, in causal order.
    """
    told = list(told)
    unserved = rows.unserved_rows(held.row, tasks, told)
    replaced = request_cancels(held, told)
    claims = write_starts(held, started, unserved)
    bulk_update.update(held.using, tasks, fields)
    told += ends_of(replaced, now)
    starts = [claim.started for claim in claims]
    return claims, outbox.tell(held, told, tasks, [*unserved, *replaced], starts)


def write_starts(
    held: LockedDeployment, started: Sequence[Started], unserved: Sequence[TaskRun]
) -> list[Claim]:
    """Write the runs that start; their tasks' rows point at them and are still to be saved."""
    _sign(held, unserved)
    start_waiting_runs(held, [(each.row, each.event) for each in started])
    _offer_waited(held.member, started)
    fresh = [each for each in started if each.event.waited is None]
    runs = [_run_row(held, each) for each in fresh]
    new = [*unserved, *runs]
    database.insert(held.using, new)
    _with_ids(held, [run for run in new if run.running_slot])
    for each, run in zip(fresh, runs, strict=True):
        each.row.running_run = run.pk
    _consume_requests(held, [each.event for each in started])
    return [_claim_of(each, held.row.term) for each in started]


def _sign(held: LockedDeployment, unserved: Iterable[TaskRun]) -> None:
    """Write the author and the reason of a skip into rows that are not saved yet."""
    passed = {run.task_name: run for run in unserved if run.reason == "skip_next"}
    acts = held.acts.filter(kind=TaskOverride.Kind.SKIP, ended_at=None, task_name__in=list(passed))
    # The newest is the one: it ended those before it, and its occurrence may have moved since.
    for act in acts.order_by("id"):
        told = {"author": act.author, **({"note": act.note} if act.note else {})}
        passed[act.task_name].detail = told
    acts.update(ended_at=held.database_now)


def _offer_waited(member: Member, started: Iterable[Started]) -> None:
    """Queue runs that waited behind others for a worker, each in the queue of its task."""
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
    started = replace(each.event, run=run)
    return Claim(run, started.task_name, started, term, each.declaration)


def _run_row(held: LockedDeployment, started: Started) -> TaskRun:
    row, event = started.row, started.event
    run = TaskRun(
        scheduler=held.row,
        outcome=Outcome.RUNNING,
        instance_id=held.member.instance,
        term=held.row.term,
        task_name=event.task_name,
        origin=row.origin,
        scheduled_for=event.scheduled_time,
        started_at=event.actual_time,
        reason=event.reason,
        attempt=event.attempt,
        epoch=row.epoch,
        running_slot=own_slot(row.name) if started.policy in CONCURRENT else row.name,
    )
    return offer(run, started.declaration) if started.declaration.runner == EXTERNAL else run


def _with_ids(held: LockedDeployment, runs: list[TaskRun]) -> None:
    """Fetch the ids if the database does not return them with the insert."""
    if connections[held.using].features.can_return_rows_from_bulk_insert or not runs:
        return
    slots = {run.running_slot: run for run in runs}
    stored = held.runs.filter(running_slot__in=list(slots))
    for pk, slot in stored.values_list("pk", "running_slot"):
        slots[slot].pk = pk


def _consume_requests(held: LockedDeployment, started: Iterable[events.TaskRunStarted]) -> None:
    """Close the operators' run requests that these starts answer."""
    names = [event.task_name for event in started if event.answers_request]
    asked = held.acts.filter(kind=TaskOverride.Kind.RUN, ended_at=None, task_name__in=names)
    asked.update(ended_at=held.database_now)
