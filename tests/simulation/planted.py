"""Faults that are planted into the engine, one at a time, to see that somebody objects.

Each is one mistake that an engine could make. None touches what the judge and the invariants read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import Error as DatabaseError

from django_declarative_cron.core import decide, events, missed, state
from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.state import Story, TaskState
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.engine import Engine
from django_declarative_cron.store import (
    active_runs,
    apply_plan,
    claims,
    operator_actions,
    recovery,
    results,
    rows,
)
from django_declarative_cron.store.guard import Role

Plant = Callable[[pytest.MonkeyPatch], None]
Change = Callable[[Any, TaskState, TaskState], TaskState]

FOLLOWED = "state follows history"
ACCOUNTED = "every occurrence is accounted for"
RUN = "runs are run"
PAUSED = "a pause discharges"


@dataclass(frozen=True, slots=True)
class Planted:
    """A mistake, and what is to object: each of these rules did in some story, one has to."""

    plant: Plant
    rules: frozenset[str]


FAULTS: dict[str, Planted] = {}


def fault(*rules: str) -> Callable[[Plant], Plant]:
    """Keep a function as a fault, by its name in words."""

    def keep(plant: Plant) -> Plant:
        name = plant.__name__.strip("_").replace("_", " ")
        FAULTS[name] = Planted(plant, frozenset(rules))
        return plant

    return keep


def around(patch: pytest.MonkeyPatch, owner: object, name: str, made: Callable[..., Any]) -> None:
    """Put a function around another, which it gets as its first argument."""
    real = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **kwargs: made(real, *args, **kwargs))


# --- what an event does to the state ---


def _keep(field: str) -> Change:
    return lambda event, before, after: replace(after, **{field: getattr(before, field)})


def _set(**fields: Any) -> Change:
    return lambda event, before, after: replace(after, **fields)


def _discharge(event: Any, before: TaskState, after: TaskState) -> TaskState:
    return replace(after, discharged_at=max(after.mark, event.at))


# By name: the event, how the state after it is changed, and what is to object.
_CHANGES: dict[str, tuple[type[events.Event], Change, set[str]]] = {
    "drop the high water mark": (
        *(events.TaskRunStarted, _keep("discharged_at")),
        {"S1", ACCOUNTED},
    ),
    "clear what is pending at success": (
        *(events.TaskRunCompleted, _discharge),
        {"L1", ACCOUNTED},
    ),
    "lose the follow up of a failure": (events.TaskRunFailed, _discharge, {ACCOUNTED}),
    "keep a retry through an override": (
        *(events.TaskOverridden, _keep("pending_retry_until")),
        {"S1", FOLLOWED},
    ),
    "keep a stale retry": (
        *(events.TaskRunStarted, _keep("pending_retry_until")),
        {"S1", FOLLOWED},
    ),
    "retry never": (events.TaskRunFailed, _set(pending_retry_until=None), {"L1", FOLLOWED}),
    "run through a pause": (
        *(events.TaskPaused, _set(paused_since=None, paused_until=None)),
        {PAUSED},
    ),
    "restart twice after a crash": (events.TaskRunStarted, _keep("orphaned"), {"S1", FOLLOWED}),
    "never restart after a crash": (
        *(events.TaskRunInterrupted, _keep("orphaned")),
        {"L1", FOLLOWED},
    ),
}


def _after(kind: type[events.Event], change: Change) -> Plant:
    def apply(real: Any, event: events.Event, before: TaskState) -> TaskState:
        made: TaskState = real(event, before)
        return change(event, before, made) if isinstance(event, kind) else made

    return lambda patch: around(patch, state, "apply", apply)


FAULTS.update(
    (name, Planted(_after(kind, change), frozenset(rules)))
    for name, (kind, change, rules) in _CHANGES.items()
)


# --- what is due ---


class _Until:
    """A schedule that knows of nothing due after an instant."""

    def __init__(self, schedule: Any, until: Any) -> None:
        self._schedule, self._until = schedule, until

    def __getattr__(self, name: str) -> Any:
        return getattr(self._schedule, name)

    def latest_at_or_before(self, instant: Any) -> Any:
        return self._schedule.latest_at_or_before(min(instant, self._until))


@fault("S1", "S2")
def _catch_up_every_missed_occurrence(patch: pytest.MonkeyPatch) -> None:
    def due(real: Any, story: Story, case: Any, *more: Any) -> Story:
        following = case.schedule.next_after(story.state.mark)
        until = following if following is not None and following <= case.now else case.now
        return real(story, case._replace(schedule=_Until(case.schedule, until)), *more)

    around(patch, decide, "_due", due)


@fault(ACCOUNTED)
def _forget_the_row_of_the_missed(patch: pytest.MonkeyPatch) -> None:
    around(patch, decide, "passed_over", lambda real, *args: [])


@fault(ACCOUNTED)
def _count_one_missed_too_many(patch: pytest.MonkeyPatch) -> None:
    def skip(real: Any, *args: Any) -> Any:
        told = real(*args)
        return replace(told, count=told.count + 1) if told.count > 1 else told

    around(patch, missed, "_skip", skip)


@fault(ACCOUNTED)
def _count_a_fold_twice(patch: pytest.MonkeyPatch) -> None:
    _decide_by(patch, fold="both")


@fault("S1", ACCOUNTED)
def _run_a_gap(patch: pytest.MonkeyPatch) -> None:
    _decide_by(patch, gap="shift")


def _decide_by(patch: pytest.MonkeyPatch, **rules: Any) -> None:
    """Decide by other rules of civil time than the declaration's."""

    def decided(real: Any, state: Any, schedule: Any, *more: Any) -> Any:
        return real(state, replace(schedule, **rules), *more)

    around(patch, claims, "decide", decided)


@fault("lost minutes are told once")
def _tell_nothing_of_a_gap(patch: pytest.MonkeyPatch) -> None:
    def unserved(real: Any, *args: Any) -> list[TaskRun]:
        return [run for run in real(*args) if run.reason != "dst_skip"]

    around(patch, rows, "unserved_rows", unserved)


# --- first comings ---


@fault("L1")
def _lose_the_boot_obligation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(apply_plan.Known, "boot_of", lambda *_: None)


@fault("S1", "S2", "no occurrence succeeds twice")
def _boot_run_twice_in_a_minute(patch: pytest.MonkeyPatch) -> None:
    def boot_of(known: Any, name: str) -> Any:
        return None if name in known.running else known.owed.get(name)

    patch.setattr(apply_plan.Known, "boot_of", boot_of)


@fault("S1", ACCOUNTED)
def _owe_the_past_at_a_first_coming(patch: pytest.MonkeyPatch) -> None:
    def owed(real: Any, event: events.Event) -> Any:
        earlier = event.at - timedelta(hours=6)
        return replace(real(event), discharged_at=None, registered_at=earlier)

    around(patch, apply_plan, "first_coming", owed)


# --- retries and people ---


@fault("L1", "tasks are looked at in time")
def _ignore_pre_emption(patch: pytest.MonkeyPatch) -> None:
    def decided(
        real: Any, state: TaskState, schedule: Any, retry: Any, now: Any, *more: Any
    ) -> Any:
        pending = state.pending_retry_until
        if pending is None or pending <= now:
            return real(state, schedule, retry, now, *more)
        return real(state, _Until(schedule, state.mark), retry, now, *more)

    def settled(real: Any, story: Story, *more: Any) -> Any:
        decision = real(story, *more)
        pending = decision.state.pending_retry_until
        waits = pending is not None and decision.wake_at is not None
        return replace(decision, wake_at=max(pending, decision.wake_at)) if waits else decision

    around(patch, claims, "decide", decided)
    for module in (decide, results):
        around(patch, module, "settle", settled)


@fault("S1", FOLLOWED)
def _retry_before_its_time(patch: pytest.MonkeyPatch) -> None:
    def halved(real: Any, retry: FixedDelay, ended: Any) -> Any:
        return ended + (real(retry, ended) - ended) / 2

    around(patch, FixedDelay, "latest_retry_at", halved)


@fault(PAUSED)
def _run_paused_occurrences_at_resume(patch: pytest.MonkeyPatch) -> None:
    def ended(real: Any, story: Story, schedule: Any, at: Any, **why: Any) -> Story:
        return Story(
            replace(story.state, paused_since=None, paused_until=None),
            (*story.events, events.TaskResumed(at=at, task_name=story.state.name, author="")),
        )

    for module in (decide, apply_plan, operator_actions):
        around(patch, module, "end_pause", ended)


# --- crashes, stops, leaders, results ---


@fault("S1")
def _restart_an_overridden_run(patch: pytest.MonkeyPatch) -> None:
    def interrupted(real: Any, run: TaskRun, task: Any, *more: Any) -> Any:
        run.epoch = run.epoch if task is None else task.epoch
        return real(run, task, *more)

    around(patch, recovery, "_interrupted", interrupted)


@fault("S1", "S4")
def _take_the_living_for_dead(patch: pytest.MonkeyPatch) -> None:
    def found(real: Any, held: Any, *_: Any) -> list[TaskRun]:
        running = TaskRun.objects.filter(running_slot__isnull=False)
        return list(running.exclude(instance=held.member.instance))

    around(patch, recovery, "_runs_of_the_dead", found)


@fault("S1")
def _start_after_a_stop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "request_stop", lambda engine: engine.woken.set())


@fault("terms only grow")
def _write_under_an_old_term(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims, "assume_role", lambda held: Role.LEADING)


@fault("what is over stays over")
def _let_a_late_result_overwrite(patch: pytest.MonkeyPatch) -> None:
    def locked(real: Any, held: Any, found: Any) -> Any:
        free, tasks, _ = real(held, found)
        return free, tasks, TaskRun.objects.in_bulk([result.run for result in free])

    around(patch, results, "_lock_rows", locked)


@fault("L1", RUN)
def _lose_a_result_that_was_refused(patch: pytest.MonkeyPatch) -> None:
    def record(real: Any, engine: Engine, now: Any) -> None:
        try:
            real(engine, now)
        except DatabaseError:
            engine.executor.recorded(engine.executor.waiting, [])
            raise

    around(patch, Engine, "record", record)


@fault("L1", RUN)
def _forget_to_call_the_last_claim(patch: pytest.MonkeyPatch) -> None:
    def claimed(real: Any, *args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        if len(found.claims) > 1:
            found.claims.pop()
        return found

    around(patch, claims, "claim_due", claimed)


@fault("what ended was called once")
def _call_what_was_not_committed(patch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    def write(real: Any, held: Any, started: Any, *args: Any) -> Any:
        try:
            kept[:] = real(held, started, *args)
        except DatabaseError:
            kept[:] = [active_runs._claim_of(each, held.row.term) for each in started]
            raise
        return list(kept)

    def due(real: Any, *args: Any, **kwargs: Any) -> Any:
        kept.clear()
        try:
            return real(*args, **kwargs)
        except DatabaseError:
            return claims.Claimed(Role.LEADING, claims=list(kept))

    around(patch, active_runs, "write_starts", write)
    around(patch, claims, "claim_due", due)
