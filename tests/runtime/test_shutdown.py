"""Signals are obeyed wherever the main thread is."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from .conftest import TIMEOUT

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
