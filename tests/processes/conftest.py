"""Scheduler processes, and what is known of them from outside."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import SchedulerState

from ..process import Process
from ..runtime.conftest import RunNow, run_now
from ..timeouts import wait_until

__all__ = ["RunNow", "run_now", "wait_until"]

Launch = Callable[..., Process]


@pytest.fixture
def launch(start: Callable[..., Process]) -> Iterator[Launch]:
    """Start schedulers with options of ``DECLARATIVE_CRON``; return each when it is up.

    ``given`` is for their settings and callbacks.
    """
    launched: list[Process] = []

    def begin(*arguments: str, is_awaited: bool = True, **options: Any) -> Process:
        given = options.pop("given", {})
        process = start(
            *arguments,
            DJANGO_SETTINGS_MODULE="tests.processes.settings",
            DDC_TEST_OPTIONS=json.dumps({"LEASE": 2, "RENEW": 0.5, **options}),
            **{f"DDC_TEST_{name.upper()}": str(value) for name, value in given.items()},
        )
        launched.append(process)
        return process.up() if is_awaited else process

    yield begin
    for process in launched:
        with suppress(ProcessLookupError):
            process.signal(signal.SIGCONT)


@pytest.fixture
def launch_two(launch: Launch) -> Callable[..., tuple[Process, Process]]:
    """Start two schedulers at the same time; return the leader, then the standby."""

    def begin(**options: Any) -> tuple[Process, Process]:
        first, second = (launch(is_awaited=False, **options) for _ in range(2))
        for process in (first, second):
            process.up()
        wait_until(leading_pid, "a leader")
        return (first, second) if leading_pid() == first.child.pid else (second, first)

    return begin


def halt(process: Process) -> None:
    """Stop a process from running, but not while it keeps all others from an SQLite file."""
    while True:
        process.signal(signal.SIGSTOP)
        if connection.vendor != "sqlite":
            return
        other = sqlite3.connect(connection.settings_dict["NAME"], timeout=10)
        with closing(other), suppress(sqlite3.OperationalError):
            # Not even one that reads lets others commit.
            other.execute("BEGIN EXCLUSIVE")
            return
        process.signal(signal.SIGCONT)


def leading_pid() -> int | None:
    """Return the process id of the leader."""
    state = SchedulerState.objects.select_related("leader").first()
    return state.leader.pid if state is not None and state.leader is not None else None


def watchdog_of(process: Process) -> int | None:
    """Return the process id of a scheduler's watchdog process, if it has one that is no zombie."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if "cron-watchdog" in name and int(parent) == process.child.pid and state != "Z":
            return int(status.parent.name)
    return None
