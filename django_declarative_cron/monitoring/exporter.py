"""Serve the metrics of a scheduler's process on a port."""

from __future__ import annotations

import threading
from http import HTTPStatus

from .. import conf
from ..runtime.probes import Answer, Listener
from ..runtime.scheduler import Scheduler
from .cached_query import CachedQuery
from .label_limit import TaskLabels
from .metrics import DatabaseCollector, EventMetrics, ProcessCollector, library, read_counts

MAX_SCRAPES = 4
"""Scrapes may wait for the database, so they must not occupy all threads of the listener."""


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
