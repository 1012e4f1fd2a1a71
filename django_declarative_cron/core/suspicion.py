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
    wake_at: datetime | None


W = TypeVar("W", bound=Waiting)


def is_suspicious(interruptions: int) -> bool:
    """Tell whether a task may be what ends its process.

    Args:
        interruptions: runs in a row whose process died.
    """
    return interruptions >= SUSPICIOUS


def first(due: Sequence[W], now: datetime, *, busy: bool) -> list[W]:
    """Give those of the due tasks that start now.

    The suspicious ones wait until all others have ended, and start one by one, the least
    suspicious first: who was only near when another one ended the process clears himself.

    Args:
        due: in the order in which they start.
        now: the instant of the tick.
        busy: other runs are in flight in this process.
    """
    trusted = [task for task in due if not is_suspicious(task.interruptions)]
    if len(trusted) == len(due):
        return trusted
    waiting = sorted(
        (task for task in due if is_suspicious(task.interruptions)),
        key=lambda task: task.interruptions,
    )
    tired = [task for task in waiting if task.wake_at and now - task.wake_at >= LONGEST_WAIT]
    if trusted or busy:
        return [*trusted, *tired[:1]]
    return waiting[:1]
