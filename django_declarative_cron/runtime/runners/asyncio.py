"""Calls of asynchronous callbacks, in one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from ...core.declarations.declaration import Declaration
from ..clock import Clock
from ..lifecycle import inside
from ..outcome import failed, succeeded
from ..work import Work, finished, invoke, surrounded
from . import Load


class CoroutineRunner:
    """Run ``async def`` callbacks concurrently on one loop, started at the first of them.

    Args:
        clock: dates the ends of runs.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._busy: dict[int, asyncio.Task[None] | None] = {}

    def prepare(self, declarations: Iterable[Declaration]) -> None:
        """Do nothing: the loop is started when it is needed."""

    def submit(self, work: Work) -> None:
        if not work.admit(work.id):
            return
        self._busy[work.id] = None
        try:
            loop = self._running_loop()
            loop.call_soon_threadsafe(self._begin, loop, work)
        except BaseException:
            del self._busy[work.id]
            raise

    def look(self) -> None:
        """Do nothing: a coroutine waits for no thread."""

    @property
    def load(self) -> Load:
        return Load("coroutine", 0, len(self._busy), 0)

    def close(self) -> None:
        """End the loop and its thread, once every run has ended."""
        with self._lock:
            loop, self._loop = self._loop, None
            self._closing.set()
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._closing = threading.Event()
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_serve,
                    args=(self._loop, self._closing),
                    name="declarative-cron-asyncio",
                    daemon=True,
                ).start()
            return self._loop

    def _begin(self, loop: asyncio.AbstractEventLoop, work: Work) -> None:
        # The loop holds its tasks weakly, so keep them here.
        task = loop.create_task(_perform(work, self._clock))
        self._busy[work.id] = task
        task.add_done_callback(partial(self._over, work))

    def _over(self, work: Work, task: asyncio.Task[None]) -> None:
        del self._busy[work.id]
        if task.cancelled():
            # Code of another run cancelled it before it began.
            work.done(failed(work, asyncio.CancelledError(), self._clock.now()))


async def _perform(work: Work, clock: Clock) -> None:
    try:
        with inside(work.owner), surrounded(work), _cancelled_when_asked(work):
            value = await finished(invoke(work))
        result = succeeded(work, clock.now(), value)
    except BaseException as error:
        result = failed(work, error, clock.now())
    work.done(result)


@contextmanager
def _cancelled_when_asked(work: Work) -> Iterator[None]:
    """Cancel the task of this coroutine when its run is asked to end."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    is_over = False

    def cancel() -> None:
        if task is not None and not is_over:
            task.cancel()

    def ask() -> None:
        # After the end of the run, the loop may be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(cancel)

    timer = None
    if work.timeout is not None:
        timer = loop.call_later(work.timeout, work.ending.ask, "timed_out")
    work.ending.on_ask(ask)
    try:
        yield
    finally:
        is_over = True
        if timer is not None:
            timer.cancel()


def _serve(loop: asyncio.AbstractEventLoop, closing: threading.Event) -> None:
    """Run the loop until it is closed, also after a callback has stopped or broken it."""
    asyncio.set_event_loop(loop)
    try:
        while not closing.is_set():
            with suppress(BaseException):
                loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
