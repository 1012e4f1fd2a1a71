"""``cron run``: in the foreground, by the real clock."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from django_declarative_cron.formatting import format_elapsed
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.runtime import foreground
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.signals import task_run_completed
from django_declarative_cron.store import guard, results

from ..timeouts import TIMEOUT
from . import callbacks, child_settings
from .conftest import DELAY, HERE, Cron, run_child

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.real_clock]

YEARLY = "0 0 1 1 *"
Register = Callable[..., None]


@pytest.fixture
def register(settings: Any) -> Register:
    """Declare tasks from names to callbacks, and let a scheduler register them and go."""

    def write(**jobs: str) -> None:
        settings.SCHEDULED_TASKS = [
            (name, YEARLY, f"{HERE}.{job}", DELAY) for name, job in jobs.items()
        ]
        scheduler = Scheduler(background=False)
        scheduler.initialize(settings.SCHEDULED_TASKS)
        scheduler.stop()

    return write


def _run() -> TaskRun:
    return TaskRun.objects.select_related("instance").get()


def test_a_run_that_succeeds(cron: Cron, register: Register) -> None:
    register(t="remember")
    answer = cron("run", "t", "--user", "Ada", "--note", "to see")
    assert (answer.code, answer.err) == (0, "")
    assert answer.lines[0] == f"Running 't': {HERE}.remember"
    run, task = _run(), ScheduledTask.objects.get()
    assert (run.outcome, run.reason, run.attempt) == ("succeeded", "manual", 1)
    assert task.last_attempt_at == run.started_at
    assert task.last_success_at == run.finished_at
    act = TaskOverride.objects.get()
    assert (act.kind, act.author, act.note) == ("run", "Ada", "to see")
    [seen] = callbacks.seen
    assert (seen.task_name, seen.reason, seen.attempt) == ("t", "manual", 1)
    assert seen.scheduled_for == seen.started_at == run.started_at
    assert not seen.stopping.is_set()
    instance = run.instance
    assert instance is not None
    assert (instance.pid, instance.initialized_at) == (os.getpid(), None)
    assert instance.stopped_at is not None
    assert SchedulerState.objects.get().leader_id is None


def test_its_duration_is_the_same_in_the_answer_the_event_and_the_history(
    cron: Cron, register: Register
) -> None:
    told: list[float] = []

    def hear(duration: float, **_: Any) -> None:
        told.append(duration)

    register(t="nothing")
    task_run_completed.connect(hear)
    try:
        answer = cron("run", "t")
    finally:
        task_run_completed.disconnect(hear)
    run = _run()
    assert run.finished_at is not None and run.started_at is not None
    took = run.finished_at - run.started_at
    assert told == [took.total_seconds()]
    assert answer.lines[1] == f"Succeeded after {format_elapsed(took)}."
    assert f"  {format_elapsed(took)}  manual" in cron("history", "t").lines[1]


def test_a_coroutine_and_a_management_command(
    cron: Cron, register: Register, settings: Any
) -> None:
    register(t="remember_async")
    assert cron("run", "t").code == 0
    assert len(callbacks.seen) == 1
    command = ["check", "--tag", "models"]
    settings.SCHEDULED_TASKS = [
        {"name": "c", "cron": YEARLY, "timezone": "UTC", "command": command}
    ]
    Scheduler(background=False).initialize(settings.SCHEDULED_TASKS)
    assert cron("run", "c").code == 0


def test_a_failure_of_a_paused_task_promises_no_retry_before_its_end(
    cron: Cron, register: Register
) -> None:
    register(t="fail")
    cron("pause", "t")
    answer = cron("run", "t")
    assert "The scheduler retries it once its pause ends, not before " in answer.err
    cron("resume", "t")
    assert "The scheduler retries it at " in cron("run", "t").err


def test_ctrl_c_in_the_callback_is_a_failure(cron: Cron, register: Register) -> None:
    register(t="give_in")
    answer = cron("run", "t")
    assert answer.code == 1
    assert "KeyboardInterrupt" in answer.err
    assert (_run().outcome, _run().error) == ("failed", "KeyboardInterrupt")


def test_a_task_that_runs_elsewhere(cron: Cron, register: Register) -> None:
    register(t="nothing")
    state = SchedulerState.objects.get()
    now = timezone.now()
    other = SchedulerInstance.objects.create(
        scheduler=state, host="elsewhere", pid=7, started_at=now, heartbeat_at=now
    )
    TaskRun.objects.create(
        scheduler=state,
        task_name="t",
        scheduled_for=now,
        started_at=now - timedelta(minutes=3, seconds=30),
        outcome="running",
        reason="due",
        instance=other,
        running_slot="t",
    )
    answer = cron("run", "t")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("'t' runs already since ")
    SchedulerInstance.objects.filter(pk=other.pk).update(heartbeat_at=guard.LONG_AGO)
    gone = "in elsewhere:7, which is gone: the next scheduler ends that run."
    assert gone in cron("run", "t").err
    assert TaskRun.objects.count() == 1


def test_an_unknown_task(cron: Cron, register: Register) -> None:
    register(digest="nothing")
    answer = cron("run", "digests")
    assert (answer.code, answer.err) == (
        2,
        "No task is called 'digests'. Did you mean 'digest'?",
    )


def test_a_damaged_row(cron: Cron, register: Register) -> None:
    register(t="nothing")
    ScheduledTask.objects.update(timezone="Nowhere/Land")
    answer = cron("run", "t")
    assert answer.code == 1
    assert "The row of 't' is damaged" in answer.err


def test_refused_settings(cron: Cron, declare: Callable[..., list[Any]]) -> None:
    declare(t="*/5 * * * *")
    answer = cron("run", "t")
    assert answer.code == 2
    assert answer.err.startswith("The settings are refused.\nSCHEDULED_TASKS[0] 't'")


def test_a_run_longer_than_the_lease_is_not_taken_for_dead(
    cron: Cron, register: Register, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {"LEASE": 1, "RENEW": 0.1}
    register(t="outlive_the_lease")
    assert cron("run", "t").code == 0
    assert len(callbacks.seen) == 1


def test_a_run_that_was_given_up_says_so(cron: Cron, register: Register) -> None:
    register(t="lose_the_instance")
    answer = cron("run", "t")
    assert answer.code == 1
    assert "the run had been given up meanwhile: its end is not recorded" in answer.err


def _refuse(times: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the database refuse results so many times."""
    record, calls = results.record, []

    def refuse(*args: Any) -> Any:
        calls.append(1)
        if len(calls) <= times:
            raise OperationalError("the connection is gone")
        return record(*args)

    monkeypatch.setattr(results, "record", refuse)
    monkeypatch.setattr(foreground, "_BETWEEN_ATTEMPTS", 0)
    return calls


def test_a_result_that_is_refused_is_written_again(
    cron: Cron, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(t="nothing")
    calls = _refuse(3, monkeypatch)
    assert cron("run", "t").code == 0
    assert (len(calls), _run().outcome) == (4, "succeeded")


def test_a_result_that_cannot_be_written_leaves_an_interrupted_run(
    cron: Cron, register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(t="nothing")
    _refuse(1000, monkeypatch)
    answer = cron("run", "t")
    said = "The database refused. `--traceback` shows its answer."
    assert (answer.code, answer.err) == (1, said)
    instance = _run().instance
    assert instance is not None
    assert instance.heartbeat_at == guard.LONG_AGO


@pytest.mark.slow
def test_ctrl_c_in_a_child(child_environment: dict[str, str]) -> None:
    Scheduler(background=False).initialize(child_settings.SCHEDULED_TASKS)
    TaskRun.objects.all().delete()
    child = subprocess.Popen(
        [sys.executable, "-m", "django", "cron", "run", "endless"],
        env={**child_environment, "DJANGO_SETTINGS_MODULE": "tests.management.child_settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline().startswith("Running 'endless'")
    assert child.stdout.readline() == "waiting\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=TIMEOUT)
    run = _run()
    assert (child.returncode, run.outcome, run.error) == (1, "failed", "KeyboardInterrupt")
    assert "'endless' failed after" in err
    assert run.instance is not None and run.instance.stopped_at is not None


@pytest.mark.slow
def test_exit_codes_of_a_child(child_environment: dict[str, str]) -> None:
    Scheduler(background=False).initialize(child_settings.SCHEDULED_TASKS)
    codes = {
        words: run_child("cron", *words, env=child_environment).returncode
        for words in [("run", "fine"), ("run", "faulty")]
    }
    assert list(codes.values()) == [0, 1]
