"""APScheduler with its store in the database and its pool of ten threads."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_EXECUTED, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.job import Job
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import STATE_RUNNING
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy import create_engine, event

from ..harness.declared import names
from ..harness.jobs import nothing
from ..harness.project import url
from .passing import Passing


class Case(Passing):
    """It records when each job is next due, and nothing of the runs."""

    size = 0

    def prepare(self, size: int) -> None:
        """Add the jobs.

        Args:
            size: how many.
        """
        self.size, self._statements = size, 0
        self._over, self._executed, self._ended = threading.Event(), 0, 0
        engine = create_engine(url())
        event.listen(engine, "before_cursor_execute", self._count)
        self._store = SQLAlchemyJobStore(engine=engine)
        self._scheduler = BackgroundScheduler(jobstores={"default": self._store}, timezone=UTC)
        self._scheduler.start(paused=True)
        # Its thread sleeps on, because nobody wakes it: the passes are ours.
        self._scheduler.state = STATE_RUNNING
        self._scheduler.wakeup = lambda: None
        trigger = CronTrigger.from_crontab("0 4 29 2 *", timezone=UTC)
        for name in names(size):
            self._scheduler.add_job(nothing, trigger, id=name)
        self._scheduler.add_listener(self._end, EVENT_JOB_EXECUTED | EVENT_JOB_MISSED)

    def idle(self) -> int:
        """Process the jobs."""
        before = self._statements
        self._scheduler._process_jobs()
        return self._statements - before

    def make_due(self, number: int) -> None:
        """Let some be due: this instant, because what is late by a second is dropped.

        Args:
            number: how many.
        """
        self._number, self._executed, self._ended = number, 0, 0
        self._over.clear()
        jobs = [self._scheduler.get_job(name) for name in names(number)]
        # A moment ahead, so that the rows are written by then.
        at = datetime.now(UTC) + timedelta(milliseconds=5 * number)
        for job in jobs:
            assert isinstance(job, Job)
            job._modify(next_run_time=at)
            self._store.update_job(job)
        threading.Event().wait(max(0.0, (at - datetime.now(UTC)).total_seconds()))

    def start(self) -> int:
        """Process the jobs, and wait until each was called or dropped."""
        statements = self.idle()
        self._over.wait(60)
        return statements

    def right(self) -> int:
        """Count the calls."""
        return self._executed

    def close(self) -> None:
        """End it."""
        self._scheduler.shutdown()

    def _count(self, *_: object) -> None:
        self._statements += 1

    def _end(self, told: JobExecutionEvent) -> None:
        self._executed += told.code == EVENT_JOB_EXECUTED
        self._ended += 1
        if self._ended == self._number:
            self._over.set()
