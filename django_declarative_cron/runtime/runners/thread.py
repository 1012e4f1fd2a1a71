"""Calls in a bounded pool of threads, in which stuck threads are replaced."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from django.db import connections

from ... import signals
from ...core.declarations.declaration import Declaration
from ...store.results import Result
from ..clock import Clock
from ..outcome import cancelled, failed
from ..work import Work, perform
from . import Load

LATE = 2.0
"""Seconds in the queue after which a late start is logged."""

STUCK_AFTER = 5.0
"""Seconds until the thread of a run that was asked to end counts as stuck and is replaced."""


@dataclass(slots=True, eq=False)
class _Place:
    """A run in the pool, with monotonic seconds: since when, and when it was asked to end."""

    work: Work
    since: float
    asked_at: float | None = field(default=None)
    is_stuck: bool = False


class Pool:
    """Call runs in a limited number of threads; the others wait in a queue.

    Args:
        name: of the runner.
        size: number of threads.
        clock: by which waits are measured.
        call: returns the result of a run, or ``None`` where the result comes later.
    """

    def __init__(
        self, name: str, size: int, clock: Clock, call: Callable[[Work], Result | None]
    ) -> None:
        self._name = name
        self._size = size
        self._clock = clock
        self._call = call
        self._queue: deque[_Place] = deque()
        self._busy: set[_Place] = set()
        self._idle = self._threads = 0
        self._is_closed = self._has_logged = False
        self._news = threading.Condition()

    def prepare(self, declarations: Iterable[Declaration]) -> None:
        """Do nothing: threads are started when they are needed."""

    def submit(self, work: Work) -> None:
        """Queue one run.

        Raises:
            RuntimeError: there is no thread and none could be started.
        """
        place = _Place(work, self._clock.monotonic())
        with self._news:
            self._queue.append(place)
            self._news.notify()
            if self._idle < len(self._queue):
                self._one_more(place)
        work.ending.on_ask(lambda: self._withdraw(place))

    @property
    def load(self) -> Load:
        return self._load()

    def _load(self) -> Load:
        with self._news:
            stuck = sum(place.is_stuck for place in self._busy)
            oldest = self._clock.monotonic() - self._queue[0].since if self._queue else 0.0
            busy = len(self._busy) - stuck
            return Load(self._name, self._size, busy, len(self._queue), stuck, oldest)

    def look(self) -> None:
        """Log runs that wait too long, and replace stuck threads."""
        load = self._load()
        if not load.queued:
            self._has_logged = False
        elif load.oldest_wait >= LATE:
            self._log_once(load)
        for place in self._newly_stuck():
            work = place.work
            signals.log_line(
                "stuck_thread", task=work.run.task_name, run=work.id, seconds=STUCK_AFTER
            )

    def close(self) -> None:
        """End the threads, once every run has ended."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()

    def _one_more(self, place: _Place | None = None) -> None:
        """Start another thread up to the limit; without threads to start, the others go on."""
        if self._threads >= self._size:
            return
        self._threads += 1
        thread = threading.Thread(
            target=self._work, name=f"declarative-cron-{self._name}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            self._threads -= 1
            if place is not None and not self._threads:
                self._queue.remove(place)
                raise

    def _work(self) -> None:
        try:
            while (place := self._next()) is not None and self._serve(place):
                del place
        finally:
            # A callback may have opened connections in this thread.
            connections.close_all()

    def _serve(self, place: _Place) -> bool:
        """Call a run; return whether its thread goes on."""
        work = place.work
        try:
            result = self._call(work) if work.admit(work.id) else None
        except BaseException as error:
            # Each claimed run gets a result.
            result = failed(work, error, self._clock.now())
        if result is not None:
            work.done(result)
        return self._leave(place)

    def _next(self) -> _Place | None:
        with self._news:
            while not self._queue:
                if self._is_closed:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._news.wait()
                self._idle -= 1
            place = self._queue.popleft()
            self._busy.add(place)
        waited = self._clock.monotonic() - place.since
        if waited >= LATE:
            self._log_once(self._load(), waited)
        return place

    def _leave(self, place: _Place) -> bool:
        """Return whether the thread of a run goes on: it was not replaced."""
        with self._news:
            self._busy.discard(place)
            return not place.is_stuck

    def _withdraw(self, place: _Place) -> None:
        """End a run that was asked to end while it waited."""
        with self._news:
            if place not in self._queue:
                return
            self._queue.remove(place)
        place.work.done(cancelled(place.work, self._clock.now()))

    def _newly_stuck(self) -> list[_Place]:
        now, found = self._clock.monotonic(), []
        with self._news:
            for place in self._busy:
                if place.is_stuck or not place.work.ending.asked.is_set():
                    continue
                place.asked_at = place.asked_at or now
                if now - place.asked_at >= STUCK_AFTER:
                    place.is_stuck = True
                    self._threads -= 1
                    found.append(place)
            for place in list(self._queue)[: len(found)]:
                self._one_more(place)
        return found

    def _log_once(self, load: Load, waited: float | None = None) -> None:
        """Log the first late start, and the next one after the queue was empty."""
        if not self._has_logged:
            self._has_logged = True
            signals.log_line(
                "pool_exhausted",
                runner=load.runner,
                size=load.size,
                busy=load.busy,
                queued=load.queued,
                seconds=waited or load.oldest_wait,
            )


class ThreadRunner(Pool):
    """Call callbacks in threads."""

    def __init__(self, workers: int, clock: Clock) -> None:
        super().__init__("thread", workers, clock, partial(perform, clock=clock))
