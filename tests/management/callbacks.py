"""What the tasks of these tests run, named by dotted path."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

from django_declarative_cron.models import SchedulerInstance, TaskRun
from django_declarative_cron.runtime.work import Run

seen: list[Any] = []


def nothing() -> None:
    """Do nothing, well."""


def remember(run: Run) -> None:
    """Keep what the run was told."""
    seen.append(run)


async def remember_async(run: Run) -> None:
    """Keep what the run was told, from a coroutine."""
    seen.append(run)


def fail() -> None:
    """Fail with words that must not reach the terminal as they are."""
    raise ValueError("it is \x1b[31mred")


def give_in() -> None:
    """Be stopped by Ctrl-C."""
    raise KeyboardInterrupt


def lose_the_instance() -> None:
    """Be taken for dead while running."""
    SchedulerInstance.objects.all().delete()
    TaskRun.objects.update(outcome=TaskRun.Outcome.INTERRUPTED, running_slot=None)


def outlive_the_lease() -> None:
    """Run until the heartbeat has gone on for longer than a lease of one second."""
    instance = SchedulerInstance.objects.get(runs__outcome="running")
    deadline = time.monotonic() + 20
    while instance.heartbeat_at <= instance.started_at + timedelta(seconds=1.1):
        assert time.monotonic() < deadline, "no heartbeat"
        time.sleep(0.05)
        instance.refresh_from_db()
    seen.append(instance)


def wait_for_ctrl_c() -> None:
    """Say that it waits, and wait for somebody to press Ctrl-C."""
    sys.stdout.write("waiting\n")
    sys.stdout.flush()
    time.sleep(60)
