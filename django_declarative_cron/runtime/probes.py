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
from http.server import BaseHTTPRequestHandler
from io import BytesIO
from socketserver import ThreadingTCPServer
from typing import Any

from ..signals import report as log_failure
from . import forking
from .clock import system_clock
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
LONGEST_REQUEST = 8 * 1024
CLIENT_TIMEOUT = 2.0
"""Seconds that a client has for its request, and again for reading the answer."""

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
    return Answer(status, _json(facts | found.facts))


def _json(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, indent=1).encode() + b"\n"


class _Server(ThreadingTCPServer):
    """Accept connections, each in a thread, up to a limit."""

    daemon_threads = True
    block_on_close = False
    # An accept queue of the usual length absorbs bursts without costing file descriptors.
    request_queue_size = 128

    def __init__(self, listening: socket.socket, pages: Mapping[str, Page]) -> None:
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.pages = pages
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        self._lock = threading.Lock()
        self._opened: dict[socket.socket, float] = {}

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; wait a little where the system has no descriptor left."""
        try:
            return super().get_request()
        except OSError as error:
            log_failure("Accepting a connection of a probe or of Prometheus", error)
            threading.Event().wait(ACCEPT_RETRY)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection; make room by closing the one that has waited longest."""
        if not self._free.acquire(blocking=False):
            self._close_oldest()
            if not self._free.acquire(timeout=CLIENT_TIMEOUT):
                self.shutdown_request(request)
                return
        with self._lock:
            self._opened[request] = system_clock.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # The system starts no further thread.
            self._release(request)
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its thread, and release its place afterwards."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._release(request)

    def service_actions(self) -> None:
        """Close connections that are over their time; called twice a second at least."""
        limit = system_clock.monotonic() - 2 * CLIENT_TIMEOUT
        with self._lock:
            late = [each for each, opened in self._opened.items() if opened < limit]
        for each in late:
            _end(each)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log failures of a page; clients that go away or send nothing are none."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            log_failure("Answering a probe or Prometheus", error, then="the next one is answered")

    def _release(self, request: socket.socket) -> None:
        with self._lock:
            self._opened.pop(request, None)
        self._free.release()

    def _close_oldest(self) -> None:
        with self._lock:
            oldest = next(iter(self._opened), None)
        if oldest is not None:
            _end(oldest)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    # Python answers a line that it cannot read in this version, and in 0.9 without a status.
    default_request_version = "HTTP/1.0"

    def setup(self) -> None:
        self.request.settimeout(CLIENT_TIMEOUT)
        super().setup()

    def handle(self) -> None:
        head = self._head()
        self.requestline, self.command = "", "GET"
        self.request_version = self.default_request_version
        if len(head) >= LONGEST_REQUEST:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif not head.strip():
            self.send_error(HTTPStatus.BAD_REQUEST)
        else:
            self.rfile = BytesIO(head)
            self.handle_one_request()

    def do_GET(self) -> None:
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            paths = _json({"paths": list(self.server.pages)})
            self._send(Answer(HTTPStatus.NOT_FOUND, paths))
            return
        self._send(page())

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        self._send(Answer(HTTPStatus(code), _json({"error": HTTPStatus(code).phrase})))

    def log_message(self, *args: Any) -> None:
        """Log nothing: an orchestrator asks every few seconds."""

    def version_string(self) -> str:
        return "django-declarative-cron"

    def _head(self) -> bytes:
        """Read a request up to its empty line, or to the longest that is accepted."""
        head = bytearray()
        while len(head) < LONGEST_REQUEST and not head.endswith((b"\r\n\r\n", b"\n\n")):
            line = self.rfile.readline(LONGEST_REQUEST - len(head))
            if not line:
                break
            head += line
        return bytes(head)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _end(connection: socket.socket) -> None:
    """Wake the thread that reads from a connection or writes to it; that thread closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET
    if host:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family, backlog=128)
