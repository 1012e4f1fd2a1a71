"""APScheduler with its store in the database."""

from __future__ import annotations

from datetime import UTC

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy import create_engine, event, text

from ..harness.jobs import nothing
from ..harness.project import url
from .deploying import Deploying


class Case(Deploying):
    """Add every job, in place of the one of the same id."""

    def prepare(self, size: int) -> None:
        """Connect.

        Args:
            size: the number of jobs.
        """
        super().prepare(size)
        self._engine, self._statements = create_engine(url()), 0
        event.listen(self._engine, "before_cursor_execute", self._count)
        self._store().jobs_t.create(self._engine, checkfirst=True)

    def clear(self) -> None:
        """Let nothing be declared."""
        with self._engine.begin() as connection:
            connection.execute(text("TRUNCATE apscheduler_jobs"))

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Add the jobs to a scheduler that has begun.

        Args:
            names: their ids.
            crons: when.
        """
        before = self._statements
        self._scheduler = BackgroundScheduler(jobstores={"default": self._store()}, timezone=UTC)
        self._scheduler.start(paused=True)
        for name, cron in zip(names, crons, strict=True):
            trigger = CronTrigger.from_crontab(cron, timezone=UTC)
            self._scheduler.add_job(nothing, trigger, id=name, replace_existing=True)
        return self._statements - before

    def leave(self) -> None:
        """End it."""
        self._scheduler.shutdown()

    def rows(self) -> dict[object, object]:
        """Give the jobs."""
        with self._engine.begin() as connection:
            found = connection.execute(text("SELECT id, ctid::text FROM apscheduler_jobs"))
            return {row[0]: row[1] for row in found}

    def _store(self) -> SQLAlchemyJobStore:
        return SQLAlchemyJobStore(engine=self._engine)

    def _count(self, *_: object) -> None:
        self._statements += 1
