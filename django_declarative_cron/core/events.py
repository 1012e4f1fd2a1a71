"""The alphabet: every event, with its level and its fields.

Signals, log lines, admin history and traces are renderings of these. Names are
those of the log event contract (003 Logging & Event Contract) and of the state
models of 001; a field in snake case here is the contract's field in camel case.

``at`` is the instant an event happened. Fields after it are the contract's
required ones first, then ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Literal

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at an instant."""

    level: ClassVar[Level] = "DEBUG"
    at: datetime

    def __init_subclass__(cls, level: Level | None = None) -> None:
        # ``slots`` makes each class a second time, without the keyword.
        if level is not None:
            cls.level = level


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent(Event):
    """Something that happened to one task."""

    task_name: str


# --- scheduler lifecycle and polling ------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationStarted(Event):
    """``initialize`` was entered."""

    total_registrations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationCompleted(Event):
    """``initialize`` succeeded; skipped ones needed no write."""

    total_registrations: int
    scheduled_count: int
    skipped_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationFailed(Event, level="ERROR"):
    """``initialize`` raised; everything stands as before."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerReinitializationStarted(Event):
    """``initialize`` was entered while running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerReinitializationCompleted(Event):
    """A repeated ``initialize`` returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStopRequested(Event, level="INFO"):
    """``stop`` was entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStopped(Event, level="INFO"):
    """Every run has ended and nothing polls any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSuperseded(Event, level="WARNING"):
    """Another scheduler made a different registration set the active one."""

    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipGained(Event, level="INFO"):
    """This instance evaluates from now on, under a new term."""

    term: int
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipLost(Event, level="WARNING"):
    """This instance evaluates no more."""

    term: int
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMoved(Event, level="WARNING"):
    """The clock on the wall leapt against the monotonic one."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistenceFailed(Event, level="ERROR"):
    """The database refused, for the so manieth time; the loop tries again."""

    doing: str
    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PollStarted(Event):
    """A tick that looks at due tasks began."""

    poll_time: datetime
    scheduled_task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PollCompleted(Event):
    """That tick ended; ``duration`` in seconds."""

    poll_time: datetime
    tasks_evaluated: int
    tasks_executed: int
    duration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStarted(Event):
    """The loop runs: at least one task is scheduled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStopRequested(Event):
    """The loop was asked to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStopped(Event):
    """The loop has ended."""


# --- state management and runs ------------------------------------------------


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
class TaskSkipped(TaskEvent):
    """Occurrences did not run; ``outcome`` tells skipped from missed."""

    reason: str
    scheduled_time: datetime
    count: int = 1
    outcome: Literal["skipped", "missed"] = "skipped"
    scheduled_from: datetime | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMarkReset(TaskEvent, level="WARNING"):
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
class TaskRunStarted(TaskEvent, level="INFO"):
    """A run was claimed; its callback is called next."""

    scheduled_time: datetime
    actual_time: datetime
    is_retry: bool = False
    reason: str = "due"
    attempt: int = 1
    discharged_at: datetime | None = None
    answers_request: bool = False
    run_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunCompleted(TaskEvent, level="INFO"):
    """A run succeeded; ``duration`` in seconds.

    ``history_only``: the task was overridden or removed meanwhile, so the end
    is kept with the run and changes nothing in the task's state.
    """

    duration: float
    success: Literal[True] = True
    history_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunFailed(TaskEvent, level="WARNING"):
    """A run failed; ``duration`` in seconds."""

    duration: float
    success: Literal[False] = False
    error: str = ""
    next_retry_at: datetime | None = None
    history_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRunInterrupted(TaskEvent, level="INFO"):
    """A run ended with the process it ran in."""

    scheduled_time: datetime
    old_instance: str
    new_instance: str
    restarts: bool = True


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
class TaskRunLate(TaskEvent, level="WARNING"):
    """A run came to an end after it had been given up; its result was not taken."""

    run: int
    success: bool


# --- people's acts ---------------------------------------------------------------


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


ALL: tuple[type[Event], ...] = tuple(
    value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Event) and value not in (Event, TaskEvent)
)
