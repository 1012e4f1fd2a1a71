"""Callbacks that other processes name by their dotted path."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from django_declarative_cron.runtime.work import Run
from django_declarative_cron.store import database, silent_connections
from tests.timeouts import TIMEOUT

if longest := os.environ.get("DDC_TEST_LONGEST_WAIT"):
    # Seconds that the process waits for the database; its settings cannot import this.
    database.LOCK = database.STATEMENT = database.IDLE = silent_connections.PATIENCE = int(longest)


def _note(line: str) -> None:
    with Path(os.environ["DDC_TEST_NOTES"]).open("a") as notes:
        notes.write(line + "\n")


def note(run: Run) -> None:
    """Write one line about the run."""
    _note(f"ran {run.task_name} {run.reason} {run.attempt}")


def note_environment() -> None:
    """Write down a variable of the process."""
    _note(f"environment {os.environ.get('DDC_TEST_VARIABLE')}")


def until_stopping(run: Run) -> None:
    """Run until the scheduler begins to stop."""
    _note("began")
    if run.stopping.wait(TIMEOUT):
        _note("saw the stop")


def closes_everything() -> None:
    """Close every descriptor that the callback does not know, and go on."""
    _note("closes")
    os.closerange(3, 4096)
    threading.Event().wait()


def for_ever() -> None:
    """Never return."""
    _note("began")
    threading.Event().wait()


async def asynchronous(run: Run) -> None:
    """Write one line from a coroutine."""
    _note(f"async {run.task_name}")


def fail() -> None:
    """Raise."""
    raise ValueError("it went wrong")
