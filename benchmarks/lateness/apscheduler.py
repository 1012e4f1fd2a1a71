"""APScheduler with its store in the database."""

from __future__ import annotations

import time
from datetime import UTC

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from ..harness.project import url
from .waiting import Waiting

_CALLS: list[float] = []


class Case(Waiting):
    """What is told is when the job itself runs."""

    def prepare(self, size: int) -> None:
        """Add the jobs.

        Args:
            size: how many.
        """
        super().prepare(size)
        scheduler = self._new()
        scheduler.start(paused=True)
        for position, name in enumerate(self.names):
            trigger = CronTrigger.from_crontab(self.cron(position), timezone=UTC)
            scheduler.add_job(note, trigger, id=name, misfire_grace_time=60)
        scheduler.shutdown()

    def begin(self) -> None:
        """Start it."""
        self._scheduler = self._new()
        self._scheduler.start()

    def called(self, since: float) -> list[float]:
        """Give the calls.

        Args:
            since: the minute.
        """
        return [each for each in _CALLS if each >= since]

    def end(self) -> None:
        """End it."""
        self._scheduler.shutdown()
        _CALLS.clear()

    def _new(self) -> BackgroundScheduler:
        return BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=url())}, timezone=UTC
        )


def note() -> None:
    """Note the time."""
    _CALLS.append(time.time())
