"""Record results of runs: one transaction for all waiting results.

A result with locked rows is left out and recorded later; it does not keep other results
from being recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.db import DataError, IntegrityError, OperationalError, connections, transaction

from ..core import events
from ..core.decide import Story, settle
from ..core.declarations.declaration import Declaration
from ..core.repeated_failures import too_many
from ..core.retry import Retried, Retry, chance_of
from ..core.start import BACKFILL
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
    """The result of one recording.

    Args:
        events: in causal order.
        held: results that were not written, because their rows are locked.
    """

    events: list[events.Event] = field(default_factory=list)
    held: list[Result] = field(default_factory=list)


def is_open(member: Member, run: int) -> bool:
    """Return whether a run in progress is still this instance's."""
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
        free, recorded.held = _free(held, results)
        runs = {run.pk: run for run in free.runs}
        places = _places(held, free)
        for result in free.results:
            place = places.get(result.run, Place(None))
            run = runs.get(result.run) or _lost_row(member, place.task, result)
            if run is None:
                recorded.events += _late(member, result)
                continue
            end(run, result)
            recorded.events += settled(run, result, place, now)
        bulk_update.update(member.using, free.runs, _RUN_FIELDS)
        bulk_update.update(member.using, free.tasks, rows.STATE_FIELDS)
        note(held, recorded.events, free.tasks)
        recorded.events = outbox.tell(held, recorded.events, free.tasks, runs.values())
    return recorded


def _places(held: LockedDeployment, free: _Free) -> dict[int, Place]:
    """Return the place of each run among those of its task."""
    tasks = {task.name: task for task in free.tasks}
    runs = {run.pk: run for run in free.runs}
    beside = {
        result.task_name
        for result in free.results
        if (task := tasks.get(result.task_name)) and (run := runs.get(result.run))
        if active_runs.may_have_others(run, task, result.declaration)
    }
    going_on = active_runs.others(held, beside, [result.run for result in free.results])
    places = {}
    for result in free.results:
        task = tasks.get(result.task_name)
        is_known = task is not None and task.running_run == result.run
        run = runs.get(result.run) if result.task_name in beside else None
        if is_known or run is not None:
            is_newest = is_known and not (run and task and active_runs.is_overtaken(run, task))
            places[result.run] = Place(task, is_newest, going_on.get(result.task_name))
    return places


@dataclass(frozen=True, slots=True)
class _Free:
    """Results that can be recorded, and the locked rows they concern."""

    results: list[Result]
    tasks: list[ScheduledTask]
    runs: list[TaskRun]


def _free(held: LockedDeployment, results: Sequence[Result]) -> tuple[_Free, list[Result]]:
    """Lock the rows of results, tasks before runs; also return the results left out."""
    tasks, busy_tasks = _lock_tasks(held, results)
    free = [result for result in results if result.task_name not in busy_tasks]
    runs, busy_runs = _lock_runs(held, {result.run for result in free})
    free = [result for result in free if result.run not in busy_runs]
    ended = {result.run for result in results} - busy_runs
    beside = {run.task_name for run in runs if rows.is_apart(run)}
    mine = [t for t in tasks if t.running_run in ended or t.name in beside or rows.runs_beside(t)]
    taken = {result.run for result in free}
    return _Free(free, mine, runs), [result for result in results if result.run not in taken]


def _lock_tasks(
    held: LockedDeployment, results: Sequence[Result]
) -> tuple[list[ScheduledTask], set[str]]:
    names = {result.task_name for result in results}
    tasks = held.tasks
    return database.lock(held.using, tasks.filter(name__in=names), "name", names)


def _lock_runs(held: LockedDeployment, ids: set[int]) -> tuple[list[TaskRun], set[int]]:
    runs = held.runs.filter(pk__in=ids)
    mine = runs.filter(outcome=Outcome.RUNNING, instance=held.member.instance)
    return database.lock(held.using, mine, "pk", ids)


def _lost_row(member: Member, task: ScheduledTask | None, result: Result) -> TaskRun | None:
    """Stand in for the row of a run that somebody deleted while its task still waits for it."""
    stored = TaskRun.objects.using(member.using).filter(pk=result.run)
    if task is None or stored.exists():
        return None
    return TaskRun(task_name=result.task_name, attempt=task.attempt, epoch=task.epoch)


def _late(member: Member, result: Result) -> list[events.Event]:
    """Return the events of a result for a run that has ended already.

    This instance may have ended it, if the database's answer to the first write was lost.
    """
    mine = TaskRun.objects.using(member.using).filter(
        pk=result.run, instance=member.instance, finished_at=result.finished_at
    )
    if result.recorded and result.error:
        mine.update(error=result.error, traceback=result.traceback)
    return late(mine.first(), result)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run.

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
    duration: float = 0.0
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
        task: the task's row, ``None`` where it has forgotten this run.
        is_newest: no run of the task was started after it.
        other: the newest of those that go on.
    """

    task: ScheduledTask | None
    is_newest: bool = True
    other: int | None = None


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The effect of a run's end on its task."""

    history_only: bool = True
    others: bool = False
    overtaken: bool = False
    retried: Retried | None = None
    max_attempts: int | None = None


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
        return [_ended(run, result, _Meaning())]
    try:
        terms = rows.terms_of(task, result.declaration)
        meaning = _meaning(run, result, task, place, terms.retry)
        ended = _ended(run, result, meaning)
        story = Story(rows.state_of(task)).then(ended, *_given_up(run, result, meaning))
        story = story.then(*too_many(story.state, ended, terms.operating))
        rows.take(task, settle(story, terms.schedule, now, terms.overlap_policy))
    except DeclarativeCronError as damage:
        task.running_run = None
        return [_ended(run, result, _Meaning()), rows.set_aside(task, rows.reason_of(damage), now)]
    if place.other is not None:
        task.running_run = place.other
    return list(story.events)


def _meaning(
    run: TaskRun, result: Result, task: ScheduledTask, place: Place, retry: Retry
) -> _Meaning:
    return _Meaning(
        history_only=task.epoch != run.epoch or run.reason == BACKFILL,
        others=place.other is not None,
        overtaken=not place.is_newest,
        retried=None if result.succeeded else _retried(run, result, task, retry),
        max_attempts=retry.max_attempts,
    )


def _retried(run: TaskRun, result: Result, task: ScheduledTask, retry: Retry) -> Retried:
    if result.is_final:
        return Retried(None, "discard", "non_retryable")
    chance = chance_of(str(task.scheduler_identifier), run.pk)
    return retry.after(result.finished_at, run.attempt, result.errors, chance)


def _ended(
    run: TaskRun, result: Result, meaning: _Meaning
) -> events.TaskRunCompleted | events.TaskRunFailed | events.TaskRunCancelled:
    common = {
        "at": result.finished_at,
        "task_name": run.task_name,
        "duration": result.duration,
        "history_only": meaning.history_only,
        "run": run.pk,
        "others": meaning.others,
    }
    if run.outcome == Outcome.CANCELLED:
        return events.TaskRunCancelled(**common)
    if result.succeeded:
        return events.TaskRunCompleted(**common)
    is_last = meaning.history_only or meaning.overtaken or meaning.retried is None
    return events.TaskRunFailed(
        **common,
        error=result.error,
        next_retry_at=None if is_last or meaning.retried is None else meaning.retried.at,
        overtaken=meaning.overtaken,
        attempt=run.attempt,
        max_attempts=meaning.max_attempts,
    )


def _given_up(
    run: TaskRun, result: Result, meaning: _Meaning
) -> tuple[events.TaskRetriesExhausted, ...]:
    """Return the event of a failure that is not retried; store the reason with the run."""
    retried = meaning.retried
    failed = run.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)
    if not failed or meaning.history_only or retried is None:
        return ()
    if meaning.overtaken:
        run.detail = {**(run.detail or {}), "given_up": "overtaken"}
        return ()
    if meaning.max_attempts is not None:
        run.detail = {**(run.detail or {}), "max_attempts": meaning.max_attempts}
    if retried.ends_as is None:
        return ()
    given_up = {"given_up": retried.reason, "ends_as": retried.ends_as}
    run.detail = {**(run.detail or {}), **given_up}
    return (
        events.TaskRetriesExhausted(
            at=result.finished_at,
            task_name=run.task_name,
            scheduled_time=run.scheduled_for,
            attempt=run.attempt,
            reason=retried.reason,
            ends_as=retried.ends_as,
            error=result.error,
            run=run.pk,
        ),
    )


def late(run: TaskRun | None, result: Result) -> list[events.Event]:
    """Return the events of a result for a run that has ended already.

    If this instance ended it, its end is reported, otherwise the result is discarded.
    """
    at, name = result.finished_at, result.task_name
    if run is None:
        return [
            events.TaskRunResultDiscarded(
                at=at, task_name=name, run=result.run, success=result.succeeded
            )
        ]
    ended = _ended(run, result, _Meaning(history_only=False))
    if not (result.recorded and result.error):
        return [ended]
    return [
        ended,
        events.TaskCommitHookFailed(at=at, task_name=name, error=result.error, run=run.pk),
    ]


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


REASON = "failures"


def note(
    held: LockedDeployment, told: Iterable[events.Event], tasks: Iterable[ScheduledTask]
) -> None:
    """Write an act for each task that its failures paused."""
    acts = {
        event.task_name: Act(author="", at=event.at, note=event.error, reason=REASON)
        for event in told
        if isinstance(event, events.TaskPausedByFailures)
    }
    if acts:
        paused = [task for task in tasks if task.name in acts]
        kind = TaskOverride.Kind.PAUSE
        operator_actions.audit(held, paused, lambda task: acts[str(task.name)], kind)
