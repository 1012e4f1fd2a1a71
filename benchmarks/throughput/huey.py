"""huey with SQLite: a consumer with two threads, which stores every result."""

from __future__ import annotations

import os
import time
from pathlib import Path

from huey import SqliteHuey

from .running import Running, until


class Case(Running):
    """Its consumer runs in this process."""

    def prepare(self, size: int) -> None:
        """Make its file.

        Args:
            size: the number of tasks.
        """
        super().prepare(size)
        path = Path(os.environ["BENCHMARK_FOLDER"]) / "huey.sqlite3"
        self._huey = SqliteHuey(filename=str(path), store_none=True)
        self._task = self._huey.task()(_nothing)

    def queue(self) -> None:
        """Let tasks wait."""
        self._huey.storage.flush_all()
        for _ in range(self.size):
            self._task()

    def run(self) -> float:
        """Run a consumer until every result is there."""
        consumer = self._huey.create_consumer(workers=2)
        began = time.perf_counter()
        consumer.start()
        until(lambda: self.recorded() >= self.size)
        seconds = time.perf_counter() - began
        consumer.stop(graceful=True)
        return seconds

    def recorded(self) -> int:
        """Count the results."""
        return int(self._huey.result_count())


def _nothing() -> None:
    """Do nothing."""
