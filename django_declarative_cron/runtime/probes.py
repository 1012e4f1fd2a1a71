"""Probes: the health of a scheduler, served at ``/live`` and ``/ready``."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..signals import report as log_failure
from . import forking
from .loop import LIMIT
from .scheduler import Scheduler, State

LONGEST_START = 300.0
"""Seconds that the first initialisation may take before the process counts as hanging."""


@dataclass(frozen=True, slots=True)
class Report:
    """The health of a scheduler.

    Args:
        live: the loop works, so a restart would not help.
        ready: it leads, or would take over.
        reasons: why it is not live or not ready, as text.
        facts: about the process, JSON-native.
    """

    live: bool
    ready: bool
    reasons: tuple[str, ...]
    facts: dict[str, Any]

    @property
    def line(self) -> str:
        """Return the health in one line."""
        tasks, running = self.facts["tasks"], self.facts["running"]
        plural = "" if tasks == 1 else "s"
        words = f"{self.facts['role']}, {tasks} task{plural}, {running} running"
        return "; ".join([words, *self.reasons])


def report(scheduler: Scheduler) -> Report:
    """Return the health of a scheduler; take no lock and query no database."""
    dead, idle = list(_not_live(scheduler)), list(_not_ready(scheduler))
    pulse = scheduler.pulse
    facts = {
        "state": str(scheduler.state),
        "role": str(scheduler.role.value),
        "instance": str(scheduler.id),
        "tasks": len(scheduler.declarations),
        "running": scheduler.running,
        "passes": pulse.last.passes,
        "seconds_since_pass": round(pulse.age(), 1),
    }
    return Report(not dead, not (dead or idle), (*dead, *idle), facts)


def _not_live(scheduler: Scheduler) -> Iterator[str]:
    pulse, state = scheduler.pulse, scheduler.state
    if state in (State.UNINITIALIZED, State.INITIALIZING):
        if pulse.age() > LONGEST_START:
            yield f"the initialisation has taken {pulse.age():.0f} s, longer than it may"
    elif state in (State.RUNNING, State.REINITIALIZING):
        if not scheduler.is_alive:
            yield "the loop or the heartbeat has ended"
        elif pulse.is_late():
            yield f"the loop has not turned for {pulse.age():.0f} s (the limit is {LIMIT:.0f} s)"


def _not_ready(scheduler: Scheduler) -> Iterator[str]:
    state = scheduler.state
    if state in (State.UNINITIALIZED, State.INITIALIZING):
        yield "not initialised yet"
    elif state in (State.STOPPING, State.STOPPED):
        yield "stopping: nothing new starts"
    refused = scheduler.pulse.last.refused
    if refused:
        yield f"the database refused the newest pass ({refused})"


LOOPBACK = "127.0.0.1"
CLIENT_TIMEOUT = 2.0
"""Seconds for which a client may be silent, or not read the answer."""

MOST_CLIENTS = 32
ACCEPT_RETRY = 0.5
"""Seconds until the next attempt to accept connections after the system refused one."""

PATHS = ("/live", "/ready")


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


Page = Callable[[], Answer]


class Listener:
    """Serve a few pages on one port.

    Args:
        pages: return the answers, by path.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages
        self.port = 0

    def start(self, host: str, port: int) -> None:
        """Listen in a thread of its own until the process ends.

        Raises:
            OSError: the address is not available.
        """
        server = _Server(_listen(host, port), self._pages)
        forking.close_in_children(server.fileno())
        self.port = server.socket.getsockname()[1]
        threading.Thread(
            target=server.serve_forever, name=f"declarative-cron-port-{self.port}", daemon=True
        ).start()


def probe_pages(report: Callable[[], Report]) -> Mapping[str, Page]:
    return {
        "/live": lambda: _health(report(), "live"),
        "/ready": lambda: _health(report(), "ready"),
    }


def _health(found: Report, probe: str) -> Answer:
    facts = {"live": found.live, "ready": found.ready, "reasons": list(found.reasons)}
    status = HTTPStatus.OK if facts[probe] else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, json.dumps(facts | found.facts, indent=1).encode() + b"\n")


class _Server(ThreadingHTTPServer):
    """Accept connections, each in a thread, up to a limit."""

    block_on_close = False

    def __init__(self, listening: socket.socket, pages: Mapping[str, Page]) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.pages = pages
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; wait a little where the system has no descriptor left."""
        try:
            return super().get_request()
        except OSError as error:
            log_failure("Accepting a connection of a probe or of Prometheus", error)
            threading.Event().wait(ACCEPT_RETRY)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, once one of the others has ended where all are busy."""
        if not self._free.acquire(timeout=CLIENT_TIMEOUT):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # The system starts no further thread.
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its thread, and release its place afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log failures of a page; clients that go away or send nothing are none."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            log_failure("Answering a probe or Prometheus", error, then="the next one is answered")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = CLIENT_TIMEOUT
    # Python answers a line that it cannot read in this version, and in 0.9 without a status.
    default_request_version = "HTTP/1.0"

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        answer = page()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        super().send_error(code)  # Python would quote the request in the status line.

    def log_message(self, *args: Any) -> None:
        """Log nothing: an orchestrator asks every few seconds."""

    def version_string(self) -> str:
        return "django-declarative-cron"


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET
    if host:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family, backlog=128)
