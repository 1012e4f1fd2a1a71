"""The states of a scheduler by themselves, and its stop: signals, the last resort, the lead."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from django_declarative_cron import Scheduler
from django_declarative_cron.exceptions import StopSchedulerError
from django_declarative_cron.models import SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.runtime import shutdown
from django_declarative_cron.runtime.engine import longest_sleep
from django_declarative_cron.runtime.lifecycle import (
    POLLING,
    TRANSITIONS,
    BusyError,
    Lifecycle,
    Polling,
    State,
    Step,
)
from django_declarative_cron.store import claims, liveness, results
from django_declarative_cron.store.guard import Peek

from ..timeouts import wait_until
from .conftest import TIMEOUT, Busy, Call, Live, nothing, registrations

# --- 001 Scheduler State Model, Polling State Model ---

SPECIFIED = [
    ("Uninitialized", "Initializing", "SchedulerInitializationStarted"),
    ("Initializing", "Running", "SchedulerInitializationCompleted"),
    ("Initializing", "Uninitialized", "SchedulerInitializationFailed"),
    ("Running", "Reinitializing", "SchedulerReinitializationStarted"),
    ("Reinitializing", "Running", "SchedulerReinitializationCompleted"),
    ("Running", "Stopping", "SchedulerStopRequested"),
    ("Stopping", "Stopped", "SchedulerStopped"),
]
OURS = [
    ("Stopped", "Initializing", "SchedulerInitializationStarted"),
    ("Reinitializing", "Running", "SchedulerInitializationFailed"),
    ("Initializing", "Stopping", "SchedulerStopRequested"),
    ("Reinitializing", "Stopping", "SchedulerStopRequested"),
]


@pytest.mark.requirement("001 Scheduler State Model/1")
def test_the_states_and_transitions_are_those_of_the_specification_and_ours() -> None:
    assert " ".join(State) == "Uninitialized Initializing Running Reinitializing Stopping Stopped"
    found = [(s, target, event.__name__) for (s, _), (target, event) in TRANSITIONS.items()]
    assert sorted(found) == sorted(SPECIFIED + OURS)


@pytest.mark.requirement("000 Polling Behavior/4", "001 Scheduler State Model/1")
def test_polling_moves_as_specified() -> None:
    assert " ".join(Polling) == "Inactive Active Stopping"
    assert {(s, target, event.__name__) for (s, target), event in POLLING.items()} == {
        ("Inactive", "Active", "PollingStarted"),
        ("Active", "Inactive", "PollingStopped"),
        ("Active", "Stopping", "PollingStopRequested"),
        ("Stopping", "Inactive", "PollingStopped"),
    }


def _running() -> Lifecycle:
    life = Lifecycle()
    life.begin_initialize(from_inside=False)
    life.conclude(Step.SUCCEED)
    life.give_back()
    return life


def _ask(life: Lifecycle) -> list[str]:
    with life.asking_to_stop() as told:
        return [event.__name__ for event in told]


@pytest.mark.requirement("001 Reentrancy Protection/3")
@pytest.mark.parametrize("outcome", [Step.SUCCEED, Step.FAIL])
@pytest.mark.parametrize("life", [Lifecycle, _running], ids=["the first", "a repeated"])
def test_an_initialisation_that_a_stop_waits_for_ends_in_stopping(
    life: type[Lifecycle], outcome: Step
) -> None:
    machine = life()
    machine.begin_initialize(from_inside=False)
    before = machine.state
    assert _ask(machine)[0] == "SchedulerStopRequested"
    assert machine.state is before, "the initialisation goes on"
    assert not machine.begin_shutdown(seconds=0)
    assert machine.conclude(outcome) is TRANSITIONS[before, outcome][1]
    assert machine.state is State.STOPPING
    assert machine.poll(active=True) == []
    machine.give_back()
    assert machine.begin_shutdown(seconds=0)


def test_one_from_inside_waits_for_another_but_not_for_a_stop() -> None:
    life = _running()
    life.begin_initialize(from_inside=False)
    waiting = Call(life.begin_initialize, from_inside=True)
    _ask(life)
    with pytest.raises(BusyError):
        waiting.result()


def test_the_turn_is_had_only_where_it_is_free_and_the_scheduler_runs() -> None:
    life = _running()
    with life.turn_if_free() as first, life.turn_if_free() as second:
        assert (first, second) == (True, False)
    with life.turn_if_free() as again:
        assert again
    _ask(life)
    with life.turn_if_free() as stopping:
        assert not stopping


# --- signals, and the last resort ---

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
Begin = Callable[..., "subprocess.Popen[str]"]

on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="the size of a lock differs elsewhere"
)


@pytest.fixture
def begin(project_environment: dict[str, str]) -> Iterator[Begin]:
    started = []

    def run(then: str, at_first: str = NOTHING) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", BODY.format(then=then, at_first=at_first)],
            env=project_environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        _hears(process, "here")
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def _hears(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None and process.stdout.readline() == f"{line}\n"


def _end(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=TIMEOUT)
    return process.returncode, output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_is_told_and_asked_for(begin: Begin, number: signal.Signals) -> None:
    process = begin("assert shutdown.wait(60)\nprint(shutdown.received.name)")
    process.send_signal(number)
    assert _end(process) == (0, f"first\n{number.name}\n")


def test_a_terminal_that_closes_twice_is_one_signal(begin: Begin) -> None:
    process = begin("assert shutdown.wait(60)\nimport time; time.sleep(0.5)\nprint('orderly')")
    process.send_signal(signal.SIGHUP)
    _hears(process, "first")
    process.send_signal(signal.SIGHUP)
    assert _end(process) == (0, "orderly\n")


def test_nohup_is_respected(begin: Begin) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = begin("assert not shutdown.wait(0.5)\nprint(shutdown.received)")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    assert _end(process) == (0, "None\n")


@on_linux
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_process_that_hangs_in_a_driver(
    begin: Begin, second: signal.Signals
) -> None:
    process = begin(STUCK)
    process.send_signal(signal.SIGTERM)
    _hears(process, "first")
    process.send_signal(second)
    assert process.wait(TIMEOUT) == 128 + second


@on_linux
def test_the_last_resort_ends_a_process_that_hangs_in_a_driver(begin: Begin) -> None:
    process = begin(STUCK, ARM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT) == 0


# --- a stop in the database: the lead is given up first (P21, P61) ---

ACTS_OF_PEOPLE = 1.0


def _has_no_leader() -> bool:
    return SchedulerState.objects.get().leader_id is None


def test_a_claim_that_a_stop_overtakes_does_not_take_the_lead_back(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, run_now: Callable[..., None]
) -> None:
    """It had asked whether to stop, and waits for the row that the stop has just written."""
    scheduler, calls = Scheduler(background=False), 0
    scheduler.initialize(registrations(t=nothing))
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
    live: Live, busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run in flight is waited for; the lead is free long before its end."""
    refusals = []
    real = liveness.stop_requested

    def refused_once(*args: Any) -> None:
        if not refusals:
            refusals.append(args)
            raise OperationalError("terminating connection due to administrator command")
        real(*args)

    monkeypatch.setattr(liveness, "stop_requested", refused_once)
    stop = Call(live.scheduler.stop, grace=timedelta(seconds=TIMEOUT))
    try:
        wait_until(_has_no_leader)
        assert refusals
        assert SchedulerInstance.objects.get().stop_requested_at is not None
        assert TaskRun.objects.get().outcome == "running"
    finally:
        busy.may_end.set()
    assert stop.result() is True


def _refuse(*_: object) -> None:
    raise OperationalError("the server is gone")


@pytest.mark.requirement("001 Error Taxonomy/9")
def test_a_deployment_that_cannot_be_left_is_told_and_the_scheduler_has_stopped(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.start(t=nothing)
    monkeypatch.setattr(liveness, "leave", _refuse)
    with pytest.raises(StopSchedulerError) as caught:
        live.scheduler.stop()
    assert caught.value.message == "Failed to stop scheduler: the server is gone"
    assert isinstance(caught.value.details["cause"], OperationalError)
    assert caught.value.__cause__ is caught.value.details["cause"]
    assert live.scheduler.state == "Stopped"
    assert not live.scheduler.is_alive
    assert len(live.heard.of("SchedulerStopped")) == 1


@pytest.mark.requirement("001 Error Taxonomy/9")
def test_results_that_cannot_be_recorded_are_told_and_recorded_later(
    live: Live, busy: Busy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "_LOOK_AGAIN", 0.001)
    with monkeypatch.context() as patched:
        patched.setattr(results, "_record", _refuse)
        busy.may_end.set()
        with pytest.raises(StopSchedulerError) as caught:
            live.scheduler.stop()
        assert isinstance(caught.value.details["cause"], OperationalError)
        assert live.scheduler.state == "Stopping"
        assert TaskRun.objects.get().outcome == "running"
    live.until("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"


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
