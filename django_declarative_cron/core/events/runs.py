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
    """One or several occurrences will not run; ``outcome`` is ``skipped`` or ``missed``.

    ``calendar``: the name of the calendar that excludes them.
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
    """A run is committed as started and is called next.

    ``waited``: the row of a run that has waited for its turn.
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

    ``history_only``: the task was overridden or removed during the run, so the result changes only
    the history. ``others``: further runs of the task are in progress.
    """

    duration: float
    success: Literal[True] = True
    history_only: bool = False
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCommitHookFailed(TaskEvent, level="ERROR"):
    """A function passed to ``transaction.on_commit`` in an atomic run failed; the run succeeded."""

    error: str
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunFailed(TaskEvent, level="WARNING"):
    """A run failed; ``duration`` in seconds.

    ``overtaken``: a newer run of the task has started, so this one is not retried.
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
    """The process of a run was found dead."""

    scheduled_time: datetime
    old_instance: str
    new_instance: str
    restarts: bool = True
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRepeatedlyInterrupted(TaskEvent, level="WARNING"):
    """The third run in a row ended with its process; logged once.

    From then on the task starts only if nothing else runs in the process.
    """

    interruptions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryStarted(TaskEvent, level="INFO"):
    """A pending retry is due and starts next; ``retry_count`` from 1."""

    retry_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetryPreempted(TaskEvent, level="INFO"):
    """An occurrence before the pending retry replaces it."""

    reason: str
    pending_retry_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunResultDiscarded(TaskEvent, level="WARNING"):
    """A run ended after another process had taken it over; its result is discarded."""

    run: int
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunWaiting(TaskEvent, level="INFO"):
    """A run waits for earlier runs of the task (``enqueue``), or for an external worker.

    ``waiting``: number of runs of the task that wait.
    """

    scheduled_time: datetime
    behind: int | None
    waiting: int
    reason: str = "due"
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBacklogGrowing(TaskEvent, level="WARNING"):
    """More than two runs of a task wait (CRON-S04)."""

    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCancelRequested(TaskEvent, level="INFO"):
    """Cancellation of a run was requested; ``waits``: it had not started, so it has ended."""

    run: int
    reason: str
    author: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCancelled(TaskEvent, level="INFO"):
    """A run ended after a cancellation request; ``duration`` in seconds."""

    duration: float
    history_only: bool = False
    run: int | None = None
    others: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRetriesExhausted(TaskEvent, level="ERROR"):
    """A run failed and is not retried (002 ``on_exhaustion``).

    ``reason``: ``attempts`` or ``non_retryable``; ``ends_as``: ``discard`` or ``dead_letter``.
    """

    scheduled_time: datetime
    attempt: int
    reason: str
    ends_as: str
    error: str = ""
    run: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunFetched(TaskEvent, level="INFO"):
    """An external worker fetched a waiting run."""

    scheduled_time: datetime
    worker: str
    attempt: int = 1
    run: int | None = None
