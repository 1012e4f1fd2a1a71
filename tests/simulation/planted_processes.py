"""Mistakes in crashes, stops, leads and results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import Error as DatabaseError

from django_declarative_cron.core import events
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.engine import Engine
from django_declarative_cron.store import active_runs, claims, recovery, results
from django_declarative_cron.store.guard import Role

from .planting import after, around, fault

# --- interrupted runs ------------------------------------------------------------------


@fault("S1", "state follows history")
def _restart_twice_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunStarted,
        lambda event, before, after: replace(after, orphaned=before.orphaned),
    )


@fault("L1", "state follows history")
def _never_restart_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    after(
        patch,
        events.TaskRunInterrupted,
        lambda _, before, after: replace(after, orphaned=before.orphaned),
    )


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


# --- stops, leaders, results -------------------------------------------------------------


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


@fault("L1", "runs are run")
def _lose_a_result_that_was_refused(patch: pytest.MonkeyPatch) -> None:
    def record(real: Any, engine: Engine, now: Any) -> None:
        try:
            real(engine, now)
        except DatabaseError:
            engine.executor.recorded(engine.executor.waiting, [])
            raise

    around(patch, Engine, "record", record)


@fault("L1", "runs are run")
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
