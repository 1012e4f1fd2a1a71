"""The time until a standby leads after the leader has stopped or died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from .figures import Figure, Row
from .measuring import NOTHING, wait_until
from .processes import measured

STOPPED = "takeover after a clean stop"
KILLED = "takeover after kill -9"
LOST = "takeover after the loss of a machine"
FIGURES = (
    Figure(STOPPED, "s", target=1),
    Figure(KILLED, "s", target=15),
    Figure(LOST, "s", target=15),
)
NO_STANDBY = {
    "apscheduler": "a second scheduler on one store runs every job twice; it has no standby",
    "celery_beat": "a second beat starts every task twice; it has no standby",
    "django_q2": "it has no leader: every cluster looks for due schedules, every 30 s",
    "procrastinate": "it has no leader: every worker defers periodic tasks",
}
PATIENCE = 60.0


def measure(small: bool = False) -> list[Row]:
    """Measure the product: `runscheduler` twice, and the leader is ended."""
    rows = []
    for what, number in ((STOPPED, signal.SIGTERM), (KILLED, signal.SIGKILL), (LOST, None)):
        times = 1 if small or number is None else 3
        rows += measured("product", product, what=what, number=number, times=times, patience=240)
    return rows + [Row(contender=each, note=note) for each, note in NO_STANDBY.items()]


def product(what: str, number: int | None, times: int) -> list[Row]:
    """End the leader and wait until the standby leads.

    Args:
        what: the figure.
        number: the signal that ends the leader; without one it dies with its watchdog process.
        times: how often.
    """
    found = []
    for _ in range(times):
        with _scheduler(has_watchdog=number is not None) as leader:
            _wait_until_leader(leader)
            with _scheduler() as standby:
                _wait_until_ready(standby)
                began = time.monotonic()
                os.kill(leader.pid, number or signal.SIGKILL)
                _wait_until_leader(standby)
                found.append(time.monotonic() - began)
    return [Row(what, median(found))]


@contextmanager
def _scheduler(*, has_watchdog: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command, and stop it at the end."""
    task = {"name": "task", "cron": "* * * * * *", "callback": NOTHING}
    process = subprocess.Popen(
        [sys.executable, "-m", "django", "runscheduler"],
        env={
            **os.environ,
            "BENCHMARK_TASKS": json.dumps([task]),
            "BENCHMARK_OPTIONS": json.dumps({"WATCHDOG_PROCESS": has_watchdog}),
        },
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_until_leader(process: subprocess.Popen[bytes]) -> None:
    from django_declarative_cron.models import SchedulerState

    leading = SchedulerState.objects.filter(leader__pid=process.pid)
    if not wait_until(leading.exists, PATIENCE, step=0.01):
        raise TimeoutError(f"no takeover within {PATIENCE:.0f} s")


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    """Wait until a standby is registered and has looked at the leader for a while."""
    from django_declarative_cron.models import SchedulerInstance

    ready = SchedulerInstance.objects.filter(pid=process.pid, initialized_at__isnull=False)
    if not wait_until(ready.exists, PATIENCE):
        raise TimeoutError(f"no standby within {PATIENCE:.0f} s")
    time.sleep(2)
