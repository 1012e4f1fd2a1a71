"""Leadership and liveness of real processes, by real signals, and with a lock that is held.

There is never a live process that does nothing: its threads recover, or it ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from django_declarative_cron.models import SchedulerInstance, TaskRun

from ..process import Process, is_running
from .conftest import Launch, RunNow, halt, leading_pid, wait_until, watchdog_of

LaunchTwo = Callable[..., tuple[Process, Process]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc"),
]

A_LONG_LEASE = {"LEASE": 600, "RENEW": 200}
# A busy machine may keep a watchdog process waiting for longer than the lease.
A_LATE_DEATH = {"DEAD_AFTER": 20}


def wait_for_a_sign_of_life(process: Process) -> None:
    rows = SchedulerInstance.objects.filter(pid=process.child.pid)
    before = rows.get().heartbeat_at
    wait_until(lambda: rows.get().heartbeat_at > before, "a sign of life")


def watchdog_pid(process: Process) -> int:
    found = watchdog_of(process)
    assert found is not None
    return found


def test_p38_a_callback_that_holds_the_lock_beyond_the_lease_runs_once(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    door = notes.with_name("door")
    first = launch(given={"door": door}, **A_LATE_DEATH)
    run_now("hold-the-lock")
    wait_until(notes.read_text, "the beginning of the run")
    second = launch(**A_LATE_DEATH)
    second.wait_for("LeadershipGained")
    # It has looked for runs of the dead, and for what is to be run.
    run_now("note")
    second.wait_for("TaskRunCompleted")
    door.touch()
    first.wait_for("TaskRunCompleted")
    assert notes.read_text().splitlines() == ["held", "ran note manual 1", "let go"]
    assert {run.outcome for run in TaskRun.objects.all()} == {"succeeded"}


def test_a_stopped_leader_lives_and_leads_no_more(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    first = launch(**A_LATE_DEATH)
    run_now("until-stopping")
    wait_until(notes.read_text, "the beginning of the run")
    second = launch(**A_LATE_DEATH)
    halt(first)
    second.wait_for("LeadershipGained")
    run_now("note")
    second.wait_for("TaskRunCompleted")
    wait_for_a_sign_of_life(first)
    first.signal(signal.SIGCONT)
    first.wait_for("LeadershipLost")
    first.stop()
    assert notes.read_text().splitlines() == ["began", "ran note manual 1", "saw the stop"]
    assert {run.outcome for run in TaskRun.objects.all()} == {"succeeded"}


def test_a_killed_leader_is_marked_as_dead_whatever_the_lease_and_its_children(
    launch_two: LaunchTwo, run_now: RunNow, notes: Path
) -> None:
    """A child that its callback forked keeps the pipe to the watchdog process open."""
    first, second = launch_two(**A_LONG_LEASE)
    run_now("leave-a-child")
    first.wait_for("TaskRunCompleted")
    child = int(notes.read_text().split()[1])
    run_now("until-stopping")
    first.wait_for("TaskRunStarted", 2)
    watchdog = watchdog_pid(first)
    try:
        first.signal(signal.SIGKILL)
        second.wait_for("LeadershipGained")
        second.wait_for("reason=orphaned")
    finally:
        os.kill(child, signal.SIGKILL)
    wait_until(lambda: not is_running(watchdog), "the end of the watchdog process")


def test_a_process_that_exits_in_the_middle_of_a_callback_is_marked_as_dead(
    launch_two: LaunchTwo, run_now: RunNow
) -> None:
    first, second = launch_two(**A_LONG_LEASE)
    run_now("exit-at-once")
    assert first.exit_code() == 9
    second.wait_for("LeadershipGained")
    assert second.exit_code() == 9
    outcomes = TaskRun.objects.order_by("id").values_list("outcome", "attempt")
    assert list(outcomes) == [("interrupted", 1), ("running", 2)]


@pytest.mark.alike
def test_a_watchdog_outlives_a_signal_to_the_group_but_not_its_scheduler(
    launch: Launch, run_now: RunNow
) -> None:
    process = launch("--grace", "600")
    run_now("for-ever")
    process.wait_for("TaskRunStarted")
    watchdog = watchdog_pid(process)
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(watchdog, number)
    process.signal(signal.SIGTERM)
    process.wait_for("Stopping")
    assert is_running(watchdog)
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 128 + signal.SIGTERM
    wait_until(lambda: not is_running(watchdog), "the end of the watchdog process")


def test_a_clean_stop_dismisses_the_watchdog(launch: Launch) -> None:
    process = launch()
    watchdog = watchdog_pid(process)
    process.stop()
    assert not is_running(watchdog)
    row = SchedulerInstance.objects.get()
    assert row.stopped_at is not None
    assert row.heartbeat_at >= row.stopped_at


@pytest.mark.alike
def test_a_callback_that_closes_the_pipe_is_not_the_end(launch: Launch, run_now: RunNow) -> None:
    process = launch()
    run_now("close-the-pipe")
    process.wait_for("TaskRunCompleted")
    watchdog_pid(process)
    wait_for_a_sign_of_life(process)
    assert leading_pid() == process.child.pid
    process.signal(signal.SIGKILL)
    following = launch(**A_LONG_LEASE)
    wait_until(lambda: leading_pid() == following.child.pid, "a new leader")


@pytest.mark.alike
def test_a_watchdog_that_is_killed_is_told_of_once_and_missed_by_nobody(
    launch: Launch, run_now: RunNow
) -> None:
    process = launch()
    watchdog = watchdog_pid(process)
    os.kill(watchdog, signal.SIGKILL)
    process.wait_for("The watchdog process failed; the heartbeat goes on without it")
    run_now("note")
    process.wait_for("TaskRunCompleted")
    wait_for_a_sign_of_life(process)
    assert process.output.count("The watchdog process failed") == 1


@pytest.mark.alike
def test_without_a_watchdog_nothing_is_forked(launch: Launch, run_now: RunNow) -> None:
    process = launch(WATCHDOG_PROCESS=False)
    assert watchdog_of(process) is None
    run_now("note")
    process.wait_for("TaskRunCompleted")


# --- its threads recover, or the process ends ---


@pytest.mark.alike
@pytest.mark.parametrize("thread", ["loop", "heartbeat", "watch-for-signals"])
def test_a_process_whose_thread_ends_exits_with_1_and_leaves_its_lead(
    launch: Launch, run_now: RunNow, thread: str
) -> None:
    process = launch(LEASE=600, RENEW=0.2)
    run_now(f"break-the-{thread}")
    if thread == "watch-for-signals":
        process.wait_for("TaskRunCompleted")
        process.signal(signal.SIGTERM)
    assert process.exit_code() == 1, process.output
    assert "A thread that the scheduler needs has ended." in process.output
    launch(LEASE=600, RENEW=200).wait_for("LeadershipGained")


def test_errors_that_would_end_a_thread_are_outlived(launch: Launch, run_now: RunNow) -> None:
    process = launch(RENEW=0.2)
    run_now("break-a-few-passes")
    process.wait_for("A pass of the scheduler failed; it is tried again", 3)
    process.wait_for("The heartbeat failed; it is tried again")
    run_now("note")
    process.wait_for("TaskRunCompleted", 2)
    wait_for_a_sign_of_life(process)


@pytest.mark.alike
def test_callbacks_that_ask_the_process_to_end_only_fail(launch: Launch, run_now: RunNow) -> None:
    process = launch()
    run_now("raise-system-exit", "raise-keyboard-interrupt")
    process.wait_for("TaskRunFailed", 2)
    run_now("note")
    process.wait_for("TaskRunCompleted")
    runs = dict(TaskRun.objects.values_list("task_name", "error"))
    assert runs == {
        "raise-system-exit": "SystemExit: 3",
        "raise-keyboard-interrupt": "KeyboardInterrupt",
        "note": "",
    }
