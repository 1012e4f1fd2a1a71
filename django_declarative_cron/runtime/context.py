"""The run whose callback is being called here, for user code and for log formatters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..core.declarations.declaration import Declaration
from ..core.events import TaskRunStarted


@dataclass(frozen=True, slots=True)
class Run:
    """What a callback that takes ``run`` is told.

    Args:
        task_name: of the task.
        scheduled_for: the occurrence it runs for, aware UTC; the same in its retries.
        started_at: when this attempt was started, aware UTC.
        attempt: from 1.
        reason: ``due``, ``boot``, ``retry``, ``orphaned`` or ``manual``.
        timezone: IANA name of the task's zone.
        stopping: set when the scheduler begins to stop; long work should come to an end.
        cancelled: set when this run is to end: its time is over, or somebody cancelled it.
        id: of its row.
        meta: what ``options["meta"]`` of its task says, with ``cron_name`` and
            ``cron_triggered_at`` (CRON-20).
        max_attempts: how many attempts there may be, ``None`` where nothing limits them.
    """

    task_name: str
    scheduled_for: datetime
    started_at: datetime
    attempt: int
    reason: str
    timezone: str
    stopping: threading.Event = field(compare=False, repr=False)
    cancelled: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)
    id: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)
    max_attempts: int | None = None

    @classmethod
    def of(
        cls,
        started: TaskRunStarted,
        declaration: Declaration,
        stopping: threading.Event,
        cancelled: threading.Event | None = None,
        row: int = 0,
    ) -> Run:
        """Tell a callback about a committed start.

        Args:
            started: the event of the start.
            declaration: of the task.
            stopping: set when the scheduler begins to stop.
            cancelled: set when the run is to end.
            row: id of its row.
        """
        return cls(
            task_name=declaration.name,
            scheduled_for=started.scheduled_time,
            started_at=started.actual_time,
            attempt=started.attempt,
            reason=started.reason,
            timezone=declaration.timezone,
            stopping=stopping,
            cancelled=cancelled or threading.Event(),
            id=row,
            meta=declaration.meta_of(started.scheduled_time),
            max_attempts=declaration.retry.max_attempts,
        )


_run: ContextVar[Run | None] = ContextVar("declarative_cron_run", default=None)


def current_run() -> Run | None:
    """Give the run whose callback is being called here; ``None`` outside of one.

    It is known in what the callback calls, in its coroutines, and in ``asyncio.to_thread``
    and ``sync_to_async``; a thread that the callback starts by hand does not know it.
    """
    return _run.get()


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Let a run be the current one.

    Args:
        run: whose callback is called meanwhile.
    """
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


class NameRun(logging.Filter):
    """Give log records ``scheduled_task`` and ``scheduled_run``: both empty outside of runs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Name the current run in a record, and let it through.

        Args:
            record: as it is to be logged.
        """
        run = current_run()
        record.scheduled_task = "" if run is None else run.task_name
        record.scheduled_run = "" if run is None else run.id
        return True
