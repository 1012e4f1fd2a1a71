"""One run as the callback sees it, and how a callback is called."""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from asgiref.sync import sync_to_async

from ..core.declaration import Declaration, Target
from ..core.events import TaskRunStarted
from ..core.retry_policy import names_of
from ..store.results import Result
from . import connections
from .clock import Clock
from .inside import inside

ERROR_LENGTH = 2_000
TRACEBACK_LENGTH = 64 * 1024


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
    """

    task_name: str
    scheduled_for: datetime
    started_at: datetime
    attempt: int
    reason: str
    timezone: str
    stopping: threading.Event = field(compare=False, repr=False)

    @classmethod
    def of(
        cls, started: TaskRunStarted, declaration: Declaration, stopping: threading.Event
    ) -> Run:
        """Tell a callback about a committed start.

        Args:
            started: the event of the start.
            declaration: of the task.
            stopping: set when the scheduler begins to stop.
        """
        return cls(
            task_name=declaration.name,
            scheduled_for=started.scheduled_time,
            started_at=started.actual_time,
            attempt=started.attempt,
            reason=started.reason,
            timezone=declaration.timezone,
            stopping=stopping,
        )


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed run, ready to be called.

    Args:
        id: of its row.
        run: what the callback is told.
        target: what is called.
        done: takes the result, from any thread, exactly once.
        owner: the scheduler whose run this is, so that it knows its callbacks' calls.
        admit: tells, right before the call, whether the run is still to be called; it may
            ask the database.
    """

    id: int
    run: Run
    target: Target
    done: Callable[[Result], None]
    owner: object = None
    admit: Callable[[int], bool] = lambda run: True


def invoke(work: Work) -> Any:
    """Call a callback, with ``run`` where it takes that.

    Args:
        work: the claimed run.

    Returns:
        what it returned; an awaitable is not yet awaited.
    """
    function = work.target.function
    if takes_run(function):
        return function(*work.target.args, run=work.run)
    return function(*work.target.args)


def perform(work: Work, clock: Clock) -> Result:
    """Call a callback to its end in this thread, and say how it ended.

    Args:
        work: the claimed run.
        clock: for the end's instant and the duration.
    """
    began = clock.monotonic()
    try:
        connections.refresh()
        with inside(work.owner):
            _call(work)
    except BaseException as error:
        return failed(work, error, clock.now(), clock.monotonic() - began)
    return succeeded(work, clock.now(), clock.monotonic() - began)


def _call(work: Work) -> None:
    """Call to the end; an error of the callback hides one of the cleaning up."""
    try:
        value = invoke(work)
        if inspect.isawaitable(value):
            asyncio.run(finished(value))
    except BaseException:
        with suppress(Exception):
            connections.clean_up()
        raise
    connections.clean_up()


async def finished(value: Awaitable[Any]) -> None:
    """Await any awaitable, then clean up after it.

    The ORM's connections of a coroutine live in the thread that runs its sync parts.

    Args:
        value: what a callback returned.
    """
    try:
        await value
    except BaseException:
        with suppress(Exception):
            await sync_to_async(connections.clean_up)()
        raise
    await sync_to_async(connections.clean_up)()


def succeeded(work: Work, at: datetime, duration: float) -> Result:
    """Give the result of a run that returned.

    Args:
        work: the run.
        at: its end.
        duration: in seconds.
    """
    return Result(work.id, work.run.task_name, at, succeeded=True, duration=duration)


def failed(work: Work, error: BaseException, at: datetime, duration: float) -> Result:
    """Give the result of a run that raised.

    Args:
        work: the run.
        error: what it raised.
        at: its end.
        duration: in seconds.
    """
    return Result(
        work.id,
        work.run.task_name,
        at,
        succeeded=False,
        error=_storable(_one_line(error), ERROR_LENGTH),
        traceback=_storable(_traceback(error), TRACEBACK_LENGTH),
        duration=duration,
        errors=names_of(type(error)),
    )


def takes_run(function: Callable[..., Any]) -> bool:
    """Tell whether a callback wants to be told about its run.

    Args:
        function: any callable.
    """
    return _takes_run(function) if isinstance(function, Hashable) else _asks_for_run(function)


def _asks_for_run(function: Callable[..., Any]) -> bool:
    try:
        return "run" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


_takes_run = lru_cache(maxsize=4096)(_asks_for_run)


def is_async(function: Callable[..., Any]) -> bool:
    """Tell whether calling a callback gives a coroutine.

    Args:
        function: any callable.
    """
    call = getattr(function, "__call__", None)  # noqa: B004 - its function is asked, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _one_line(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:
        text = "(its text cannot be read)"
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _traceback(error: BaseException) -> str:
    """Format an exception without the frames that only called the callback."""
    own = error.__traceback__
    while own is not None and own.tb_frame.f_globals.get("__name__") == __name__:
        own = own.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, own))
    except BaseException:
        return f"{type(error).__name__} (its traceback cannot be read)"


def _storable(text: str, length: int) -> str:
    """Cut a text, keeping its end, and escape what a database refuses."""
    clean = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return clean if len(clean) <= length else "…" + clean[-length:]
