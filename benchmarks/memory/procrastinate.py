"""procrastinate: a worker with its periodic deferrer."""

from __future__ import annotations

import asyncio
import threading

from procrastinate import App, PsycopgConnector

from ..harness.project import dsn
from .idling import NEVER, Idling


class Case(Idling):
    """It keeps no rows for what is not due."""

    def fill(self) -> None:
        """Make its schema."""
        asyncio.run(self._make())

    def begin(self) -> None:
        """Register the tasks, and run a worker in a thread."""
        self._app = _app()
        task = self._app.task(name="nothing")(_nothing)
        for name in self.names:
            self._app.periodic(cron=NEVER, periodic_id=name)(task)
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the worker."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _make(self) -> None:
        async with _app().open_async() as app:
            await app.schema_manager.apply_schema_async()

    def _run(self) -> None:
        self._loop.run_until_complete(self._work())

    async def _work(self) -> None:
        async with self._app.open_async():
            worker = asyncio.ensure_future(
                self._app.run_worker_async(install_signal_handlers=False)
            )
            await self._ended.wait()
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)


def _app() -> App:
    return App(connector=PsycopgConnector(kwargs=dsn()))


async def _nothing(timestamp: int) -> None:
    """Do nothing."""
