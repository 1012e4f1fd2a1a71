"""The alphabet: every event, with its level and its fields.

Signals, log lines, admin history and traces are renderings of these. Names are those of the log
event contract (003 Logging & Event Contract) and of the state models of 001; a field in snake
case here is the contract's field in camel case. The contract's required fields come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal, dataclass_transform
from uuid import UUID

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]

LATE = timedelta(minutes=1)
"""A run that starts later than this after its occurrence is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Stored data of the task and the run of an event; ``job`` and ``blocked_by`` name runs."""

    deployment: UUID
    source: str
    cron: str | None = None
    timezone: str | None = None
    job_type: str | None = None
    queue: str = "default"
    offered: bool = False
    run_count: int | None = None
    job: UUID | None = None
    attempt: int | None = None
    scheduled_time: datetime | None = None
    blocked_by: UUID | None = None


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Record:
    """Make every subclass a frozen dataclass with a level."""

    level: ClassVar[Level]

    def __init_subclass__(cls, level: Level = "DEBUG") -> None:
        cls.level = level
        dataclass(frozen=True, kw_only=True)(cls)


class Event(_Record):
    """Something that happened at an instant."""

    at: datetime


class TaskEvent(Event):
    """Something that happened to one task; ``facts`` is not part of the event itself."""

    task_name: str
    facts: Facts | None = field(default=None, compare=False, repr=False)


class RunEvent(TaskEvent):
    """Something that happened to a run or an occurrence; ``run`` is the id of the run's row."""


class OperatorEvent(TaskEvent):
    """An operator changed a task, or the scheduler or the settings did, with its own author."""

    author: str
    note: str = ""


class RepeatedFailure(Event):
    """Something failed and is repeated; ``failures`` counts the failures in a row."""

    error: str
    failures: int = 1


class TaskSkipped(RunEvent):
    """One or several occurrences will not run; ``outcome`` is ``skipped`` or ``missed``."""

    reason: str
    scheduled_time: datetime
    count: int = 1
    outcome: Literal["skipped", "missed"] = "skipped"
    scheduled_from: datetime | None = None
    detail: str = ""
    blocked_by: int | None = None
    calendar: str = ""


class TaskRunStarted(RunEvent, level="INFO"):
    """A run is committed as started and is called next."""

    scheduled_time: datetime
    actual_time: datetime
    is_retry: bool = False
    reason: str = "due"
    attempt: int = 1
    discharged_at: datetime | None = None
    answers_request: bool = False
    run_count: int = 0
    run: int | None = None
    waited: int | None = None  # row of a run that has waited for its turn

    @property
    def lateness(self) -> timedelta | None:
        """Return how long after its occurrence the run started, ``None`` where it has no own."""
        if self.is_retry or self.reason != "due":
            return None
        return max(self.actual_time - self.scheduled_time, timedelta(0))

    @property
    def is_late(self) -> bool:
        """Return whether the run started late enough for a notification."""
        return self.lateness is not None and self.lateness > LATE


class TaskRunCompleted(RunEvent, level="INFO"):
    """A run succeeded; ``duration`` in seconds."""

    duration: float
    success: Literal[True] = True
    # The task was overridden or removed during the run, so the result changes only the history.
    history_only: bool = False
    run: int | None = None
    others: bool = False  # Further runs of the task are in progress.


class TaskCommitHookFailed(RunEvent, level="ERROR"):
    """A function passed to ``transaction.on_commit`` in an atomic run failed; the run succeeded."""

    error: str
    run: int | None = None


class TaskRunFailed(RunEvent, level="WARNING"):
    """A run failed; ``duration`` in seconds."""

    duration: float
    success: Literal[False] = False
    error: str = ""
    next_retry_at: datetime | None = None
    history_only: bool = False
    run: int | None = None
    others: bool = False
    overtaken: bool = False  # A newer run of the task has started, so there is no retry.
    attempt: int = 1
    max_attempts: int | None = None


class TaskRunInterrupted(RunEvent, level="INFO"):
    """The process of a run was found dead."""

    scheduled_time: datetime
    old_instance: str
    new_instance: str
    restarts: bool = True
    run: int | None = None
    others: bool = False


class TaskRepeatedlyInterrupted(RunEvent, level="WARNING"):
    """The third run in a row ended with its process; logged once.

    From then on the task starts only if nothing else runs in the process.
    """

    interruptions: int


class TaskRetryStarted(RunEvent, level="INFO"):
    """A pending retry is due and starts next; ``retry_count`` from 1."""

    retry_count: int


class TaskRetryPreempted(RunEvent, level="INFO"):
    """An occurrence before the pending retry replaces it."""

    reason: str
    pending_retry_until: datetime | None = None


class TaskRunResultDiscarded(RunEvent, level="WARNING"):
    """A run ended after another process had taken it over; its result is discarded."""

    run: int
    success: bool


class TaskRunWaiting(RunEvent, level="INFO"):
    """A run waits for earlier runs of the task (``enqueue``), or for an external worker.

    ``waiting``: number of runs of the task that wait.
    """

    scheduled_time: datetime
    behind: int | None
    waiting: int
    reason: str = "due"
    run: int | None = None


class TaskBacklogGrowing(RunEvent, level="WARNING"):
    """More than two runs of a task wait (CRON-S04)."""

    waiting: int


class TaskRunCancelRequested(RunEvent, level="INFO"):
    """Cancellation of a run was requested; ``waits``: it had not started, so it has ended."""

    run: int
    reason: str
    author: str = ""
    waits: bool = False


class TaskRunCancelled(RunEvent, level="INFO"):
    """A run ended after a cancellation request; ``duration`` in seconds."""

    duration: float
    history_only: bool = False
    run: int | None = None
    others: bool = False


class TaskRetriesExhausted(RunEvent, level="ERROR"):
    """A run failed and is not retried (002 ``on_exhaustion``).

    ``reason``: ``attempts`` or ``non_retryable``; ``ends_as``: ``discard`` or ``dead_letter``.
    """

    scheduled_time: datetime
    attempt: int
    reason: str
    ends_as: str
    error: str = ""
    run: int | None = None


class TaskRunFetched(RunEvent, level="INFO"):
    """An external worker fetched a waiting run."""

    scheduled_time: datetime
    worker: str
    attempt: int = 1
    run: int | None = None


class TaskAdded(TaskEvent, level="INFO"):
    """A task is new; ``boot_at`` is an occurrence that runs immediately."""

    cron_expression: str
    retry_delay_ms: int
    boot_at: datetime | None = None
    paused_since: datetime | None = None
    paused_until: datetime | None = None


class TaskPreserved(TaskEvent):
    """A known task has the same schedule; its state is kept."""


class TaskOverridden(TaskEvent, level="INFO"):
    """A known task has a different schedule; its state is reset."""

    change_type: str
    old_state: Mapping[str, Any]
    new_state: Mapping[str, Any]
    boot_at: datetime | None = None


class TaskOrphaned(TaskEvent, level="WARNING"):
    """A task is no longer declared; its row is deleted."""

    last_execution_time: datetime | None
    scheduler_identifier: str


class TaskScheduled(TaskEvent):
    """A task is in the active set."""

    cron_expression: str
    retry_delay_ms: int


class TaskHighWaterMarkReset(TaskEvent, level="WARNING"):
    """A high-water mark far ahead of the clock was set back to now."""

    old_mark: datetime
    pending_retry_until: datetime | None = None


class TaskStateDamaged(TaskEvent, level="WARNING"):
    """A stored row cannot be decoded; it is rewritten from its declaration."""

    error: str


class TaskBroken(TaskEvent, level="ERROR"):
    """A task cannot be evaluated or called and is set aside; other tasks continue."""

    reason: str


class TaskRescheduled(TaskEvent, level="INFO"):
    """A different ``spread`` moves the occurrences of a task by ``seconds``."""

    seconds: float


class TaskPaused(OperatorEvent, level="INFO"):
    """A task was paused by an operator, or disabled in its declaration (author ``settings``)."""

    until: datetime | None = None


class TaskResumed(OperatorEvent, level="INFO"):
    """A pause ended; ``author`` is empty if it expired."""


class TaskRunRequested(OperatorEvent, level="INFO"):
    """An operator requested a run."""


class TaskRetryCleared(OperatorEvent, level="INFO"):
    """An operator cleared the retry state."""

    pending_retry_until: datetime | None = None


class TaskSkipRequested(OperatorEvent, level="INFO"):
    """An operator skipped the next occurrence; without a time, undid that."""

    scheduled_time: datetime | None


class TaskPausedByFailures(TaskEvent, level="ERROR"):
    """Consecutive failures paused a task (``pause_after_failures``)."""

    failures: int
    error: str = ""


class SchedulerInitializationStarted(Event):
    """``initialize`` was called."""

    total_registrations: int


class SchedulerInitializationCompleted(Event):
    """``initialize`` succeeded; skipped tasks needed no write."""

    total_registrations: int
    scheduled_count: int
    skipped_count: int


class SchedulerInitializationFailed(Event, level="ERROR"):
    """``initialize`` raised an exception; nothing has changed."""

    error: str


class SchedulerReinitializationStarted(Event):
    """``initialize`` was called while the scheduler was running."""


class SchedulerReinitializationCompleted(Event):
    """A repeated ``initialize`` returned."""


class SchedulerStopRequested(Event, level="INFO"):
    """``stop`` was called; nothing starts any more."""


class SchedulerStopped(Event, level="INFO"):
    """Every run has ended, and the scheduler has stopped."""


class SchedulerSuperseded(Event, level="WARNING"):
    """Another scheduler made a different registration set the active one."""

    generation: int


class LeadershipGained(Event, level="INFO"):
    """This instance became the leader, with a new term."""

    term: int
    instance: str


class LeadershipLost(Event, level="WARNING"):
    """This instance is no longer the leader."""

    term: int
    instance: str


class ClockStepped(Event, level="WARNING"):
    """The system clock was changed by two seconds or more."""

    seconds: float


class PersistenceFailed(RepeatedFailure, level="ERROR"):
    """A database operation failed and is repeated; logged after 1, 2, 4, … 60 s of an outage."""

    doing: str


class PollStarted(Event):
    """A tick that evaluates tasks began."""

    poll_time: datetime
    scheduled_task_count: int


class PollCompleted(Event):
    """A tick that evaluates tasks ended; ``duration`` in seconds."""

    poll_time: datetime
    tasks_evaluated: int
    tasks_executed: int
    duration: float


class PollingStarted(Event):
    """The loop started, because at least one task is declared."""


class PollingStopRequested(Event):
    """The loop was asked to stop."""


class PollingStopped(Event):
    """The loop has stopped, or no task is declared."""


class EventDeliveryFailed(RepeatedFailure, level="WARNING"):
    """The receiver of events refused or did not answer; logged for the 1st, 2nd, 4th, … failure."""


class EventDeliveryResumed(Event, level="INFO"):
    """The receiver of events accepts them again."""

    failures: int


class EventDeadLettered(Event, level="ERROR"):
    """An event was refused for ``give_up_after``; it is kept, and later events are delivered."""

    event_id: str
    type: str
    about: str
    attempts: int
    error: str


class EventsDropped(Event, level="ERROR"):
    """More than ``most`` events were waiting; the oldest were deleted."""

    count: int
    most: int


class CheckInFailed(RepeatedFailure, level="WARNING"):
    """A monitor accepted no check-in; logged for the 1st, 2nd, 4th, … failure."""

    monitor: str


class NotificationFailed(RepeatedFailure, level="WARNING"):
    """A channel accepted no message; logged for the 1st, 2nd, 4th, … failure."""

    channel: str


_BASES = (Event, TaskEvent, RunEvent, OperatorEvent, RepeatedFailure)
ALL: tuple[type[Event], ...] = tuple(
    each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Event) and each not in _BASES
)
