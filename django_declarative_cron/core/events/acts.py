"""What people do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import TaskEvent


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
