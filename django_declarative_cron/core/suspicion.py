"""Tasks whose runs keep dying with their process: they start when nothing else runs there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

SUSPICIOUS = 3
"""How many interrupted runs in a row make a task suspicious."""

LONGEST_WAIT = timedelta(seconds=30)
"""How long a suspicious task waits for everything else to end."""


class Waiting(Protocol):
    """What is known of a task that is due."""

    interruptions: int
    orphaned: bool
    wake_at: datetime | None
    next_run_at: datetime | None
    boot_at: datetime | None
    pending_retry_until: datetime | None
    last_attempt_at: datetime | None
    freed_at: datetime | None


W = TypeVar("W", bound=Waiting)


def is_suspicious(interruptions: int) -> bool:
    """Tell whether a task may be what ends its process.

    Args:
        interruptions: runs in a row whose process died.
    """
    return interruptions >= SUSPICIOUS


def first(due: Sequence[W], now: datetime, *, busy: bool, led_since: datetime | None) -> list[W]:
    """Give those of the due tasks that start now.

    The suspicious ones wait until all others have ended, and start one by one, the least
    suspicious first: who was only near when another one ended the process clears himself.

    Args:
        due: in the order in which they start.
        now: the instant of the tick.
        busy: other runs are in flight in this process.
        led_since: since when this process leads.
    """
    trusted = [task for task in due if not is_suspicious(task.interruptions)]
    if len(trusted) == len(due):
        return trusted
    waiting = sorted(
        (task for task in due if is_suspicious(task.interruptions)),
        key=lambda task: task.interruptions,
    )
    tired = [task for task in waiting if now - _since(task, led_since, now) >= LONGEST_WAIT]
    if trusted or busy:
        return [*trusted, *tired[:1]]
    return waiting[:1]


def _since(task: Waiting, led_since: datetime | None, now: datetime) -> datetime:
    """Give since when a task is owed a start under this leader: no act begins the wait anew."""
    began = task.last_attempt_at if task.orphaned else None
    owed = (began, task.wake_at, task.next_run_at, task.boot_at, task.pending_retry_until)
    since = min((each for each in owed if each is not None), default=now)
    floors = (led_since or task.wake_at, task.last_attempt_at, task.freed_at)
    return max([since, *(each for each in floors if each is not None)])
