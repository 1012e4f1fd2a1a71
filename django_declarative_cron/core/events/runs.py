"""Runs, retries, and occurrences that did not run (003 Task Execution Events).

``run`` is the id of the run's row; the store knows it, a decision does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from .base import TaskEvent

LATE = timedelta(minutes=1)
"""How long after its occurrence a run may start without being late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSkipped(TaskEvent):
    """Occurrences did not run; ``outcome`` tells skipped from missed.

    ``calendar``: which one excludes them.
    """

    reason: str
    scheduled_time: datetime
    count: int = 1
    outcome: Literal["skipped", "missed"] = "skipped"
    scheduled_from: datetime | None = None
    detail: str = ""
    blocked_by: int | None = None
    calendar: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunStarted(TaskEvent, level="INFO"):
    """A run was claimed; its callback is called next.

    ``waited``: the row of the run, where it has waited for its turn.
    """

    scheduled_time: datetime
    actual_time: datetime
    is_retry: bool = False
    reason: str = "due"
    attempt: int = 1
    discharged_at: datetime | None = None
    answers_request: bool = False
    run_count: int = 0
    run: int | None = None
    waited: int | None = None

    @property
    def lateness(self) -> timedelta | None:
        """Return how long after its occurrence the run started, ``None`` where it has no own."""
        if self.is_retry or self.reason != "due":
            return None
        return max(self.actual_time - self.scheduled_time, timedelta(0))

    @property
    def is_late(self) -> bool:
        """Return whether the run started so late that people are to be told."""
        return self.lateness is not None and self.lateness > LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCompleted(TaskEvent, level="INFO"):
    """A run succeeded; ``duration`` in seconds.

    ``history_only``: the task was overridden or removed meanwhile, so the end
    is kept with the run and changes nothing in the task's state. ``others``: further
    runs of the task go on.
    """

    duration: float
    success: Literal[True] = True
    history_only: bool = False
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCommitHookFailed(TaskEvent, level="ERROR"):
    """A function that an atomic run gave to ``on_commit`` failed; the run has succeeded."""

    error: str
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunFailed(TaskEvent, level="WARNING"):
    """A run failed; ``duration`` in seconds.

    ``overtaken``: a newer occurrence was started meanwhile, so this one is not tried again.
    """

    duration: float
    success: Literal[False] = False
    error: str = ""
    next_retry_at: datetime | None = None
    history_only: bool = False
    run: int | None = None
    others: bool = False
    overtaken: bool = False
    attempt: int = 1
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunInterrupted(TaskEvent, level="INFO"):
    """A run ended with the process it ran in."""

    scheduled_time: datetime
    old_instance: str
    new_instance: str
    restarts: bool = True
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRepeatedlyInterrupted(TaskEvent, level="WARNING"):
    """So many runs in a row ended with their process: it may be what ends it.

    From now on it starts when nothing else runs, so that it takes nothing with it.
    """

    interruptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryStarted(TaskEvent, level="INFO"):
    """A run starts because a retry was pending; ``retry_count`` from 1."""

    retry_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryPreempted(TaskEvent, level="INFO"):
    """An occurrence came before the pending retry and replaces it."""

    reason: str
    pending_retry_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunResultDiscarded(TaskEvent, level="WARNING"):
    """A run came to an end after it had been given up; its result was not taken."""

    run: int
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunWaiting(TaskEvent, level="INFO"):
    """A run waits until those before it have ended; ``waiting`` of the task wait."""

    scheduled_time: datetime
    behind: int | None
    waiting: int
    reason: str = "due"
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBacklogGrowing(TaskEvent, level="WARNING"):
    """More runs of a task wait than should (CRON-S04)."""

    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCancelRequested(TaskEvent, level="INFO"):
    """A run was asked to end; ``waits``: it had not begun, so that was its end."""

    run: int
    reason: str
    author: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCancelled(TaskEvent, level="INFO"):
    """A run ended after it had been asked to; ``duration`` in seconds."""

    duration: float
    history_only: bool = False
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetriesExhausted(TaskEvent, level="ERROR"):
    """A run failed and is not tried again (002 ``on_exhaustion``).

    ``reason``: ``attempts`` used up, or an error that is ``non_retryable``; ``ends_as``:
    ``discard``, or ``dead_letter`` where somebody has to look at it.
    """

    scheduled_time: datetime
    attempt: int
    reason: str
    ends_as: str
    error: str = ""
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunFetched(TaskEvent, level="INFO"):
    """An external worker took a run up that had waited for one."""

    scheduled_time: datetime
    worker: str
    attempt: int = 1
    run: int | None = None
