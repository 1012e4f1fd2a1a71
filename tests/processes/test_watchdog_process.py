"""Living and leading told apart: real processes, real signals, and a lock that is held."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from django_declarative_cron.models import SchedulerInstance, TaskRun

from ..process import Process, is_running
from .conftest import Launch, halt, leading_pid, wait_until, watchdog_of

RunNow = Callable[..., None]
LaunchTwo = Callable[..., tuple[Process, Process]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc"),
]

A_LONG_LEASE = {"LEASE": 600, "RENEW": 200}
# A busy machine may keep a watchdog process waiting for longer than the lease.
A_LATE_DEATH = {"DEAD_AFTER": 20}


def test_p38_a_callback_that_holds_the_lock_beyond_the_lease_runs_once(
    launch: Launch, run_now: RunNow, notes: Path
) -> None:
    door = notes.with_name("door")
    first = launch(door=door, **A_LATE_DEATH)
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
    stopped = SchedulerInstance.objects.get(pid=first.child.pid)
    before = stopped.heartbeat_at
    wait_until(
        lambda: SchedulerInstance.objects.get(pk=stopped.pk).heartbeat_at > before,
        "a sign of life of the stopped process",
    )
    first.signal(signal.SIGCONT)
    first.wait_for("LeadershipLost")
    first.signal(signal.SIGTERM)
    assert first.exit_code() == 0, first.output
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
    watchdog = watchdog_of(first)
    try:
        first.signal(signal.SIGKILL)
        second.wait_for("LeadershipGained")
        second.wait_for("reason=orphaned")
    finally:
        os.kill(child, signal.SIGKILL)
    assert watchdog is not None
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
    process = launch(arguments=("--grace", "600"))
    run_now("for-ever")
    process.wait_for("TaskRunStarted")
    watchdog = watchdog_of(process)
    assert watchdog is not None
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
    watchdog = watchdog_of(process)
    assert watchdog is not None
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 0
    assert not is_running(watchdog)
    row = SchedulerInstance.objects.get()
    assert row.stopped_at is not None
    assert row.heartbeat_at >= row.stopped_at


@pytest.mark.alike
def test_a_callback_that_closes_the_pipe_is_not_the_end(launch: Launch, run_now: RunNow) -> None:
    process = launch()
    run_now("close-the-pipe")
    process.wait_for("TaskRunCompleted")
    watchdog = watchdog_of(process)
    assert watchdog is not None
    before = SchedulerInstance.objects.get().heartbeat_at
    wait_until(
        lambda: SchedulerInstance.objects.get().heartbeat_at > before, "another sign of life"
    )
    assert leading_pid() == process.child.pid
    process.signal(signal.SIGKILL)
    following = launch(**A_LONG_LEASE)
    wait_until(lambda: leading_pid() == following.child.pid, "a new leader")


@pytest.mark.alike
def test_a_watchdog_that_is_killed_is_told_of_once_and_missed_by_nobody(
    launch: Launch, run_now: RunNow
) -> None:
    process = launch()
    watchdog = watchdog_of(process)
    assert watchdog is not None
    os.kill(watchdog, signal.SIGKILL)
    process.wait_for("The watchdog process failed; the heartbeat goes on without it")
    run_now("note")
    process.wait_for("TaskRunCompleted")
    before = SchedulerInstance.objects.get().heartbeat_at
    wait_until(
        lambda: SchedulerInstance.objects.get().heartbeat_at > before, "another sign of life"
    )
    assert process.output.count("The watchdog process failed") == 1


@pytest.mark.alike
def test_without_a_watchdog_nothing_is_forked(launch: Launch, run_now: RunNow) -> None:
    process = launch(WATCHDOG_PROCESS=False)
    assert watchdog_of(process) is None
    run_now("note")
    process.wait_for("TaskRunCompleted")
