"""The alphabet: every event, with its level and its fields.

Signals, log lines, admin history and traces are renderings of these. Names are
those of the log event contract (003 Logging & Event Contract) and of the state
models of 001; a field in snake case here is the contract's field in camel case.

``at`` is the instant an event happened. Fields after it are the contract's
required ones first, then ours.
"""

from __future__ import annotations

from .base import (
    Event,
    Facts,
    Level,
    TaskEvent,
)
from .runs import (
    TaskBacklogGrowing,
    TaskCommitHookFailed,
    TaskRepeatedlyInterrupted,
    TaskRetriesExhausted,
    TaskRetryPreempted,
    TaskRetryStarted,
    TaskRunCancelled,
    TaskRunCancelRequested,
    TaskRunCompleted,
    TaskRunFailed,
    TaskRunFetched,
    TaskRunInterrupted,
    TaskRunResultDiscarded,
    TaskRunStarted,
    TaskRunWaiting,
    TaskSkipped,
)
from .scheduler import (
    CheckInFailed,
    ClockStepped,
    EventDeadLettered,
    EventDeliveryFailed,
    EventDeliveryResumed,
    EventsDropped,
    LeadershipGained,
    LeadershipLost,
    NotificationFailed,
    PersistenceFailed,
    PollCompleted,
    PollingStarted,
    PollingStopped,
    PollingStopRequested,
    PollStarted,
    SchedulerInitializationCompleted,
    SchedulerInitializationFailed,
    SchedulerInitializationStarted,
    SchedulerReinitializationCompleted,
    SchedulerReinitializationStarted,
    SchedulerStopped,
    SchedulerStopRequested,
    SchedulerSuperseded,
)
from .tasks import (
    TaskAdded,
    TaskBroken,
    TaskHighWaterMarkReset,
    TaskOrphaned,
    TaskOverridden,
    TaskPaused,
    TaskPausedByFailures,
    TaskPreserved,
    TaskRescheduled,
    TaskResumed,
    TaskRetryCleared,
    TaskRunRequested,
    TaskScheduled,
    TaskSkipRequested,
    TaskStateDamaged,
)

__all__ = [
    "ALL",
    "CheckInFailed",
    "ClockStepped",
    "Event",
    "EventDeadLettered",
    "EventDeliveryFailed",
    "EventDeliveryResumed",
    "EventsDropped",
    "Facts",
    "LeadershipGained",
    "LeadershipLost",
    "Level",
    "NotificationFailed",
    "PersistenceFailed",
    "PollCompleted",
    "PollStarted",
    "PollingStarted",
    "PollingStopRequested",
    "PollingStopped",
    "SchedulerInitializationCompleted",
    "SchedulerInitializationFailed",
    "SchedulerInitializationStarted",
    "SchedulerReinitializationCompleted",
    "SchedulerReinitializationStarted",
    "SchedulerStopRequested",
    "SchedulerStopped",
    "SchedulerSuperseded",
    "TaskAdded",
    "TaskBacklogGrowing",
    "TaskBroken",
    "TaskCommitHookFailed",
    "TaskEvent",
    "TaskHighWaterMarkReset",
    "TaskOrphaned",
    "TaskOverridden",
    "TaskPaused",
    "TaskPausedByFailures",
    "TaskPreserved",
    "TaskRepeatedlyInterrupted",
    "TaskRescheduled",
    "TaskResumed",
    "TaskRetriesExhausted",
    "TaskRetryCleared",
    "TaskRetryPreempted",
    "TaskRetryStarted",
    "TaskRunCancelRequested",
    "TaskRunCancelled",
    "TaskRunCompleted",
    "TaskRunFailed",
    "TaskRunFetched",
    "TaskRunInterrupted",
    "TaskRunRequested",
    "TaskRunResultDiscarded",
    "TaskRunStarted",
    "TaskRunWaiting",
    "TaskScheduled",
    "TaskSkipRequested",
    "TaskSkipped",
    "TaskStateDamaged",
]

ALL: tuple[type[Event], ...] = tuple(
    value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Event) and value not in (Event, TaskEvent)
)
