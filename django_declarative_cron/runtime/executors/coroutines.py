"""Asynchronous callbacks: one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ..clock import Clock
from ..inside import inside
from ..work import Work, failed, finished, invoke, succeeded


class CoroutineExecutor:
    """Run ``async def`` callbacks concurrently on one loop, started at the first of them.

    Args:
        clock: dates the ends of runs.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def submit(self, work: Work) -> None:
        """Begin one run.

        Args:
            work: a claimed run.
        """
        asyncio.run_coroutine_threadsafe(self._run(work), self._running_loop())

    def close(self) -> None:
        """Let the loop and its thread end; to be called when every run has ended."""
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

    def _run(self, work: Work) -> Coroutine[Any, Any, None]:
        return _perform(work, self._clock)


async def _perform(work: Work, clock: Clock) -> None:
    began = clock.monotonic()
    try:
        with inside(work.owner):
            await finished(invoke(work))
        result = succeeded(work, clock.now(), clock.monotonic() - began)
    except BaseException as error:
        result = failed(work, error, clock.now(), clock.monotonic() - began)
    work.done(result)


def _serve(loop: asyncio.AbstractEventLoop, closing: threading.Event) -> None:
    """Run the loop until it is closed; a callback that stops it, or breaks it, ends only itself."""
    asyncio.set_event_loop(loop)
    try:
        while not closing.is_set():
            with suppress(BaseException):
                loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
