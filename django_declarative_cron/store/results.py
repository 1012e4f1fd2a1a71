"""Recording how runs ended: one transaction for all results waiting.

A result whose rows somebody else holds is left out, to be recorded another time; it
keeps no other result from being recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from django.db import DataError, IntegrityError, OperationalError

from ..core import events
from ..models import Outcome, ScheduledTask, TaskRun
from . import autopause, bulk, database, outbox, overlaps, rows
from .endings import Place, Result, end, late, settled
from .faults import is_lock_timeout
from .guard import Locked, Member, locked
from .mending import mending

__all__ = ["Recorded", "Result", "is_open", "record"]

_RUN_FIELDS = [
    *("outcome", "finished_at", "running_slot", "error", "traceback", "detail"),
    *("result", "log", "output"),
]


@dataclass(slots=True)
class Recorded:
    """What one recording did.

    Args:
        events: what happened, in causal order.
        held: results that were not written, because somebody else holds their rows.
    """

    events: list[events.Event] = field(default_factory=list)
    held: list[Result] = field(default_factory=list)


def is_open(member: Member, run: int) -> bool:
    """Tell whether a run in progress is still this instance's.

    Args:
        member: who claimed it.
        run: id of its row.
    """
    with database.direct(member.using):
        mine = TaskRun.objects.using(member.using).filter(pk=run, instance=member.instance)
        return mine.filter(outcome=Outcome.RUNNING).exists()


def record(member: Member, results: Sequence[Result], now: datetime) -> Recorded:
    """Write results, fenced: only a run that is still this instance's is ended.

    Args:
        member: whose runs ended; it need not lead.
        results: one for each run.
        now: the instant of the tick.

    Raises:
        django.db.Error: nothing was written; the results must be kept.
    """
    batch = partial(_record, member, results, now)
    try:
        return mending(member.using, member.deployment, batch)
    except (DataError, IntegrityError):
        return _record_each(member, results, now)
    except OperationalError as error:
        if not is_lock_timeout(error) or len(results) == 1:
            raise
        return _record_each(member, results, now)


def record_here(member: Member, result: Result, now: datetime) -> Recorded:
    """Write a result in the transaction that is open, without a second try.

    Args:
        member: whose run ended.
        result: of the run.
        now: the instant.

    Raises:
        django.db.Error: the transaction is lost.
    """
    return _record(member, [result], now)


def _record_each(member: Member, results: Sequence[Result], now: datetime) -> Recorded:
    """Find the result that spoils the batch: each in a transaction of its own."""
    total, refusal = Recorded(), None
    for result in results:
        try:
            alone = _record_alone(member, result, now)
        except OperationalError as error:
            if not is_lock_timeout(error):
                raise
            refusal, alone = error, Recorded(held=[result])
        total.events += alone.events
        total.held += alone.held
    if refusal is not None and len(total.held) == len(results):
        raise refusal
    return total


def _record_alone(member: Member, result: Result, now: datetime) -> Recorded:
    """Write one result; one whose texts the database refuses is written without them."""
    try:
        return _record(member, [result], now)
    except (DataError, IntegrityError) as error:
        bare = replace(result, error=f"(refused by the database: {type(error).__name__})")
        bare = replace(bare, traceback="", value=None, log="", output="")
        return _record(member, [bare], now)


@database.again_after_conflict
def _record(member: Member, results: Sequence[Result], now: datetime) -> Recorded:
    recorded = Recorded()
    with locked(member) as held:
        if held is None:
            return recorded
        free, recorded.held = _free(held, member, results)
        runs = {run.pk: run for run in free.runs}
        places = _places(held, member, free)
        for result in free.results:
            place = places.get(result.run, Place(None))
            run = runs.get(result.run) or _lost_row(member, place.task, result)
            if run is None:
                recorded.events += _late(member, result)
                continue
            end(run, result)
            recorded.events += settled(run, result, place, now)
        bulk.upsert(member.using, free.runs, _RUN_FIELDS)
        bulk.upsert(member.using, free.tasks, rows.STATE_FIELDS)
        autopause.note(held, member.using, recorded.events, free.tasks)
        recorded.events = outbox.tell(
            held, member.using, recorded.events, free.tasks, runs.values()
        )
    return recorded


def _places(held: Locked, member: Member, free: _Free) -> dict[int, Place]:
    """Say of each run where it stands among those of its task."""
    tasks = {task.name: task for task in free.tasks}
    runs = {run.pk: run for run in free.runs}
    beside = {
        result.task_name
        for result in free.results
        if (task := tasks.get(result.task_name)) and (run := runs.get(result.run))
        if overlaps.may_have_others(run, task, result.declaration)
    }
    going_on = overlaps.others(held, member, beside, [result.run for result in free.results])
    places = {}
    for result in free.results:
        task = tasks.get(result.task_name)
        is_known = task is not None and task.running_run == result.run
        run = runs.get(result.run) if result.task_name in beside else None
        if is_known or run is not None:
            is_newest = is_known and not (run and task and overlaps.is_overtaken(run, task))
            places[result.run] = Place(task, is_newest, going_on.get(result.task_name))
    return places


@dataclass(frozen=True, slots=True)
class _Free:
    """Results that can be recorded, and the locked rows they concern."""

    results: list[Result]
    tasks: list[ScheduledTask]
    runs: list[TaskRun]


def _free(held: Locked, member: Member, results: Sequence[Result]) -> tuple[_Free, list[Result]]:
    """Lock the rows of results, tasks before runs as everywhere; give those left out too."""
    tasks, busy_tasks = _lock_tasks(held, member, results)
    free = [result for result in results if result.task_name not in busy_tasks]
    runs, busy_runs = _lock_runs(held, member, {result.run for result in free})
    free = [result for result in free if result.run not in busy_runs]
    ended = {result.run for result in results} - busy_runs
    beside = {run.task_name for run in runs if overlaps.is_apart(run)}
    mine = [t for t in tasks if t.running_run in ended or t.name in beside or rows.runs_beside(t)]
    taken = {result.run for result in free}
    return _Free(free, mine, runs), [result for result in results if result.run not in taken]


def _lock_tasks(
    held: Locked, member: Member, results: Sequence[Result]
) -> tuple[list[ScheduledTask], set[str]]:
    names = {result.task_name for result in results}
    tasks = ScheduledTask.objects.using(member.using).filter(scheduler=held.row)
    return database.lock(member.using, tasks.filter(name__in=names), "name", names)


def _lock_runs(held: Locked, member: Member, ids: set[int]) -> tuple[list[TaskRun], set[int]]:
    runs = TaskRun.objects.using(member.using).filter(scheduler=held.row, pk__in=ids)
    mine = runs.filter(outcome=Outcome.RUNNING, instance=member.instance)
    return database.lock(member.using, mine, "pk", ids)


def _lost_row(member: Member, task: ScheduledTask | None, result: Result) -> TaskRun | None:
    """Stand in for the row of a run that somebody deleted while its task still waits for it."""
    stored = TaskRun.objects.using(member.using).filter(pk=result.run)
    if task is None or stored.exists():
        return None
    return TaskRun(task_name=result.task_name, attempt=task.attempt, epoch=task.epoch)


def _late(member: Member, result: Result) -> list[events.Event]:
    """Tell of a result that finds its run ended: by somebody else, or by itself before.

    The latter is so where the database's word that it was written was lost on the way.
    """
    mine = TaskRun.objects.using(member.using).filter(
        pk=result.run, instance=member.instance, finished_at=result.finished_at
    )
    if result.recorded and result.error:
        mine.update(error=result.error, traceback=result.traceback)
    return late(mine.first(), result)
