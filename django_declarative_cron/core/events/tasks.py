"""What becomes of declared tasks and of their stored state (003 State Management Events)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .base import TaskEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdded(TaskEvent, level="INFO"):
    """A name came for the first time; ``boot_at`` is the occurrence it owes at once."""

    cron_expression: str
    retry_delay_ms: int
    boot_at: datetime | None = None
    paused_since: datetime | None = None
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPreserved(TaskEvent):
    """A name came again with the same schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOverridden(TaskEvent, level="INFO"):
    """A name came with another schedule; its state starts afresh."""

    change_type: str
    old_state: Mapping[str, Any]
    new_state: Mapping[str, Any]
    boot_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrphaned(TaskEvent, level="WARNING"):
    """A stored name is not declared any more; its row is removed."""

    last_execution_time: datetime | None
    scheduler_identifier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScheduled(TaskEvent):
    """A task is in the active set."""

    cron_expression: str
    retry_delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHighWaterMarkReset(TaskEvent, level="WARNING"):
    """A high-water mark far ahead of the clock was set back to now."""

    old_mark: datetime
    pending_retry_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStateDamaged(TaskEvent, level="WARNING"):
    """A stored row cannot be read; it is rewritten from its declaration."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBroken(TaskEvent, level="ERROR"):
    """A task cannot be considered or called; the others go on."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRescheduled(TaskEvent, level="INFO"):
    """Another spread moves the occurrences of a task, and what is known of them, by ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPaused(TaskEvent, level="INFO"):
    """A person paused a task (or its declaration disabled it)."""

    author: str
    note: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResumed(TaskEvent, level="INFO"):
    """A pause ended; its occurrences are accounted for up to ``at``."""

    author: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunRequested(TaskEvent, level="INFO"):
    """A person asked for a run now."""

    author: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryCleared(TaskEvent, level="INFO"):
    """A person cleared the retry state."""

    author: str
    note: str = ""
    pending_retry_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSkipRequested(TaskEvent, level="INFO"):
    """A person lets the next occurrence pass, ``None``: takes that back."""

    author: str
    note: str = ""
    scheduled_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPausedByFailures(TaskEvent, level="ERROR"):
    """So many failures in a row paused a task, as its declaration asks; people resume it."""

    failures: int
    error: str = ""
