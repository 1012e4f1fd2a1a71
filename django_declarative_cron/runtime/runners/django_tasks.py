"""Calls by workers of a task queue: the scheduler enqueues a task of ``django.tasks`` per run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

from ... import django_tasks, signals
from ...store import external_jobs
from ...store.guard import Member
from ...store.results import Result
from ..clock import Clock
from ..loop import BackgroundThread
from ..outcome import cancelled, failed
from ..work import Work
from . import Load
from .thread import Pool

# Django's immediate backend makes the scheduler its own worker: a stop of the scheduler then is
# a stop of the worker.
_handing: ContextVar[Work | None] = ContextVar("declarative_cron_handing", default=None)


@contextmanager
def handing(work: Work) -> Iterator[None]:
    """Mark a run as the one that this thread enqueues."""
    token = _handing.set(work)
    try:
        yield
    finally:
        _handing.reset(token)


def here_stopping(run: int) -> threading.Event | None:
    """Return the scheduler's stop event where this thread both enqueues and calls a run."""
    work = _handing.get()
    return work.run.stopping if work is not None and work.id == run else None


LONGEST_QUIET = 60.0
"""Seconds in the queue after which it is logged that no worker takes a run up."""


AGAIN = 30.0
"""Seconds after which the queue is queried for the message of a run."""

_ASKED_AT_ONCE = 5


@dataclass(slots=True, eq=False)
class _Handed:
    """A run that was enqueued at a monotonic second.

    Args:
        work: the run.
        since: when it was enqueued.
        again_at: when the queue is queried for its message.
        result: the ``TaskResult`` of its message, ``None`` until it is enqueued.
    """

    work: Work
    since: float
    again_at: float
    result: Any = None


class TasksRunner(Pool):
    """Enqueue runs for the workers of a task queue.

    Args:
        workers: how many are enqueued at the same time.
        clock: dates the ends of runs that could not be enqueued.
        member: returns this instance.
    """

    def __init__(self, workers: int, clock: Clock, member: Callable[[], Member | None]) -> None:
        super().__init__("django_tasks", workers, clock, self._hand_over)
        self._member = member
        self._handed: dict[int, _Handed] = {}
        self._book = threading.Lock()
        self._asking: BackgroundThread | None = None
        self._has_logged_quiet = False

    def look(self) -> None:
        """Drop runs that workers have taken up, and all runs when the scheduler stops.

        Raises:
            django.db.Error: nothing has changed.
        """
        super().look()
        member = self._member()
        with self._book:
            handed = dict(self._handed)
        if not handed or member is None:
            return
        here = external_jobs.in_hands(member, handed)
        for run in handed.keys() - here:
            # An immediate backend has not returned yet, and a stop waits for such a run.
            if handed[run].result is not None:
                self._forget(run)
        if stopping := [run for run in here if handed[run].work.run.stopping.is_set()]:
            external_jobs.let_go(member, stopping)
            for run in stopping:
                self._forget(run)
        waiting = [each for run, each in handed.items() if run in here.difference(stopping)]
        self._log_quiet([each.since for each in waiting])
        self._ask_for(waiting, member)

    @property
    def load(self) -> Load:
        """Return how busy it is; runs that no worker has taken up count as queued."""
        load = self._load()
        with self._book:
            since = [each.since for each in self._handed.values()]
        oldest = max(self._clock.monotonic() - min(since), 0.0) if since else load.oldest_wait
        return Load(load.runner, 0, load.busy, load.queued + len(since), 0, oldest)

    def _hand_over(self, work: Work) -> Result | None:
        member = self._member()
        assert member is not None and work.declaration is not None
        now = self._clock.monotonic()
        handed = _Handed(work, now, now + AGAIN)
        with self._book:
            self._handed[work.id] = handed
        try:
            # A worker may take the run up before this thread goes on.
            with handing(work):
                handed.result = _enqueue(work, member)
        except Exception as error:
            self._take_back(work)
            return failed(work, error, self._clock.now())
        work.ending.on_ask(lambda: self._cancel(work))
        return None

    def _ask_for(self, waiting: list[_Handed], member: Member) -> None:
        """Query the queue for messages that may be lost with their worker, the oldest first."""
        now = self._clock.monotonic()
        due = [each for each in waiting if each.result is not None and each.again_at <= now]
        if due and (self._asking is None or not self._asking.is_alive):
            oldest = sorted(due, key=lambda each: each.since)[:_ASKED_AT_ONCE]
            self._asking = BackgroundThread("queue", partial(self._enqueue_lost, oldest, member))
            self._asking.start()

    def _enqueue_lost(self, due: list[_Handed], member: Member) -> None:
        for handed in due:
            handed.again_at = self._clock.monotonic() + AGAIN
            # If the message was not lost, the second one has no effect.
            with suppress(Exception):
                if not _still_waits(handed.result):
                    handed.result = _enqueue(handed.work, member)

    def _cancel(self, work: Work) -> None:
        """End a run that waits; a worker that has it reads the request from its row."""
        if self._take_back(work):
            work.done(cancelled(work, self._clock.now()))

    def _take_back(self, work: Work) -> bool:
        with self._book:
            return self._handed.pop(work.id, None) is not None

    def _forget(self, run: int) -> None:
        with self._book:
            handed = self._handed.pop(run, None)
        if handed is not None:
            handed.work.forget(run)

    def _log_quiet(self, since: list[float]) -> None:
        waited = self._clock.monotonic() - min(since) if since else 0.0
        if waited < LONGEST_QUIET:
            self._has_logged_quiet = False
        elif not self._has_logged_quiet:
            self._has_logged_quiet = True
            signals.log_line("no_worker", runs=len(since), seconds=waited)


def _enqueue(work: Work, member: Member) -> Any:
    carried = [dict(work.trace)] if work.trace else []
    return _task(work).enqueue(work.id, str(member.instance), member.deployment, *carried)


def _still_waits(result: Any) -> bool:
    """Return whether the message is in the queue; without an answer it counts as lost."""
    try:
        known = result.task.get_backend().get_result(result.id)
    except Exception:
        return False
    return bool(known.status.name == "READY")


def _task(work: Work) -> Any:
    """Return the Task to enqueue, with queue, priority and backend of the run's task."""
    from .django_tasks_worker import FUNCTION

    assert work.declaration is not None
    asked = django_tasks.asked_of_engine(work.target.function, work.declaration.options)
    return django_tasks.make_task(FUNCTION, **asked)
