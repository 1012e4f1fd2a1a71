"""Consecutive failures that pause a task, and consecutive crashes that delay it; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from . import events
from .declarations.declaration import Operating
from .state import TaskState


def too_many(
    state: TaskState, ended: events.TaskEvent, operating: Operating
) -> tuple[events.TaskPausedByFailures, ...]:
    """Return the pause of a task if its consecutive failures are a multiple of its limit.

    A resumed task may therefore fail as many times again before the next pause.
    """
    most = operating.pause_after_failures
    if most is None or not isinstance(ended, events.TaskRunFailed) or ended.history_only:
        return ()
    if state.paused_since is not None or state.failures % most:
        return ()
    return (
        events.TaskPausedByFailures(
            at=ended.at, task_name=state.name, failures=state.failures, error=ended.error
        ),
    )


SUSPICIOUS = 3
"""A task with this many consecutive interrupted runs is suspicious."""

LONGEST_WAIT = timedelta(seconds=30)
"""A suspicious task waits at most this long for other runs to end."""


class Waiting(Protocol):
    """The columns of a due task."""

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
    """Return whether a task may be the cause of crashes."""
    return interruptions >= SUSPICIOUS


def first(due: Sequence[W], now: datetime, *, busy: bool, led_since: datetime | None) -> list[W]:
    """Return the due tasks that start now.

    Suspicious tasks wait until all others have ended and start one by one, the least suspicious
    first. A task that merely ran at the same time as the crashing one then succeeds.
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
    """Return since when a start is pending under this leader; actions do not change it."""
    began = task.last_attempt_at if task.orphaned else None
    owed = (began, task.wake_at, task.next_run_at, task.boot_at, task.pending_retry_until)
    since = min((each for each in owed if each is not None), default=now)
    floors = (led_since or task.wake_at, task.last_attempt_at, task.freed_at)
    return max([since, *(each for each in floors if each is not None)])
