"""One call of a callback: its surroundings, its time limit, its transaction, its result."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import inspect
import io
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.urls import set_urlconf
from django.utils import timezone, translation

from ..core.declarations.declaration import Declaration, Target
from ..store import results
from ..store.guard import Member
from ..store.results import Result
from . import connections, forking
from .clock import Clock
from .context import Run as Run
from .context import Tail, kept, running
from .lifecycle import inside
from .outcome import Ending, committed, failed, succeeded
from .tracing import traced_run

_LONGEST_CLEAN_UP = 5.0
"""Seconds for which the end of a coroutine waits for its connections to be closed."""


class RunCutShortError(RuntimeError):
    """Report that a run was asked to end, so that its writes are rolled back."""


def atomically(
    member: Member, clock: Clock, call: Callable[[], Any], success: Callable[[Any], Result]
) -> Result:
    """Call, and write the success in the transaction of the call.

    Raises:
        BaseException: the call failed, or its success could not be written with it; both are
            rolled back.
    """
    failed: list[BaseException] = []
    with results.transaction_of_run(member.using, failed):
        result = success(call())
        if not result.succeeded:
            raise RunCutShortError(result.error)
        results.record_with_work(member, result, clock.now())
    return committed(result, failed)


class NothingRanError(TypeError):
    """Report that a callback returned code that nothing has run."""


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed run, ready to be called.

    Args:
        id: of its row.
        run: the argument of a callback that takes ``run``.
        target: the callback and its arguments.
        done: takes the result, from any thread, exactly once.
        owner: the scheduler, which recognises calls of its own callbacks.
        admit: returns, right before the call, whether the run may still be called; it may
            query the database.
        declaration: of the task, where there is one.
        ending: requests the end of the run.
        tail: receives the log lines of the run.
        forget: drops the run, because another process calls and records it.
        member: the instance, where the writes and the success are one transaction.
        trace: headers of the span that started it.
    """

    id: int
    run: Run
    target: Target
    done: Callable[[Result], None] = lambda result: None
    owner: object = None
    admit: Callable[[int], bool] = lambda run: True
    forget: Callable[[int], None] = lambda run: None
    declaration: Declaration | None = None
    ending: Ending = field(default_factory=Ending)
    tail: Tail = field(default_factory=Tail)
    member: Member | None = None
    trace: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeout(self) -> float | None:
        """Return the time limit in seconds, ``None`` without one."""
        timeout = None if self.declaration is None else self.declaration.timeout
        return None if timeout is None else timeout.total_seconds()


def invoke(work: Work) -> Any:
    """Call a callback, with ``run`` where it takes that; an awaitable is not awaited.

    The arguments are copied, so the next run gets them as they were declared.
    """
    function, args = work.target.function, deepcopy(work.target.args)
    if takes_run(function):
        return function(*args, run=work.run)
    return function(*args)


def perform(work: Work, clock: Clock) -> Result:
    """Call a callback to its end in this thread, and return the result."""
    # In a copy, so that no context variable of the run stays in the thread.
    return contextvars.copy_context().run(_performed, work, clock)


def _performed(work: Work, clock: Clock) -> Result:
    def success(value: Any) -> Result:
        return succeeded(work, clock.now(), value)

    try:
        connections.refresh()
        with inside(work.owner), deadline(work), surrounded(work):
            return _called(work, clock, success)
    except BaseException as error:
        return failed(work, error, clock.now())


@contextmanager
def surrounded(work: Work) -> Iterator[None]:
    """Set the current run, keep its log lines, and reset language, zone, URLs and decimals."""
    translation.deactivate()
    timezone.deactivate()
    set_urlconf(None)
    decimal.setcontext(decimal.DefaultContext)
    with running(work.run), kept(work.tail.add), traced_run(work):
        yield


@contextmanager
def deadline(work: Work) -> Iterator[None]:
    """Ask the run to end when its time is over."""
    if work.timeout is None:
        yield
        return
    timer = threading.Timer(work.timeout, work.ending.ask, ("timed_out",))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _called(work: Work, clock: Clock, success: Callable[[Any], Result]) -> Result:
    """Call to the end; an error of the callback takes precedence over one of the clean-up."""
    try:
        if work.member is None:
            value = _returned(work)
        else:
            result = atomically(work.member, clock, lambda: _returned(work), success)
    except BaseException:
        with suppress(Exception):
            connections.clean_up()
        raise
    if work.member is None:
        connections.clean_up()
        return success(value)
    # The writes of the run are committed, so it cannot fail any more.
    with suppress(Exception):
        connections.clean_up()
    return result


def _returned(work: Work) -> Any:
    with forking.ending_children():
        value = invoke(work)
    return asyncio.run(finished(value)) if inspect.isawaitable(value) else _consumed(value)


async def finished(value: Awaitable[Any]) -> Any:
    """Await any awaitable, then clean up after it.

    Its sync parts have a thread of their own, and so database connections of their own: a
    tenant that is left on them reaches no other coroutine.
    """
    own = ThreadSensitiveContext()
    # Leaving it would block the event loop until the thread has ended.
    await own.__aenter__()  # type: ignore[no-untyped-call]
    try:
        with forking.ending_children():
            returned = await value
        returned = _consumed(returned)
    except BaseException:
        with suppress(Exception):
            await _clean_up(own)
        raise
    await _clean_up(own)
    return returned


async def _clean_up(own: ThreadSensitiveContext) -> None:
    executor = SyncToAsync.context_to_thread_executor.get(own)
    if executor is None:
        return  # Without a thread there is no connection.
    try:
        # Code that the run did not await may hang in that thread.
        with suppress(TimeoutError):
            await asyncio.wait_for(sync_to_async(connections.clean_up)(), _LONGEST_CLEAN_UP)
    finally:
        executor.shutdown(wait=False)


def _consumed(value: Any) -> Any:
    """Return a value; raise for generators and coroutines, which have not run any code yet."""
    # A context manager made of a generator keeps it as `gen`.
    kept = getattr(value, "gen", None)
    lazy = kept if inspect.isgenerator(kept) or inspect.isasyncgen(kept) else value
    if isinstance(lazy, io.IOBase) or not isinstance(lazy, Iterator | AsyncIterator | Awaitable):
        return value
    if inspect.isgenerator(lazy) or inspect.iscoroutine(lazy):
        lazy.close()
    raise NothingRanError(
        f"the callback returned a {type(value).__name__}, which nothing iterates over or awaits: "
        "its code has not run"
    )


def takes_run(function: Callable[..., Any]) -> bool:
    """Return whether a callback has a parameter ``run``."""
    return _takes_run(function) if isinstance(function, Hashable) else _asks_for_run(function)


def _asks_for_run(function: Callable[..., Any]) -> bool:
    try:
        return "run" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


_takes_run = lru_cache(maxsize=4096)(_asks_for_run)
