"""What becomes of declared tasks and of their stored state (003 State Management Events)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .base import TaskEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdded(TaskEvent, level="INFO"):
    """A task is new; ``boot_at`` is an occurrence that runs immediately."""

    cron_expression: str
    retry_delay_ms: int
    boot_at: datetime | None = None
    paused_since: datetime | None = None
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPreserved(TaskEvent):
    """A known task has the same schedule; its state is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOverridden(TaskEvent, level="INFO"):
    """A known task has a different schedule; its state is reset."""

    change_type: str
    old_state: Mapping[str, Any]
    new_state: Mapping[str, Any]
    boot_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrphaned(TaskEvent, level="WARNING"):
    """A task is no longer declared; its row is deleted."""

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
    """A stored row cannot be decoded; it is rewritten from its declaration."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBroken(TaskEvent, level="ERROR"):
    """A task cannot be evaluated or called and is set aside; other tasks continue."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRescheduled(TaskEvent, level="INFO"):
    """A different ``spread`` moves the occurrences of a task by ``seconds``."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPaused(TaskEvent, level="INFO"):
    """A task was paused by an operator, or disabled in its declaration (author ``settings``)."""

    author: str
    note: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResumed(TaskEvent, level="INFO"):
    """A pause ended; ``author`` is empty if it expired."""

    author: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunRequested(TaskEvent, level="INFO"):
    """An operator requested a run."""

    author: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryCleared(TaskEvent, level="INFO"):
    """An operator cleared the retry state."""

    author: str
    note: str = ""
    pending_retry_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSkipRequested(TaskEvent, level="INFO"):
    """An operator skipped the next occurrence; without a time, undid that."""

    author: str
    note: str = ""
    scheduled_time: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPausedByFailures(TaskEvent, level="ERROR"):
    """Consecutive failures paused a task (``pause_after_failures``)."""

    failures: int
    error: str = ""
