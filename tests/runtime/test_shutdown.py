"""A stop: signals, the last resort, and the lead that is given up first (P21, P61)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connections

from django_declarative_cron import Scheduler
from django_declarative_cron.models import SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.runtime.engine import longest_sleep
from django_declarative_cron.store import claims, liveness
from django_declarative_cron.store.guard import Peek

from ..timeouts import wait_until
from .conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard

BODY = """
import ctypes, sys, threading
from datetime import timedelta
from django_declarative_cron.runtime.shutdown import LastResort, Shutdown
last_resort = LastResort()
shutdown = Shutdown({at_first})
shutdown.install()
print("here", flush=True)
{then}
"""
# A lock that its holder takes again: the main thread is in a driver's code for ever.
STUCK = """
libc, lock = ctypes.CDLL(None), ctypes.create_string_buffer(128)
libc.pthread_mutex_lock(lock)
libc.pthread_mutex_lock(lock)
"""
NOTHING = "lambda: print('first', flush=True)"
ARM = "lambda: last_resort.arm(timedelta(0))"


@pytest.fixture
def begin(project_environment: dict[str, str]):  # type: ignore[no-untyped-def]
    started = []

    def run(then: str, at_first: str = NOTHING) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", BODY.format(then=then, at_first=at_first)],
            env=project_environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_is_told_and_asked_for(
    begin,  # type: ignore[no-untyped-def]
    number: signal.Signals,
) -> None:
    process = begin("assert shutdown.wait(60)\nprint(shutdown.received.name)")
    process.send_signal(number)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (0, f"first\n{number.name}\n")


def test_a_terminal_that_closes_twice_is_one_signal(begin) -> None:  # type: ignore[no-untyped-def]
    process = begin("assert shutdown.wait(60)\nimport time; time.sleep(0.5)\nprint('orderly')")
    process.send_signal(signal.SIGHUP)
    assert process.stdout.readline() == "first\n"
    process.send_signal(signal.SIGHUP)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (0, "orderly\n")


def test_nohup_is_respected(begin) -> None:  # type: ignore[no-untyped-def]
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = begin("assert not shutdown.wait(0.5)\nprint(shutdown.received)")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    output, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, output) == (0, "None\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a lock differs elsewhere")
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_process_that_hangs_in_a_driver(
    begin,  # type: ignore[no-untyped-def]
    second: signal.Signals,
) -> None:
    process = begin(STUCK)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "first\n"
    process.send_signal(second)
    assert process.wait(TIMEOUT) == 128 + second


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a lock differs elsewhere")
def test_the_last_resort_ends_a_process_that_hangs_in_a_driver(begin) -> None:  # type: ignore[no-untyped-def]
    process = begin(STUCK, ARM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT) == 0


RunNow = Callable[..., None]
ACTS_OF_PEOPLE = 1.0


def _has_no_leader() -> bool:
    return SchedulerState.objects.get().leader_id is None


def test_a_claim_that_a_stop_overtakes_does_not_take_the_lead_back(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, run_now: RunNow
) -> None:
    """It had asked whether to stop, and waits for the row that the stop has just written."""
    scheduler, calls = Scheduler(background=False), 0
    scheduler.initialize([("t", NEVER_TODAY, lambda: None, FIVE_MINUTES)])
    real = claims.claim_due

    def overtaken(member: Any, *args: Any, **kwargs: Any) -> claims.Claimed:
        nonlocal calls
        calls += 1
        scheduler.request_stop()
        liveness.stop_requested(member, datetime.now(UTC))
        return real(member, *args, **kwargs)

    monkeypatch.setattr(claims, "claim_due", overtaken)
    run_now("t")
    scheduler.tick()
    assert calls == 1
    assert _has_no_leader()
    assert not TaskRun.objects.exists()
    scheduler.stop()


def test_a_stop_that_the_database_refuses_to_write_down_is_written_down_later(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run in flight is waited for; the lead is free long before its end."""
    may_end, refusals = threading.Event(), []
    real = liveness.stop_requested

    def refused_once(*args: Any) -> None:
        if not refusals:
            refusals.append(args)
            raise OperationalError("terminating connection due to administrator command")
        real(*args)

    monkeypatch.setattr(liveness, "stop_requested", refused_once)
    scheduler.initialize([("t", NEVER_TODAY, lambda: may_end.wait(TIMEOUT), FIVE_MINUTES)])
    run_now("t")
    heard.wait_for("TaskRunStarted")
    stopping = threading.Thread(target=_stop, args=(scheduler,))
    stopping.start()
    try:
        wait_until(_has_no_leader)
        assert refusals
        assert SchedulerInstance.objects.get().stop_requested_at is not None
        assert TaskRun.objects.get().outcome == "running"
    finally:
        may_end.set()
        stopping.join(TIMEOUT)


@pytest.mark.parametrize(
    ("lapses_in", "seconds"), [(None, 1.0), (15.0, 0.5), (0.5, 0.5), (0.2, 0.2), (-3.0, 0.02)]
)
def test_p61_a_lead_that_is_given_up_is_seen_within_a_second(
    lapses_in: float | None, seconds: float
) -> None:
    """A standby looks closer than a leader, and at the end of the lease at the latest."""
    seen = None
    if lapses_in is not None:
        now = datetime(2026, 12, 1, tzinfo=UTC)
        until = now + timedelta(seconds=lapses_in)
        seen = Peek(uuid4(), 1, until, "", 1, now, None, None, None)
    assert longest_sleep(seen, ACTS_OF_PEOPLE) == pytest.approx(seconds)


def _stop(scheduler: Scheduler) -> None:
    try:
        scheduler.stop(grace=timedelta(seconds=TIMEOUT))
    finally:
        connections.close_all()
