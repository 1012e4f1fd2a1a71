"""The current run: for user code, log formatters, and its log."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..core.declarations.declaration import Declaration
from ..core.declarations.values import in_short
from ..core.events import TaskRunStarted
from ..core.tracebacks import traceback_of
from ..exceptions import shortened

LENGTH = 16 * 1024
"""Characters of log lines that are kept of a run."""

LINE_LENGTH = 4 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """The argument of a callback that takes ``run``.

    Args:
        task_name: of the task.
        scheduled_for: the occurrence it runs for, aware UTC; the same in its retries.
        started_at: when this attempt was started, aware UTC.
        attempt: from 1.
        reason: ``due``, ``boot``, ``retry``, ``orphaned`` or ``manual``.
        timezone: IANA name of the task's zone.
        stopping: set when the scheduler begins to stop; long work should come to an end.
        cancelled: set when this run is to end: its time is over, or it was cancelled.
        id: of its row.
        meta: ``options["meta"]`` of its task, with ``cron_name`` and ``cron_triggered_at``
            (CRON-20).
        max_attempts: the most attempts, ``None`` without a limit.
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
        """Return the argument for a committed start.

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
    """Return the current run, or ``None`` outside of a callback.

    It is known in all functions and coroutines that the callback calls, and in
    ``asyncio.to_thread`` and ``sync_to_async``, but not in threads that the callback starts.
    """
    return _run.get()


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Make a run the current one within a block.

    Args:
        run: the run.
    """
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


class NameRun(logging.Filter):
    """Add ``scheduled_task`` and ``scheduled_run`` to log records, both empty outside of runs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the current run to a record, and accept it.

        Args:
            record: the log record.
        """
        run = current_run()
        record.scheduled_task = "" if run is None else run.task_name
        record.scheduled_run = "" if run is None else run.id
        return True


# --- the end of its log ---

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")


class Tail:
    """The last lines of a long text.

    Args:
        length: the most characters to keep.
    """

    def __init__(self, length: int = LENGTH) -> None:
        self._length = length
        self._lines: deque[str] = deque()
        self._kept = 0
        self._lock = threading.Lock()
        self._is_cut = False

    def add(self, line: str) -> None:
        """Add a piece of text, and drop the oldest pieces."""
        with self._lock:
            self._lines.append(line[-self._length :])
            self._kept += len(self._lines[-1])
            while self._kept > self._length:
                self._kept -= len(self._lines.popleft())
                self._is_cut = True

    def __str__(self) -> str:
        with self._lock:
            return ("…\n" if self._is_cut else "") + "".join(self._lines)


class _Taking:
    """Take the records of one run."""

    def __init__(self, take: Callable[[str], object]) -> None:
        self.take = take
        self.newest: logging.LogRecord | None = None


_taking: ContextVar[_Taking | None] = ContextVar("declarative_cron_log", default=None)
_lock = threading.Lock()


@contextmanager
def kept(take: Callable[[str], object]) -> Iterator[None]:
    """Pass on every record that is logged within a block, at INFO and above, as a line."""
    _wrap_factory()
    token = _taking.set(_Taking(take))
    try:
        yield
    finally:
        _taking.reset(token)


def _wrap_factory() -> None:
    """Wrap the record factory, unless the wrapper is the outermost one already.

    Records are taken as they are made, so neither levels nor handlers of the project change:
    records that its configuration drops are not kept either.
    """
    with _lock:
        inner = logging.getLogRecordFactory()
        if getattr(inner, "_takes_tail", False):
            return

        def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = inner(*args, **kwargs)
            taking = _taking.get()
            if taking is not None and record.levelno >= logging.INFO:
                _take(taking, record)
            return record

        make._takes_tail = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(make)


if hasattr(os, "register_at_fork"):
    # The lock of the lines may be held by a thread that the child does not have.
    os.register_at_fork(after_in_child=lambda: _taking.set(None))


def _take(taking: _Taking, record: logging.LogRecord) -> None:
    # Two wrappers may be in use, with a factory of the project between.
    if record is taking.newest:
        return
    taking.newest = record
    try:
        line = _FORMAT.format(_bounded(record))
    except Exception:
        # ``logging`` itself reports arguments that do not fit.
        line = f"{record.levelname} {record.name}: {in_short(record.msg)}"
    taking.take(line[:LINE_LENGTH] + "\n")


def _bounded(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy with its text cut before it is formatted."""
    short = copy(record)
    short.msg, short.args = shortened(record.getMessage(), LINE_LENGTH), None
    if record.exc_info and record.exc_info[1] is not None:
        short.exc_text = traceback_of(record.exc_info[1], LINE_LENGTH)
    return short
