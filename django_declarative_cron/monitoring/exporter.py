"""Serving the metrics of a scheduler's process at a port of its own."""

from __future__ import annotations

import threading
from http import HTTPStatus

from .. import conf
from ..runtime.probes import Answer, Listener
from ..runtime.scheduler import Scheduler
from .cached_query import Latest
from .label_limit import Names
from .metrics import EventMetrics, Memory, Rows, library, read_rows

MOST_SCRAPES = 4
"""A scrape may wait for the database, so few of them share the listener with other clients."""


class Exporter:
    """The metrics of one scheduler.

    Args:
        scheduler: of this process.

    Raises:
        MetricsUnavailableError: the client library of Prometheus is not installed.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.registry = library().CollectorRegistry(auto_describe=False)
        names = Names(conf.options().METRICS_MAX_TASK_LABELS)
        self._events = EventMetrics(self.registry, names)
        self.registry.register(Memory(scheduler))
        # A task that is gone gives its label to another one.
        self._rows = Latest(lambda: read_rows(asked=names.known), scheduler.clock)
        self.registry.register(Rows(self._rows, names))
        self._scrapes = threading.BoundedSemaphore(MOST_SCRAPES)
        self._listener = Listener({"/metrics": self._page})

    @property
    def port(self) -> int:
        """Return the number of the port it listens on."""
        return self._listener.port

    def start(self, host: str, port: int) -> None:
        """Count from now on, and answer until the process ends.

        Raises:
            OSError: the address is not available.
        """
        self._listener.start(host, port)
        self._events.start()

    def stop(self) -> None:
        """Count no more, and look at no rows."""
        self._events.stop()
        self._rows.close()

    def _page(self) -> Answer:
        if not self._scrapes.acquire(blocking=False):
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"Too many scrapes.\n", "text/plain")
        try:
            body = library().generate_latest(self.registry)
        finally:
            self._scrapes.release()
        return Answer(HTTPStatus.OK, body, library().CONTENT_TYPE_LATEST)
