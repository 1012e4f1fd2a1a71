"""Never a live process that does nothing: its threads recover, or the process ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from django_declarative_cron.models import SchedulerInstance, TaskRun

from .conftest import Launch, wait_until

RunNow = Callable[..., None]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
]


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
    before = SchedulerInstance.objects.get().heartbeat_at
    wait_until(lambda: SchedulerInstance.objects.get().heartbeat_at > before, "a sign of life")


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
