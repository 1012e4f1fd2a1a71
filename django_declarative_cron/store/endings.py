"""What the end of one run means: for its row, for its task, and in events."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..core import events
from ..core.decide import Story, settle
from ..core.declaration import Declaration
from ..core.failing import too_many
from ..core.retry import Retried, Retry, chance_of
from ..core.starting import BACKFILL
from ..models import Outcome, ScheduledTask, TaskRun
from . import rows


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
        recorded: it is written already, together with the run's own work; an error beside
            success is that of a function which the run gave to ``on_commit``.
        is_final: it is not to be tried again, whatever the policy says.
        declaration: what was called, as who called it has understood it.
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
    """What an end means for the task."""

    history_only: bool = True
    others: bool = False
    overtaken: bool = False
    retried: Retried | None = None
    max_attempts: int | None = None


def end(run: TaskRun, result: Result) -> None:
    """Write an end into the row of its run, in memory.

    Args:
        run: the row; a run that was asked to end is cancelled, however it ended.
        result: how it ended.
    """
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
    """Fold an end into the state of its task, in memory, unless the task forgot this run.

    Args:
        run: the row, ended.
        result: how it ended.
        place: where the run stands among those of its task.
        now: the instant of the tick.
    """
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
    except rows.DAMAGE as damage:
        task.running_run = None
        return [_ended(run, result, _Meaning()), rows.set_aside(task, str(damage), now)]
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
    """Tell of a failure that is not tried again, and keep with the run why."""
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
    """Tell of a result that finds its run ended: by somebody else, or by itself before.

    Args:
        run: its row, where the same end stands in it already.
        result: how it ended.
    """
    at, name = result.finished_at, result.task_name
    if run is None:
        return [events.TaskRunLate(at=at, task_name=name, run=result.run, success=result.succeeded)]
    ended = _ended(run, result, _Meaning(history_only=False))
    if not (result.recorded and result.error):
        return [ended]
    return [
        ended,
        events.TaskCommitHookFailed(at=at, task_name=name, error=result.error, run=run.pk),
    ]
