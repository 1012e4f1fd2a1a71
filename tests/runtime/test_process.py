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
from .conftest import TIMEOUT, RunNow
from .process_settings import SCHEDULED_TASKS

__all__ = ["stranger"]

SETTINGS = "tests.runtime.process_settings"

pytestmark = pytest.mark.slow


@pytest.mark.requirement("003 Resource Limits/2")
def test_sigterm_lets_a_run_see_the_stop_and_end(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    """P64: the runs have seen its environment as well."""
    process = start(DDC_TEST_VARIABLE="seen").up()
    run_now("until-stopping", "async", "environment")
    process.wait_for("TaskRunCompleted", 2)
    process.wait_for("TaskRunStarted", 3)
    process.stop()
    noted = sorted(notes.read_text().splitlines())
    assert noted == ["async async", "began", "environment seen", "saw the stop"]
    assert [run.outcome for run in TaskRun.objects.all()] == ["succeeded"] * 3
    assert SchedulerState.objects.get().leader is None
    assert "SchedulerStopped" in process.output


def test_a_terminal_that_closes_stops_it_as_sigterm_does(
    child_environment: dict[str, str], run_now: RunNow, notes: Path
) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": SETTINGS, "DDC_TEST_NOTES": str(notes)}
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


@pytest.mark.requirement(
    "001 Idempotency Guarantees/6", "000 Real-time bounds/2", "001 Real-time bounds/4"
)
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 0), (signal.SIGKILL, -signal.SIGKILL)],
    ids=["by its grace", "by a kill"],
)
def test_a_run_that_goes_beyond_its_process_is_restarted_once_by_the_next_scheduler(
    start: Callable[..., Process], run_now: RunNow, number: signal.Signals, code: int
) -> None:
    process = start("--grace", "0.5").up()
    run_now("for-ever")
    process.wait_for("TaskRunStarted")
    process.signal(number)
    assert process.exit_code() == code, process.output
    assert ("did not end within the grace" in process.output) is (code == 0)
    following = start()
    following.wait_for("TaskRunInterrupted")
    following.wait_for("reason=orphaned")
    assert list(TaskRun.objects.order_by("id").values_list("outcome", "reason", "attempt")) == [
        ("interrupted", "manual", 1),
        ("running", "orphaned", 2),
    ]


def test_a_callback_that_closes_descriptors_ends_the_process_and_a_standby_takes_over(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    process = start().up()
    standby = start().up()
    run_now("closes-everything")
    process.wait_for("A callback closed file descriptors of the scheduler")
    assert process.exit_code() == 1
    assert process.lines[-1].startswith("A callback closed file descriptors")
    standby.wait_for("A callback closed file descriptors")
    assert standby.exit_code() == 1
    assert notes.read_text().splitlines() == ["closes", "closes"]


def test_once_does_one_pass_and_waits_for_what_it_started(
    start: Callable[..., Process], notes: Path
) -> None:
    process = start("--once", DDC_TEST_EVERY_MINUTE="1")
    assert process.exit_code() == 0, process.output
    assert notes.read_text() == "ran minutely boot 1\n"
    run = TaskRun.objects.get()
    assert (run.task_name, run.outcome) == ("minutely", "succeeded")
    assert ScheduledTask.objects.count() == len(SCHEDULED_TASKS) + 1


def test_two_processes_run_each_request_once(
    start: Callable[..., Process], run_now: RunNow, notes: Path
) -> None:
    first, second = start(), start()
    for process in (first, second):
        process.up()
    for count in range(1, 4):
        run_now("note")
        wait_until(lambda count=count: len(notes.read_text().splitlines()) >= count)
    for process in (first, second):
        process.stop()
    assert len(notes.read_text().splitlines()) == 3
    assert [run.outcome for run in TaskRun.objects.all()] == ["succeeded"] * 3


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
    waiting.stop()
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
        "DJANGO_SETTINGS_MODULE": SETTINGS,
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
