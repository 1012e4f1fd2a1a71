"""Serving the metrics of a scheduler's process at a port of its own."""

from __future__ import annotations

import socket
from contextlib import suppress

from .. import conf
from ..runtime.scheduler import Scheduler
from .labels import Names
from .latest import Latest
from .metrics import EventMetrics, Memory, Rows, library, read_rows


class Exporter:
    """The metrics of one scheduler.

    Args:
        scheduler: of this process.

    Raises:
        MetricsUnavailableError: the client library of Prometheus is not installed.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.registry = library().CollectorRegistry(auto_describe=False)
        names = Names(conf.options().METRICS_TASKS)
        self._events = EventMetrics(self.registry, names)
        self.registry.register(Memory(scheduler))
        # A task that is gone gives its label to another one.
        self._rows = Latest(lambda: read_rows(asked=names.known), scheduler.clock)
        self.registry.register(Rows(self._rows, names))
        self.port = 0

    def start(self, host: str, port: int) -> None:
        """Count from now on, and answer until the process ends.

        Args:
            host: address or name to listen at; all addresses of the machine where empty.
            port: number; 0 for any that is free.

        Raises:
            OSError: the address cannot be had.
        """
        server = _listen(host, port, self)
        self.port = server.server_port
        self._events.start()

    def stop(self) -> None:
        """Count no more, and look at no rows."""
        self._events.stop()
        self._rows.close()


def _listen(host: str, port: int, exporter: Exporter):  # type: ignore[no-untyped-def]
    start = library().start_http_server
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):
            return start(port, "::", registry=exporter.registry)[0]
    return start(port, host or "0.0.0.0", registry=exporter.registry)[0]  # noqa: S104 - as asked
