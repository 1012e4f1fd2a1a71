"""Recording how runs ended: one transaction for all results waiting.

A result whose rows somebody else holds is left out, to be recorded another time; it
keeps no other result from being recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DataError, IntegrityError, OperationalError
from django.db.models import QuerySet

from ..core import events
from ..core.decide import Story, settle
from ..core.retry import chance_of
from ..models import Outcome, ScheduledTask, TaskRun
from . import database, outbox, rows
from .faults import is_lock_timeout
from .guard import Locked, Member, locked
from .mending import mending

_RUN_FIELDS = [
    *("outcome", "finished_at", "running_slot", "error", "traceback"),
    *("result", "log", "output"),
]


@dataclass(frozen=True, slots=True)
class Result:
    """How one run ended.

    Args:
        run: id of its row.
        task_name: of the task.
        finished_at: when the callback returned or raised.
        succeeded: whether it returned.
        error: one line, empty on success.
        traceback: empty on success.
        duration: in seconds, by the monotonic clock.
        errors: every name its error goes by, for a retry policy.
        outcome: ``timed_out`` or ``cancelled`` where it was asked to end.
        value: what it returned, JSON-native.
        log: the end of what it logged.
        output: the end of what its process printed.
        recorded: it is written already, together with the run's own work.
    """

    run: int
    task_name: str
    finished_at: datetime
    succeeded: bool
    error: str = ""
    traceback: str = ""
    duration: float = 0.0
    errors: tuple[str, ...] = ()
    outcome: str = ""
    value: Any = None
    log: str = ""
    output: str = ""
    recorded: bool = False


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
        tasks = {task.running_run: task for task in free.tasks}
        for result in free.results:
            task = tasks.get(result.run)
            run = runs.get(result.run) or _lost_row(member, task, result)
            if run is None:
                recorded.events.append(_late(member, result))
                continue
            _end(run, result)
            recorded.events += _settled(run, result, task, now)
        database.upsert(member.using, runs.values(), _RUN_FIELDS)
        database.upsert(member.using, tasks.values(), rows.STATE_FIELDS)
        recorded.events = outbox.tell(
            held, member.using, recorded.events, tasks.values(), runs.values()
        )
    return recorded


@dataclass(frozen=True, slots=True)
class _Free:
    """Results that can be recorded, and the locked rows they concern."""

    results: list[Result]
    tasks: list[ScheduledTask]
    runs: list[TaskRun]


def _free(held: Locked, member: Member, results: Sequence[Result]) -> tuple[_Free, list[Result]]:
    """Lock the rows of results, tasks before runs as everywhere; give those left out too."""
    names, ended = {r.task_name for r in results}, {r.run for r in results}
    tasks, busy_tasks = database.lock(
        member.using,
        ScheduledTask.objects.using(member.using).filter(scheduler=held.row, name__in=names),
        "name",
        names,
    )
    free = [result for result in results if result.task_name not in busy_tasks]
    runs, busy_runs = database.lock(
        member.using, _open_runs(held, member, free), "pk", {result.run for result in free}
    )
    free = [result for result in free if result.run not in busy_runs]
    mine = [task for task in tasks if task.running_run in ended - busy_runs]
    return _Free(free, mine, runs), [result for result in results if result not in free]


def _open_runs(held: Locked, member: Member, results: Sequence[Result]) -> QuerySet[TaskRun]:
    return TaskRun.objects.using(member.using).filter(
        scheduler=held.row,
        pk__in=[result.run for result in results],
        outcome=Outcome.RUNNING,
        instance=member.instance,
    )


def _lost_row(member: Member, task: ScheduledTask | None, result: Result) -> TaskRun | None:
    """Stand in for the row of a run that somebody deleted while its task still waits for it."""
    stored = TaskRun.objects.using(member.using).filter(pk=result.run)
    if task is None or stored.exists():
        return None
    return TaskRun(task_name=result.task_name, attempt=task.attempt, epoch=task.epoch)


def _end(run: TaskRun, result: Result) -> None:
    run.outcome = Outcome(result.outcome or ("succeeded" if result.succeeded else "failed"))
    run.finished_at = result.finished_at
    run.running_slot = None
    run.error = result.error
    run.traceback = result.traceback
    run.result = result.value
    run.log = result.log
    run.output = result.output


def _settled(
    run: TaskRun, result: Result, task: ScheduledTask | None, now: datetime
) -> list[events.Event]:
    """Fold the end into the task's state, unless its row forgot this run."""
    history_only = task is None or task.epoch != run.epoch
    if task is None:
        return [_ended(run, result, history_only, None)]
    try:
        retry, schedule = rows.retry_of(task), rows.schedule_of(task)
        chance = chance_of(task.scheduler_identifier, run.pk)
        retried = retry.after(result.finished_at, run.attempt, result.errors, chance)
        ended = _ended(run, result, history_only, None if history_only else retried.at)
        story = Story(rows.state_of(task)).then(ended)
        rows.take(task, settle(story, schedule, now))
        return list(story.events)
    except rows.DAMAGE as damage:
        task.running_run = None
        return [_ended(run, result, True, None), rows.set_aside(task, str(damage), now)]


def _ended(
    run: TaskRun, result: Result, history_only: bool, next_retry_at: datetime | None
) -> events.TaskRunCompleted | events.TaskRunFailed:
    name = run.task_name
    if result.succeeded:
        return events.TaskRunCompleted(
            at=result.finished_at,
            task_name=name,
            duration=result.duration,
            history_only=history_only,
            run=result.run,
        )
    return events.TaskRunFailed(
        at=result.finished_at,
        task_name=name,
        duration=result.duration,
        error=result.error,
        next_retry_at=next_retry_at,
        history_only=history_only,
        run=result.run,
    )


def _late(member: Member, result: Result) -> events.Event:
    """Tell of a result that finds its run ended: by somebody else, or by itself before.

    The latter is so where the database's word that it was written was lost on the way.
    """
    mine = TaskRun.objects.using(member.using).filter(
        pk=result.run, instance=member.instance, finished_at=result.finished_at
    )
    stored = mine.first()
    if stored is not None:
        return _ended(stored, result, False, None)
    return events.TaskRunLate(
        at=result.finished_at,
        task_name=result.task_name,
        run=result.run,
        success=result.succeeded,
    )
