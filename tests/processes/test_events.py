"""Events outlive the process that was to deliver them."""

from __future__ import annotations

import signal
import threading

import pytest

from django_declarative_cron.models import OutboxEvent, TaskRun

from ..process import Process
from ..receiver import TIMEOUT, Receiver
from .conftest import Launch, RunNow

pytestmark = pytest.mark.slow

LIFE = ["cron.triggered", "job.started", "job.completed"]


@pytest.fixture
def begin(launch: Launch, receiver: Receiver) -> Launch:
    """Start a scheduler that posts to the receiver."""

    def begin(timeout: float = 10) -> Process:
        return launch(given={"sink": receiver.url, "sink_timeout": timeout})

    return begin


def test_what_was_committed_is_delivered_although_its_process_was_killed(
    begin: Launch, receiver: Receiver, run_now: RunNow
) -> None:
    hanging = threading.Event()
    receiver.behave = lambda got: 200 if hanging.wait(TIMEOUT) else 500
    # Its events are its own for a little longer than twice the timeout.
    process = begin(timeout=1)
    run_now("note")
    process.wait_for("TaskRunCompleted")
    receiver.wait(lambda r: len(r.got) == 1)
    process.signal(signal.SIGKILL)
    process.exit_code()
    assert [row.type for row in OutboxEvent.objects.all()] == LIFE
    receiver.behave = lambda got: 204
    following = begin()
    receiver.wait(lambda r: len(r.taken) == 3)
    following.stop()
    hanging.set()
    assert receiver.kinds()[:3] == LIFE
    # What was in the dead process's hands has the name that it had.
    assert receiver.got[0].headers["webhook-id"] == receiver.taken[0].headers["webhook-id"]
    assert not OutboxEvent.objects.exists()
    assert TaskRun.objects.get().outcome == "succeeded"


def test_a_stop_by_a_signal_delivers_what_the_last_runs_have_to_tell(
    begin: Launch, receiver: Receiver, run_now: RunNow
) -> None:
    process = begin()
    run_now("until-stopping")
    process.wait_for("TaskRunStarted")
    process.stop()
    assert receiver.kinds() == LIFE, process.output
    assert not OutboxEvent.objects.exists()
