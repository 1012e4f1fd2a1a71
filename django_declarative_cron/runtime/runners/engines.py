"""Callbacks in the workers of an engine that the project already runs, by Django's Tasks.

A run is enqueued to the backend of the project's ``TASKS``. Until a worker takes it up, it
is in the hands of this scheduler, which lives for it; then it is the worker's
(``store.handover``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ... import djangotasks, signals
from ...store import handover
from ...store.guard import Member
from ...store.results import Result
from ..clock import Clock
from ..ended import cancelled, failed
from ..work import Work
from . import Load
from .pool import Pool

LONGEST_QUIET = 60.0
"""Seconds in an engine's queue after which people are told that nobody takes a run up."""


class TasksRunner(Pool):
    """Hand runs over to the workers of an engine.

    Args:
        workers: how many are handed over at the same time.
        clock: dates the ends of runs that could not be handed over.
        member: gives who this instance is.
    """

    def __init__(self, workers: int, clock: Clock, member: Callable[[], Member | None]) -> None:
        super().__init__("django_tasks", workers, clock, self._hand_over)
        self._member = member
        self._handed: dict[int, tuple[Work, float]] = {}
        self._book = threading.Lock()
        self._has_told_of_quiet = False

    def look(self) -> None:
        """Let go of runs that workers have taken up, and of all when the scheduler stops.

        Raises:
            django.db.Error: nothing has changed.
        """
        super().look()
        member = self._member()
        with self._book:
            handed = dict(self._handed)
        if not handed or member is None:
            return
        stopping = [run for run, (work, _) in handed.items() if work.run.stopping.is_set()]
        if stopping:
            handover.let_go(member, stopping)
        here = handover.in_hands(member, handed)
        for run in handed.keys() - here:
            self._forget(run)
        self._tell_of_quiet([since for run, (_, since) in handed.items() if run in here])

    @property
    def load(self) -> Load:
        """Give how busy it is; queued are runs that no worker has taken up."""
        load = self._load()
        with self._book:
            since = [moment for _, moment in self._handed.values()]
        oldest = max(self._clock.monotonic() - min(since), 0.0) if since else load.oldest_wait
        return Load(load.runner, 0, load.busy, load.queued + len(since), 0, oldest)

    def _hand_over(self, work: Work) -> Result | None:
        member = self._member()
        assert member is not None and work.declaration is not None
        with self._book:
            self._handed[work.id] = work, self._clock.monotonic()
        try:
            # A worker may be quicker than this thread.
            _task(work).enqueue(work.id, str(member.instance), member.deployment)
        except Exception as error:
            self._take_back(work)
            return failed(work, error, self._clock.now(), 0.0)
        work.ending.on_ask(lambda: self._cancel(work))
        return None

    def _cancel(self, work: Work) -> None:
        """End a run that waits; a worker that has it is told by its row."""
        if self._take_back(work):
            work.done(cancelled(work, self._clock.now()))

    def _take_back(self, work: Work) -> bool:
        with self._book:
            return self._handed.pop(work.id, None) is not None

    def _forget(self, run: int) -> None:
        with self._book:
            work, _ = self._handed.pop(run, (None, 0.0))
        if work is not None:
            work.forget(run)

    def _tell_of_quiet(self, since: list[float]) -> None:
        waited = self._clock.monotonic() - min(since) if since else 0.0
        if waited < LONGEST_QUIET:
            self._has_told_of_quiet = False
        elif not self._has_told_of_quiet:
            self._has_told_of_quiet = True
            signals.tell_quiet(len(since), waited)


def _task(work: Work) -> Any:
    """Give the Task that is enqueued, with queue, priority and backend of the run's own."""
    from .handed import FUNCTION

    assert work.declaration is not None
    options, given = work.declaration.options, {}
    function = work.target.function
    if isinstance(function, djangotasks.DjangoTask):
        for name in ("backend", "queue_name", "priority"):
            given[name] = getattr(function.task, name)
    for option, name in (("backend", "backend"), ("queue", "queue_name"), ("priority", "priority")):
        if option in options:
            given[name] = options[option]
    return djangotasks.make_task(FUNCTION, **given)
