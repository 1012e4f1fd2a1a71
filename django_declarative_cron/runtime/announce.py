"""What a scheduler says of its own life and polls (003 Lifecycle and Polling Events)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from ..core import events
from ..core.declarations.declaration import Declaration
from ..core.events import Event
from ..exceptions import DeclarativeCronError
from ..signals import is_heard, publish


def tell(kinds: Iterable[type[Event]], now: datetime, **values: Any) -> None:
    """Publish what happened to a scheduler."""
    publish(
        kind(at=now, **{f.name: values[f.name] for f in fields(kind) if f.name in values})
        for kind in kinds
    )


def size(registrations: object) -> int:
    """Count registrations that nobody has looked at yet."""
    return len(registrations) if isinstance(registrations, list | tuple) else 0


def reason(error: BaseException) -> str:
    """Word why ``initialize`` failed."""
    return error.message if isinstance(error, DeclarativeCronError) else type(error).__name__


def scheduled(now: datetime, declarations: Sequence[Declaration]) -> None:
    """Say of each task that it is in the active set."""
    if not is_heard(events.TaskScheduled):
        return
    publish(
        events.TaskScheduled(
            at=now,
            task_name=declaration.name,
            cron_expression=declaration.cron,
            retry_delay_ms=declaration.retry_delay_ms,
        )
        for declaration in declarations
    )


def poll_started(now: datetime, tasks: int) -> None:
    """Say that a tick looks at due tasks."""
    publish([events.PollStarted(at=now, poll_time=now, scheduled_task_count=tasks)])


def poll_completed(now: datetime, considered: int, started: int, duration: float) -> None:
    """Return what a tick did."""
    publish(
        [
            events.PollCompleted(
                at=now,
                poll_time=now,
                tasks_evaluated=considered,
                tasks_executed=started,
                duration=duration,
            )
        ]
    )
