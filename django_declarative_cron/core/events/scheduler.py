"""A scheduler's life, its lead and its polls (003 Lifecycle and Polling Events)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationStarted(Event):
    """``initialize`` was called."""

    total_registrations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationCompleted(Event):
    """``initialize`` succeeded; skipped tasks needed no write."""

    total_registrations: int
    scheduled_count: int
    skipped_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInitializationFailed(Event, level="ERROR"):
    """``initialize`` raised an exception; nothing has changed."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerReinitializationStarted(Event):
    """``initialize`` was called while the scheduler was running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerReinitializationCompleted(Event):
    """A repeated ``initialize`` returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStopRequested(Event, level="INFO"):
    """``stop`` was called; nothing starts any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerStopped(Event, level="INFO"):
    """Every run has ended, and the scheduler has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSuperseded(Event, level="WARNING"):
    """Another scheduler made a different registration set the active one."""

    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipGained(Event, level="INFO"):
    """This instance became the leader, with a new term."""

    term: int
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipLost(Event, level="WARNING"):
    """This instance is no longer the leader."""

    term: int
    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStepped(Event, level="WARNING"):
    """The system clock was changed by two seconds or more."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistenceFailed(Event, level="ERROR"):
    """A database operation failed and is repeated; logged after 1, 2, 4, … 60 s of an outage."""

    doing: str
    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PollStarted(Event):
    """A tick that evaluates tasks began."""

    poll_time: datetime
    scheduled_task_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PollCompleted(Event):
    """A tick that evaluates tasks ended; ``duration`` in seconds."""

    poll_time: datetime
    tasks_evaluated: int
    tasks_executed: int
    duration: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStarted(Event):
    """The loop started, because at least one task is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStopRequested(Event):
    """The loop was asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingStopped(Event):
    """The loop has stopped, or no task is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryFailed(Event, level="WARNING"):
    """The receiver of events refused or did not answer; logged for the 1st, 2nd, 4th, … failure."""

    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryResumed(Event, level="INFO"):
    """The receiver of events accepts them again."""

    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeadLettered(Event, level="ERROR"):
    """An event was refused for ``give_up_after``; it is kept, and later events are delivered."""

    event_id: str
    type: str
    about: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDropped(Event, level="ERROR"):
    """More than ``most`` events were waiting; the oldest were deleted."""

    count: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInFailed(Event, level="WARNING"):
    """A monitor accepted no check-in; logged for the 1st, 2nd, 4th, … failure."""

    monitor: str
    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFailed(Event, level="WARNING"):
    """A channel accepted no message; logged for the 1st, 2nd, 4th, … failure."""

    channel: str
    error: str
    failures: int = 1
