"""procrastinate: a worker with its periodic deferrer, ten jobs at a time."""

from __future__ import annotations

import asyncio
import threading
import time

from procrastinate import App, PsycopgConnector

from ..harness.project import dsn
from .waiting import Waiting


class Case(Waiting):
    """The job is called once it came back from the database."""

    def prepare(self, size: int) -> None:
        """Make its schema, and register the tasks.

        Args:
            size: how many.
        """
        super().prepare(size)
        self._calls = list[float]()
        self._app = App(connector=PsycopgConnector(kwargs=dsn()))
        task = self._app.task(name="note")(self._note)
        for position, name in enumerate(self.names):
            self._app.periodic(cron=self.cron(position), periodic_id=name)(task)
        asyncio.run(self._make())

    def begin(self) -> None:
        """Run a worker in a thread."""
        self._loop, self._ended = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def called(self, since: float) -> list[float]:
        """Give the calls.

        Args:
            since: the minute.
        """
        return [each for each in self._calls if each >= since]

    def end(self) -> None:
        """End the worker."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._calls.clear()

    async def _make(self) -> None:
        async with self._app.open_async():
            await self._app.schema_manager.apply_schema_async()

    def _run(self) -> None:
        self._loop.run_until_complete(self._work())

    async def _work(self) -> None:
        async with self._app.open_async():
            work = self._app.run_worker_async(concurrency=10, install_signal_handlers=False)
            worker = asyncio.ensure_future(work)
            await self._ended.wait()
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)

    async def _note(self, timestamp: int) -> None:
        self._calls.append(time.time())
