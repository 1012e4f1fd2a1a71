"""APScheduler: ten threads, jobs in memory; it keeps no history, so that nothing is recorded."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.schedulers.background import BackgroundScheduler

from ..harness.jobs import nothing
from .running import PATIENCE, Running


class Case(Running):
    """All jobs are due at once; none counts as too late."""

    def queue(self) -> None:
        """Add the jobs to a scheduler that has not begun."""
        self._over, self._executed = threading.Event(), 0
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._scheduler.add_listener(self._count, EVENT_JOB_EXECUTED)
        for _ in range(self.size):
            self._scheduler.add_job(
                nothing, "date", run_date=datetime.now(UTC), misfire_grace_time=None
            )

    def run(self) -> float:
        """Begin, and wait for the last one."""
        began = time.perf_counter()
        self._scheduler.start()
        self._over.wait(PATIENCE)
        seconds = time.perf_counter() - began
        self._scheduler.shutdown()
        return seconds

    def recorded(self) -> int:
        """Count the calls that its events told of."""
        return self._executed

    def _count(self, _: JobExecutionEvent) -> None:
        self._executed += 1
        if self._executed == self.size:
            self._over.set()
