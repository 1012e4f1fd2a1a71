"""The command line, called in this process and in children, and the time it shows."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from django_declarative_cron.management.commands.cron import Command
from django_declarative_cron.runtime.clock import Clock
from django_declarative_cron.testing import ManualClock, Simulation

from ..process import run_python
from . import callbacks

START = "2024-01-01T10:00:30Z"
DELAY = timedelta(minutes=5)
HERE = "tests.management.callbacks"


class Screen(StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@dataclass(frozen=True)
class Answer:
    """What a call of ``cron`` gave."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Cron = Callable[..., Answer]


@pytest.fixture(autouse=True)
def _forget() -> None:
    callbacks.seen.clear()


@pytest.fixture
def cron(request: pytest.FixtureRequest) -> Cron:
    """Call ``cron`` in this process, at the time of a simulation where there is one."""

    def call(*words: str, clock: Clock | None = None, is_terminal: bool = False) -> Answer:
        out, err = Screen(is_terminal=is_terminal), Screen(is_terminal=is_terminal)
        command = Command(stdout=out, stderr=err)
        if clock is not None:
            command.clock = clock
        try:
            call_command(command, *words)
        except CommandError as error:
            return Answer(error.returncode, out.getvalue(), err.getvalue() + str(error))
        return Answer(0, out.getvalue(), err.getvalue())

    return call


@pytest.fixture
def declare(settings: Any) -> Callable[..., list[Any]]:
    """Write ``SCHEDULED_TASKS`` from names to cron texts, or whole entries."""

    def write(*entries: Any, **tasks: str) -> list[Any]:
        settings.SCHEDULED_TASKS = [
            *entries,
            *((name, text, f"{HERE}.nothing", DELAY) for name, text in tasks.items()),
        ]
        return settings.SCHEDULED_TASKS

    return write


@pytest.fixture
def sim(db: None) -> Simulation:
    """A scheduler that has not initialised, at half a minute past ten."""
    return Simulation(start=START)


@pytest.fixture
def at_start() -> ManualClock:
    """A clock that stands at half a minute past ten."""
    return Simulation(start=START).clock


def run_child(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Call a management command in a child process."""
    settings = {"DJANGO_SETTINGS_MODULE": "tests.management.child_settings"}
    return run_python("-m", "django", *words, env={**env, **settings})


@pytest.fixture
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns and without colours, whatever terminal the tests run in."""
    size = os.terminal_size((80, 24))
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): size)
    monkeypatch.setenv("NO_COLOR", "1")
