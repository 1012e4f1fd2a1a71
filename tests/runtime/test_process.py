"""``runscheduler`` as a process: signals, exit codes, and what a kill leaves behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)

from ..process import Process
from ..store.conftest import Stranger, stranger
from ..timeouts import wait_until
from .conftest import TIMEOUT
from .process_settings import SCHEDULED_TASKS

__all__ = ["stranger"]

RunNow = Callable[..., None]

pytestmark = pytest.mark.slow


@pytest.mark.requirement("003 Resource Limits/2")
def test_sigterm_lets_a_run_see_the_stop_and_end(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    process = start()
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("until-stopping", "async")
    process.wait_for("TaskRunCompleted")
    process.wait_for("TaskRunStarted", 2)
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 0, process.output
    assert {"began", "saw the stop", "async async"} <= set(notes.read_text().splitlines())
    outcomes = set(TaskRun.objects.values_list("outcome", flat=True))
    assert outcomes == {"succeeded"}
    assert SchedulerState.objects.get().leader is None
    assert "SchedulerStopped" in process.output


def test_a_terminal_that_closes_stops_it_as_sigterm_does(
    child_environment: dict[str, str], run_now: RunNow, notes: Path
) -> None:
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings",
        "DDC_TEST_NOTES": str(notes),
    }
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "runscheduler", "-v", "2"],
        env={**child_environment, **settings},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        shown = b""
        while b"or Ctrl-C stops it" not in shown:
            shown += os.read(master, 4096)
        run_now("until-stopping")
        while b"TaskRunStarted" not in shown:
            shown += os.read(master, 4096)
        os.close(master)
        assert process.wait(TIMEOUT) == 0
    finally:
        process.kill()
        process.wait()
    assert "saw the stop" in notes.read_text().splitlines()
    assert [run.outcome for run in TaskRun.objects.all()] == ["succeeded"]
    assert SchedulerState.objects.get().leader is None


def test_a_run_beyond_the_grace_is_found_interrupted_by_the_next_scheduler(
    start: Callable[..., Process], run_now: RunNow
) -> None:
    process = start("--grace", "0.5")
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("for-ever")
    process.wait_for("TaskRunStarted")
    process.signal(signal.SIGINT)
    assert process.exit_code() == 0, process.output
    assert "did not end within the grace" in process.output
    following = start()
    following.wait_for("TaskRunInterrupted")
    following.wait_for("reason=orphaned")
    first, second = TaskRun.objects.order_by("id")
    assert (first.outcome, second.reason) == ("interrupted", "orphaned")
    assert (first.attempt, second.attempt) == (1, 2)


@pytest.mark.alike
def test_a_second_signal_ends_at_once(start: Callable[..., Process], run_now: RunNow) -> None:
    process = start("--grace", "600")
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("for-ever")
    process.wait_for("TaskRunStarted")
    process.signal(signal.SIGTERM)
    process.wait_for("Stopping")
    process.signal(signal.SIGINT)
    assert process.exit_code() == 128 + signal.SIGINT


def test_a_callback_that_closes_descriptors_ends_the_process_and_a_standby_takes_over(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    process = start()
    process.wait_for("SIGTERM or Ctrl-C stops it")
    standby = start()
    standby.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("closes-everything")
    process.wait_for("A callback closed file descriptors of the scheduler")
    assert process.exit_code() == 1
    assert process.lines[-1].startswith("A callback closed file descriptors")
    standby.wait_for("A callback closed file descriptors")
    assert standby.exit_code() == 1
    assert notes.read_text().splitlines() == ["closes", "closes"]


@pytest.mark.requirement(
    "001 Idempotency Guarantees/6", "000 Real-time bounds/2", "001 Real-time bounds/4"
)
def test_kill_in_the_middle_of_a_run_restarts_it_once_within_the_lease(
    start: Callable[..., Process], run_now: RunNow
) -> None:
    process = start()
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("until-stopping")
    process.wait_for("TaskRunStarted")
    process.signal(signal.SIGKILL)
    assert process.exit_code() == -signal.SIGKILL
    following = start()
    following.wait_for("reason=orphaned")
    following.signal(signal.SIGTERM)
    assert following.exit_code() == 0, following.output
    assert list(TaskRun.objects.order_by("id").values_list("outcome", "attempt")) == [
        ("interrupted", 1),
        ("succeeded", 2),
    ]


def test_once_does_one_pass_and_waits_for_what_it_started(
    start: Callable[..., Process], notes: Path
) -> None:
    process = start("--once", DDC_TEST_EVERY_MINUTE="1")
    assert process.exit_code() == 0, process.output
    assert notes.read_text() == "ran minutely boot 1\n"
    run = TaskRun.objects.get()
    assert (run.task_name, run.outcome) == ("minutely", "succeeded")
    assert ScheduledTask.objects.count() == len(SCHEDULED_TASKS) + 1


@pytest.mark.alike
def test_p64_tasks_see_the_environment_of_the_scheduler(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    process = start(DDC_TEST_VARIABLE="seen")
    process.wait_for("SIGTERM or Ctrl-C stops it")
    run_now("environment")
    process.wait_for("TaskRunCompleted")
    assert notes.read_text() == "environment seen\n"


@pytest.mark.alike
def test_a_mistake_in_the_declarations_starts_nothing(start: Callable[..., Process]) -> None:
    process = start(DDC_TEST_MISTAKE="1")
    assert process.exit_code() == 2
    assert "declarative_cron.E" in process.output
    assert "Traceback" not in process.output
    assert not SchedulerState.objects.exists()


@pytest.mark.alike
@pytest.mark.parametrize(
    "arguments", [("--workers", "0"), ("--grace", "-1"), ("--workers", "many"), ("--nonsense",)]
)
def test_wrong_use_is_exit_code_2(
    start: Callable[..., Process], arguments: tuple[str, ...]
) -> None:
    process = start(*arguments)
    assert process.exit_code() == 2
    assert "Traceback" not in process.output


def test_before_migrate_it_says_so_in_one_sentence(project_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "django", "runscheduler", "-v", "2"],
        env={**project_environment, "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    assert done.returncode == 2
    assert "python manage.py migrate" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_two_processes_run_each_request_once(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    first, second = start(), start()
    for process in (first, second):
        process.wait_for("SIGTERM or Ctrl-C stops it")
    for count in range(1, 4):
        run_now("note")
        wait_until(lambda count=count: len(notes.read_text().splitlines()) >= count)
    for process in (first, second):
        process.signal(signal.SIGTERM)
        assert process.exit_code() == 0, process.output
    assert len(notes.read_text().splitlines()) == 3
    outcomes: Any = TaskRun.objects.values_list("outcome", flat=True)
    assert list(outcomes) == ["succeeded"] * 3


@pytest.mark.skipif(connection.vendor != "postgresql", reason="it looks who waits for a lock")
@pytest.mark.parametrize(("grace", "limit"), [("1", "600"), ("600", "5")])
def test_a_start_that_waits_for_a_row_ends_within_the_grace(
    start: Callable[..., Process], stranger: Stranger, grace: str, limit: str
) -> None:
    """In the one case the grace ends first, in the other one the wait for the lock."""
    SchedulerState.objects.create(deployment="default")
    stranger.hold("schedulerstate", deployment="default")
    waiting = start("--grace", grace, DDC_TEST_LONGEST_WAIT=limit)
    stranger.wait_for_a_waiter()
    waiting.signal(signal.SIGTERM)
    assert waiting.exit_code() == 0, waiting.output
    stranger.let_go()
    assert "Traceback" not in waiting.output
    assert not SchedulerInstance.objects.exists()


# One process for all commands: each takes seconds to begin.
COMMANDS = """
from django.core.management import execute_from_command_line
for words in ("check", "runscheduler --once", "cron list"):
    execute_from_command_line(["manage.py", *words.split()])
    print(f"{words}: done")
"""


def test_no_assertions_no_utf8_terminal_and_no_temporary_directory(
    child_environment: dict[str, str], notes: Path
) -> None:
    surroundings = {
        "DJANGO_SETTINGS_MODULE": "tests.runtime.process_settings",
        "DDC_TEST_NOTES": str(notes),
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "TMPDIR": "/nowhere",
    }
    done = subprocess.run(
        [sys.executable, "-OO", "-c", COMMANDS],
        env={**child_environment, **surroundings},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    output = (done.stdout + done.stderr).decode("ascii")
    assert done.returncode == 0, output
    assert "cron list: done" in output
    assert "Traceback" not in output
