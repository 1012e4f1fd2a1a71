"""Events outlive the process that was to deliver them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from django_declarative_cron.models import OutboxEvent, TaskRun

from ..process import Process
from ..receiver import TIMEOUT, Receiver

pytestmark = pytest.mark.slow

READY = "SIGTERM or Ctrl-C stops it"
LIFE = ["cron.triggered", "job.started", "job.completed"]


@pytest.fixture
def scheduler_process(start: Callable[..., Process], receiver: Receiver) -> Callable[..., Process]:
    """Start a scheduler that posts to the receiver."""

    def begin(timeout: float = 10) -> Process:
        process = start(
            DJANGO_SETTINGS_MODULE="tests.processes.event_settings",
            DDC_TEST_SINK=receiver.url,
            DDC_TEST_SINK_TIMEOUT=str(timeout),
        )
        process.wait_for(READY)
        return process

    return begin


def test_what_was_committed_is_delivered_although_its_process_was_killed(
    scheduler_process: Callable[..., Process], receiver: Receiver, run_now: Any
) -> None:
    hanging = threading.Event()
    receiver.behave = lambda got: 200 if hanging.wait(TIMEOUT) else 500
    # Its events are its own for a little longer than twice the timeout.
    process = scheduler_process(timeout=1)
    run_now("note")
    process.wait_for("TaskRunCompleted")
    receiver.wait(lambda r: len(r.got) == 1)
    process.signal(signal.SIGKILL)
    process.exit_code()
    assert [row.type for row in OutboxEvent.objects.all()] == LIFE
    receiver.behave = lambda got: 204
    following = scheduler_process()
    receiver.wait(lambda r: len(r.taken) == 3)
    following.signal(signal.SIGTERM)
    assert following.exit_code() == 0, following.output
    hanging.set()
    assert receiver.kinds()[:3] == LIFE
    # What was in the dead process's hands has the name that it had.
    assert receiver.got[0].headers["webhook-id"] == receiver.taken[0].headers["webhook-id"]
    assert not OutboxEvent.objects.exists()
    assert TaskRun.objects.get().outcome == "succeeded"


def test_a_stop_by_a_signal_delivers_what_the_last_runs_have_to_tell(
    scheduler_process: Callable[..., Process], receiver: Receiver, run_now: Any
) -> None:
    process = scheduler_process()
    run_now("until-stopping")
    process.wait_for("TaskRunStarted")
    process.signal(signal.SIGTERM)
    assert process.exit_code() == 0, process.output
    assert receiver.kinds() == LIFE, process.output
    assert not OutboxEvent.objects.exists()
