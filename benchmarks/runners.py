"""The time between the start of a run and its call, for each runner of the product."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from .figures import Figure, Row
from .measuring import wait_until
from .processes import measured

if TYPE_CHECKING:
    from django_declarative_cron import Scheduler

RUNNERS = {
    "start of a run, thread": {"callback": f"{__name__}.note"},
    "start of a run, coroutine": {"callback": f"{__name__}.note_in_coroutine"},
    "start of a run, process": {"callback": f"{__name__}.note", "runner": "process"},
}
FIGURES = tuple(Figure(what, "ms") for what in RUNNERS)
A_DAY = 24 * 60 * 60


def measure(small: bool = False) -> list[Row]:
    """Measure each runner in a process of its own."""
    return [
        row
        for what, keys in RUNNERS.items()
        for row in measured("product", product, what=what, keys=keys, runs=5 if small else 200)
    ]


def product(what: str, keys: dict[str, str], runs: int) -> list[Row]:
    """Start one run after the other; the signal of the start is sent right before the call."""
    from django.test import override_settings

    from django_declarative_cron import Scheduler, signals
    from django_declarative_cron.testing import ManualClock

    started: list[float] = []

    def note_start(**_: object) -> None:
        started.append(time.monotonic())

    signals.task_run_started.connect(note_start)
    _notes().touch()
    # Time passes only here, and no lease may end by it.
    clock = ManualClock(datetime(2024, 1, 1, tzinfo=UTC))
    with override_settings(DECLARATIVE_CRON={"LEASE": A_DAY, "RENEW": A_DAY / 3}):
        scheduler = Scheduler(background=False, clock=clock)
        scheduler.initialize([{"name": "task", "cron": "* * * * * *", **keys}])
        _run_once(scheduler, 1)
        started.clear()
        for number in range(2, runs + 2):
            clock.advance(clock.now() + timedelta(seconds=1))
            if not _run_once(scheduler, number):
                return [Row(what, note="did not call every run")]
        scheduler.stop()
    pairs = zip(started, _calls()[1:], strict=True)
    return [Row(what, median((call - start) * 1000 for start, call in pairs))]


def _run_once(scheduler: Scheduler, number: int) -> bool:
    """Start a run, wait for its end and record it; return whether it was called."""
    scheduler.tick()
    is_called = wait_until(lambda: len(_calls()) >= number, 30, step=0.001)
    wait_until(lambda: scheduler.running == 0, 30, step=0.001)
    scheduler.tick()
    return is_called


def note() -> None:
    """Write down the monotonic time of the call, which all processes of a machine share."""
    called = time.monotonic()
    with _notes().open("a") as file:
        file.write(f"{called}\n")


async def note_in_coroutine() -> None:
    """Write down the same in a coroutine."""
    note()


def _notes() -> Path:
    return Path(os.environ["BENCHMARK_FOLDER"]) / "calls"


def _calls() -> list[float]:
    return [float(line) for line in _notes().read_text().splitlines()]
