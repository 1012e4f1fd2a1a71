"""What a scheduler says of its own initialisation (003 Scheduler Lifecycle Events)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..core import events
from ..core.declaration import Declaration
from ..exceptions import DeclarativeCronError
from ..signals import publish


def started(now: datetime, registrations: object, again: bool) -> None:
    """Say that ``initialize`` was entered.

    Args:
        now: the instant.
        registrations: as given, not yet looked at.
        again: whether the scheduler runs already.
    """
    if again:
        publish([events.SchedulerReinitializationStarted(at=now)])
        return
    total = len(registrations) if isinstance(registrations, list | tuple) else 0
    publish([events.SchedulerInitializationStarted(at=now, total_registrations=total)])


def failed(now: datetime, error: BaseException) -> None:
    """Say that ``initialize`` raised.

    Args:
        now: the instant.
        error: what it raised.
    """
    text = error.message if isinstance(error, DeclarativeCronError) else repr(error)
    publish([events.SchedulerInitializationFailed(at=now, error=text)])


def completed(now: datetime, total: int, scheduled_count: int, again: bool) -> None:
    """Say that ``initialize`` succeeded.

    Args:
        now: the instant.
        total: number of registrations.
        scheduled_count: how many of them needed a write.
        again: whether the scheduler ran already.
    """
    if again:
        publish([events.SchedulerReinitializationCompleted(at=now)])
        return
    publish(
        [
            events.SchedulerInitializationCompleted(
                at=now,
                total_registrations=total,
                scheduled_count=scheduled_count,
                skipped_count=total - scheduled_count,
            )
        ]
    )


def scheduled(now: datetime, declarations: Sequence[Declaration]) -> None:
    """Say of each task that it is in the active set.

    Args:
        now: the instant.
        declarations: the set.
    """
    publish(
        events.TaskScheduled(
            at=now,
            task_name=declaration.name,
            cron_expression=declaration.cron,
            retry_delay_ms=declaration.retry_delay_ms,
        )
        for declaration in declarations
    )
