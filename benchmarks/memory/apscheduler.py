"""APScheduler with its store in the database."""

from __future__ import annotations

from datetime import UTC

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from ..harness.jobs import nothing
from ..harness.project import url
from .idling import NEVER, Idling


class Case(Idling):
    """It holds no job in memory."""

    def fill(self) -> None:
        """Add the jobs."""
        scheduler = self._new()
        scheduler.start(paused=True)
        trigger = CronTrigger.from_crontab(NEVER, timezone=UTC)
        for name in self.names:
            scheduler.add_job(nothing, trigger, id=name)
        scheduler.shutdown()

    def begin(self) -> None:
        """Start it."""
        self._scheduler = self._new()
        self._scheduler.start()

    def end(self) -> None:
        """End it."""
        self._scheduler.shutdown()

    def _new(self) -> BackgroundScheduler:
        return BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url=url())}, timezone=UTC
        )
