"""Record results of runs: one transaction for all waiting results.

A result with locked rows is left out and recorded later; it does not keep other results
from being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import DataError, IntegrityError, OperationalError, connections, transaction

from ..core import events
from ..core.decide import BACKFILL, settle
from ..core.declarations.declaration import Declaration
from ..core.repeated_failures import too_many
from ..core.retry import Retried, Retry, chance_of
from ..core.state import Story
from ..exceptions import DeclarativeCronError
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import active_runs, bulk_update, database, operator_actions, outbox, rows
from .database import is_lock_timeout
from .guard import LockedDeployment, Member, locked
from .operator_actions import Act

_RUN_FIELDS = [
    *("outcome", "finished_at", "running_slot", "error", "traceback", "detail"),
    *("result", "log", "output"),
]


@dataclass(slots=True)
class Recorded:
    """The result of one recording; ``held`` was not written, because rows are locked."""

    events: list[events.Event] = field(default_factory=list)
    held: list[Result] = field(default_factory=list)


def is_open(member: Member, run: int) -> bool:
    with database.direct(member.using):
        mine = TaskRun.objects.using(member.using).filter(pk=run, instance=member.instance)
        return mine.filter(outcome=Outcome.RUNNING).exists()


def record(member: Member, results: Sequence[Result], now: datetime) -> Recorded:
    """Write results, fenced: only a run that is still this instance's is ended.

    Raises:
        django.db.Error: nothing was written; the results must be kept.
    """
    try:
        return _record(member, results, now)
    except (DataError, IntegrityError):
        return _record_each(member, results, now)
    except OperationalError as error:
        if not is_lock_timeout(error) or len(results) == 1:
            raise
        return _record_each(member, results, now)


def record_here(member: Member, result: Result, now: datetime) -> Recorded:
    """Write a result in the transaction that is open, without a second try.

    Raises:
        django.db.Error: the transaction is lost.
    """
    return _record(member, [result], now)


def _record_each(member: Member, results: Sequence[Result], now: datetime) -> Recorded:
    """Find the result that fails the batch: write each in its own transaction."""
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
    """Write one result; without its texts if the database refuses them."""
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
        free, tasks, runs = _lock_rows(held, results)
        taken = {result.run for result in free}
        recorded.held = [result for result in results if result.run not in taken]
        places = _places(held, free, tasks, runs)
        for result in free:
            place = places.get(result.run, Place(None))
            run = runs.get(result.run) or _lost_row(member, place.task, result)
            if run is None:
                recorded.events += _late(member, result)
                continue
            end(run, result)
            recorded.events += settled(run, result, place, now)
        changed = {place.task.pk: place.task for place in places.values() if place.task}.values()
        bulk_update.update(member.using, runs.values(), _RUN_FIELDS)
        bulk_update.update(member.using, changed, rows.STATE_FIELDS)
        _audit_pauses(held, recorded.events, changed)
        recorded.events = outbox.tell(held, recorded.events, changed, runs.values())
    return recorded


def _lock_rows(
    held: LockedDeployment, results: Sequence[Result]
) -> tuple[list[Result], dict[str, ScheduledTask], dict[int, TaskRun]]:
    """Lock the rows of results, tasks before runs; return the results whose rows are free."""
    names = {result.task_name for result in results}
    tasks, busy_tasks = database.lock(held.using, held.tasks.filter(name__in=names), "name", names)
    free = [result for result in results if result.task_name not in busy_tasks]
    runs, busy_runs = _lock_runs(held, {result.run for result in free})
    free = [result for result in free if result.run not in busy_runs]
    return free, {task.name: task for task in tasks}, {run.pk: run for run in runs}


def _lock_runs(held: LockedDeployment, ids: set[int]) -> tuple[list[TaskRun], set[int]]:
    runs = held.runs.filter(pk__in=ids)
    mine = runs.filter(outcome=Outcome.RUNNING, instance=held.member.instance)
    return database.lock(held.using, mine, "pk", ids)


def _places(
    held: LockedDeployment,
    results: Sequence[Result],
    tasks: Mapping[str, ScheduledTask],
    runs: Mapping[int, TaskRun],
) -> dict[int, Place]:
    """Return the place of each run among those of its task, unless the task has forgotten it."""
    beside = {
        result.task_name
        for result in results
        if (task := tasks.get(result.task_name)) and (run := runs.get(result.run))
        if active_runs.may_have_others(run, task, result.declaration)
    }
    going_on = active_runs.others(held, beside, [result.run for result in results])
    places = {}
    for result in results:
        task = tasks.get(result.task_name)
        if task is None:
            continue
        is_current = task.running_run == result.run
        run = runs.get(result.run) if task.name in beside else None
        if is_current or run is not None:
            is_overtaken = run is not None and active_runs.is_overtaken(run, task)
            is_newest = is_current and not is_overtaken
            places[result.run] = Place(task, is_newest, going_on.get(task.name))
    return places


def _lost_row(member: Member, task: ScheduledTask | None, result: Result) -> TaskRun | None:
    """Stand in for the row of a run that somebody deleted while its task still waits for it."""
    stored = TaskRun.objects.using(member.using).filter(pk=result.run)
    if task is None or stored.exists():
        return None
    return TaskRun(task_name=result.task_name, attempt=task.attempt, epoch=task.epoch)


def _late(member: Member, result: Result) -> list[events.Event]:
    """Return the events of a result for a run that has ended already.

    This instance may have ended it, if the database's answer to the first write was lost.
    Otherwise the result is discarded.
    """
    at, name = result.finished_at, result.task_name
    mine = TaskRun.objects.using(member.using).filter(
        pk=result.run, instance=member.instance, finished_at=at
    )
    has_failed_hook = result.recorded and bool(result.error)
    if has_failed_hook:
        mine.update(error=result.error, traceback=result.traceback)
    run = mine.first()
    if run is None:
        return [
            events.TaskRunResultDiscarded(
                at=at, task_name=name, run=result.run, success=result.succeeded
            )
        ]
    told: list[events.Event] = [_ended(run, result, history_only=False)]
    if has_failed_hook:
        told += [events.TaskCommitHookFailed(at=at, task_name=name, error=result.error, run=run.pk)]
    return told


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run.

    Args:
        run: id of its row.
        finished_at: when the callback returned or raised.
        error: one line, empty on success.
        errors: every name its error goes by, for a retry policy.
        outcome: ``timed_out`` or ``cancelled`` where it was asked to end.
        value: its return value, JSON-native.
        log: the end of its log.
        output: the end of its process's output.
        recorded: it is written already, together with the run's own work; an error beside
            success is that of a function which the run gave to ``on_commit``.
        is_final: it is not retried, even if the policy allows it.
        declaration: of the task, as the caller of the run decoded it.
    """

    run: int
    task_name: str
    finished_at: datetime
    succeeded: bool
    error: str = ""
    traceback: str = ""
    errors: tuple[str, ...] = ()
    outcome: str = ""
    value: Any = None
    log: str = ""
    output: str = ""
    recorded: bool = False
    is_final: bool = False
    declaration: Declaration | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands among those of its task.

    Args:
        task: ``None`` where it has forgotten this run.
        is_newest: no run of the task was started after it.
        other: the newest of those that go on.
    """

    task: ScheduledTask | None
    is_newest: bool = True
    other: int | None = None


def end(run: TaskRun, result: Result) -> None:
    """Write an end into the row of its run, in memory."""
    outcome = Outcome(result.outcome or ("succeeded" if result.succeeded else "failed"))
    run.outcome = outcome if run.cancel_requested_at is None else Outcome.CANCELLED
    run.finished_at = result.finished_at
    run.running_slot = None
    run.error = result.error
    run.traceback = result.traceback
    run.result = result.value
    run.log = result.log
    run.output = result.output


def settled(run: TaskRun, result: Result, place: Place, now: datetime) -> list[events.Event]:
    """Apply an end to the state of its task, in memory, if the task still has this run."""
    task = place.task
    if task is None:
        return [_ended(run, result)]
    try:
        terms = rows.terms_of(task, result.declaration)
        ended, *given_up = _meaning(run, result, task, place, terms.retry)
        story = Story(rows.state_of(task)).then(ended, *given_up)
        story = story.then(*too_many(story.state, ended, terms.operating))
        rows.take(task, settle(story, terms.schedule, now, terms.overlap_policy))
    except DeclarativeCronError as damage:
        task.running_run = None
        return [_ended(run, result), rows.set_aside(task, rows.reason_of(damage), now)]
    if place.other is not None:
        task.running_run = place.other
    return list(story.events)


def _meaning(
    run: TaskRun, result: Result, task: ScheduledTask, place: Place, retry: Retry
) -> list[events.TaskEvent]:
    """Return what an end means for the task: with a retry, or with why there is none."""
    history_only = task.epoch != run.epoch or run.reason == BACKFILL
    retried = None if result.succeeded else _retried(run, result, task, retry)
    is_last = history_only or not place.is_newest or retried is None
    ended = _ended(
        run,
        result,
        history_only=history_only,
        others=place.other is not None,
        overtaken=not place.is_newest,
        next_retry_at=None if is_last or retried is None else retried.at,
        max_attempts=retry.max_attempts,
    )
    failed = run.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    if not failed or history_only or retried is None:
        return [ended]
    if not place.is_newest:
        _explain(run, given_up="overtaken")
        return [ended]
    if retry.max_attempts is not None:
        _explain(run, max_attempts=retry.max_attempts)
    return [ended, *_given_up(run, result, retried)]


def _retried(run: TaskRun, result: Result, task: ScheduledTask, retry: Retry) -> Retried:
    if result.is_final:
        return Retried(None, "discard", "non_retryable")
    chance = chance_of(str(task.scheduler_identifier), run.pk)
    return retry.after(result.finished_at, run.attempt, result.errors, chance)


def _explain(run: TaskRun, **values: Any) -> None:
    run.detail = {**(run.detail or {}), **values}


def _given_up(run: TaskRun, result: Result, retried: Retried) -> list[events.TaskRetriesExhausted]:
    """Return the event of a failure that is not retried; store the reason with the run."""
    if retried.ends_as is None:
        return []
    _explain(run, given_up=retried.reason, ends_as=retried.ends_as)
    return [
        events.TaskRetriesExhausted(
            at=result.finished_at,
            task_name=run.task_name,
            scheduled_time=run.scheduled_for,
            attempt=run.attempt,
            reason=retried.reason,
            ends_as=retried.ends_as,
            error=result.error,
            run=run.pk,
        )
    ]


def _ended(
    run: TaskRun,
    result: Result,
    *,
    history_only: bool = True,
    others: bool = False,
    **failure: Any,
) -> events.TaskRunCompleted | events.TaskRunFailed | events.TaskRunCancelled:
    common = {
        "at": result.finished_at,
        "task_name": run.task_name,
        "duration": _took(run),
        "history_only": history_only,
        "run": run.pk,
        "others": others,
    }
    if run.outcome == Outcome.CANCELLED:
        return events.TaskRunCancelled(**common)
    if result.succeeded:
        return events.TaskRunCompleted(**common)
    return events.TaskRunFailed(**common, error=result.error, attempt=run.attempt, **failure)


def _took(run: TaskRun) -> float:
    """Return the seconds between the start and the end of a run, as its row has them."""
    if run.started_at is None or run.finished_at is None:
        return 0.0
    took: timedelta = run.finished_at - run.started_at
    return max(took.total_seconds(), 0.0)


class RunTakenOverError(RuntimeError):
    """Raised if a run is not this instance's any more; its work is rolled back."""


class UnbalancedTransactionError(RuntimeError):
    """Raised if a callback left a transaction or savepoint open in that of its run."""


@contextmanager
def transaction_of_run(using: str, failed: list[BaseException]) -> Iterator[None]:
    """Open the transaction in which a callback works."""
    connection = connections[using]
    with database.committing(connection):
        database.isolate(connection)
        with transaction.atomic(using=using, durable=True):
            database.begin(connection)
            yield
            hooks: list[Any] = connection.run_on_commit
            hooks[:] = [
                (savepoints, hook if is_robust else partial(_outlived, hook, failed), is_robust)
                for savepoints, hook, is_robust in hooks
            ]


def _outlived(hook: Callable[[], object], failed: list[BaseException]) -> None:
    try:
        hook()
    except BaseException as error:
        failed.append(error)


def record_with_work(member: Member, result: Result, now: datetime) -> None:
    """Write the success of a run in the transaction of its work.

    Raises:
        RunTakenOverError: another process has the run by now, or its rows are locked.
        UnbalancedTransactionError: the callback left a savepoint open.
        django.db.Error: nothing was written.
    """
    connection = connections[member.using]
    if not connection.in_atomic_block or connection.savepoint_ids:
        raise UnbalancedTransactionError(
            "the callback left a transaction open or closed that of its run; "
            "what it wrote is rolled back"
        )
    database.limit_the_end(connection)
    recorded = record_here(member, result, now)
    if not any(isinstance(each, events.TaskRunCompleted) for each in recorded.events):
        raise RunTakenOverError(
            "the run was taken over or cancelled meanwhile, its rows are locked, or the callback "
            "left another tenant or schema set on the connection; its writes are rolled back"
        )


def _audit_pauses(
    held: LockedDeployment, told: Iterable[events.Event], tasks: Iterable[ScheduledTask]
) -> None:
    """Write an act for each task that its failures paused."""
    acts = {
        event.task_name: Act(author="", at=event.at, note=event.error, reason="failures")
        for event in told
        if isinstance(event, events.TaskPausedByFailures)
    }
    if acts:
        paused = [task for task in tasks if task.name in acts]
        kind = TaskOverride.Kind.PAUSE
        operator_actions.audit(held, paused, lambda task: acts[str(task.name)], kind)
