"""Serve the metrics of a scheduler's process on a port."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Generic, TypeVar

from .. import conf
from ..runtime.clock import Clock, system_clock
from ..runtime.connections import own_connections, renew
from ..runtime.probes import Answer, Listener
from ..runtime.scheduler import Scheduler
from ..signals import report
from .metrics import (
    DatabaseCollector,
    EventMetrics,
    ProcessCollector,
    TaskLabels,
    library,
    read_counts,
)

T = TypeVar("T")

MAX_AGE = 5.0
"""Seconds for which a result is used again."""

MAX_SCRAPES = 4
"""Scrapes may wait for the database, so they must not occupy all threads of the listener."""


class CachedQuery(Generic[T]):
    """Read on demand, one thread at a time, and keep the last result if reading fails."""

    def __init__(self, read: Callable[[], T | None], clock: Clock = system_clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._read_at: float | None = None

    def get(self) -> tuple[T | None, float, bool]:
        """Return the result, its age in seconds, and whether the age is at most ``MAX_AGE``."""
        with self._lock:
            if self._read_at is None or self._clock.monotonic() - self._read_at >= MAX_AGE:
                self._refresh()
            if self._read_at is None:
                return None, 0.0, False
            age = self._clock.monotonic() - self._read_at
            return self._value, age, age < MAX_AGE

    def _refresh(self) -> None:
        # The thread of a scrape ends with its response.
        with own_connections():
            try:
                self._value, self._read_at = self._read(), self._clock.monotonic()
            except Exception as error:
                renew(error)
                report("Reading rows for the metrics", error, then="older ones are shown")


class Exporter:
    """Serve ``/metrics`` for one scheduler.

    Raises:
        MetricsUnavailableError: the Prometheus client library is not installed.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.registry = library().CollectorRegistry(auto_describe=False)
        labels = TaskLabels(conf.options().METRICS_MAX_TASK_LABELS)
        self._events = EventMetrics(self.registry, labels)
        self.registry.register(ProcessCollector(scheduler))
        counts = CachedQuery(lambda: read_counts(asked=labels.used), scheduler.clock)
        self.registry.register(DatabaseCollector(counts.get, labels))
        self._scrapes = threading.BoundedSemaphore(MAX_SCRAPES)
        self._listener = Listener({"/metrics": self._page})

    @property
    def port(self) -> int:
        """Return the port number."""
        return self._listener.port

    def start(self, host: str, port: int) -> None:
        """Count from now on, and serve until the process ends.

        Raises:
            OSError: the address is not available.
        """
        self._listener.start(host, port)
        self._events.start()

    def stop(self) -> None:
        """Stop counting."""
        self._events.stop()

    def _page(self) -> Answer:
        if not self._scrapes.acquire(blocking=False):
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"Too many scrapes.\n", "text/plain")
        try:
            body = library().generate_latest(self.registry)
        finally:
            self._scrapes.release()
        return Answer(HTTPStatus.OK, body, library().CONTENT_TYPE_LATEST)
