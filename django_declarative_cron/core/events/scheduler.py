"""A scheduler's life, its lead and its polls (003 Lifecycle and Polling Events)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .base import Event


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
class ClockStepped(Event, level="WARNING"):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryFailed(Event, level="WARNING"):
    """The receiver of events does not take them, for the so manieth time; it is tried again."""

    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeliveryResumed(Event, level="INFO"):
    """The receiver of events takes them again."""

    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDeadLettered(Event, level="ERROR"):
    """One event was refused for too long; it is kept, and those behind it go on."""

    event_id: str
    type: str
    about: str
    attempts: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDropped(Event, level="ERROR"):
    """Too many events were waiting; the oldest are lost."""

    count: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInFailed(Event, level="WARNING"):
    """A monitor does not take check-ins, for the so manieth time; that one is lost."""

    monitor: str
    error: str
    failures: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationFailed(Event, level="WARNING"):
    """A channel does not take notifications, for the so manieth time; that one is lost."""

    channel: str
    error: str
    failures: int = 1
