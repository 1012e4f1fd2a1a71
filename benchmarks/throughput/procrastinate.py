"""procrastinate: one worker, ten jobs at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector

from ..harness.project import dsn
from .running import Running


class Case(Running):
    """Its worker ends when nothing waits any more."""

    def prepare(self, size: int) -> None:
        """Make its schema.

        Args:
            size: the number of jobs.
        """
        super().prepare(size)
        self._app = App(connector=PsycopgConnector(kwargs=dsn()))
        self._task = self._app.task(name="nothing")(_nothing)
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        self._in_app(self._app.schema_manager.apply_schema_async())

    def queue(self) -> None:
        """Let jobs wait."""
        self._connection.execute("TRUNCATE procrastinate_jobs CASCADE")
        self._in_app(self._task.batch_defer_async(*[{} for _ in range(self.size)]))

    def run(self) -> float:
        """Run a worker."""
        began = time.perf_counter()
        self._in_app(
            self._app.run_worker_async(
                wait=False, concurrency=10, install_signal_handlers=False, listen_notify=False
            )
        )
        return time.perf_counter() - began

    def recorded(self) -> int:
        """Count the succeeded jobs."""
        counted = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
        return int(self._connection.execute(counted).fetchall()[0][0])

    def _in_app(self, work: Coroutine[Any, Any, Any]) -> None:
        async def opened() -> None:
            async with self._app.open_async():
                await work

        asyncio.run(opened())


async def _nothing() -> None:
    """Do nothing."""
