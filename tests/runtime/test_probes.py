"""``/live`` and ``/ready``: what they say, and clients that mean no good."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from socketserver import ThreadingTCPServer
from typing import Any

import pytest

from django_declarative_cron.runtime import probes
from django_declarative_cron.runtime.probes import Listener, Report, probe_pages

from .conftest import TIMEOUT

FACTS = {"standing": "standby", "tasks": 3, "running": 1}


@pytest.fixture
def serve() -> Callable[..., int]:
    """Serve a report on a port of this machine."""

    def start(*, live: bool = True, ready: bool = True, reasons: tuple[str, ...] = ()) -> int:
        served = Listener(probe_pages(lambda: Report(live, ready, reasons, FACTS)))
        served.start("127.0.0.1", 0)
        return served.port

    return start


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)


def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Give status, headers and body of the answer, which ends the connection."""
    with connect(port) as client, client.makefile("rb") as answer:
        client.sendall(request)
        head, _, body = answer.read().partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, body


def get(port: int, path: str) -> tuple[int, dict[str, Any]]:
    status, headers, body = ask(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(body)
    assert headers["cache-control"] == "no-store"
    return status, json.loads(body)


@pytest.mark.parametrize(
    ("live", "ready", "statuses"),
    [(True, True, (200, 200)), (True, False, (200, 503)), (False, False, (503, 503))],
)
def test_a_probe_is_told_whether_and_why(
    serve: Callable[..., int], live: bool, ready: bool, statuses: tuple[int, int]
) -> None:
    port = serve(live=live, ready=ready, reasons=("it rains",))
    for path, expected in zip(("/live", "/ready"), statuses, strict=True):
        status, body = get(port, path)
        assert status == expected
        assert body == {"live": live, "ready": ready, "reasons": ["it rains"], **FACTS}


def test_the_head_of_an_answer_alone(serve: Callable[..., int]) -> None:
    status, headers, body = ask(serve(), b"HEAD /ready?verbose=1 HTTP/1.0\r\n\r\n")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /live/../ready HTTP/1.1\r\n\r\n", 404),
        (b"POST /live HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", 501),
        (b"POST /live\r\n\r\n", 400),
        (b"GET http://x/live HTTP/1.1\r\n\r\n", 404),
        (b"\x16\x03\x01\x02\x00\xff\xfe\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /live HTTP/1.1\r\nX: " + b"x" * probes.LONGEST_REQUEST * 2 + b"\r\n\r\n", 431),
    ],
)
def test_anything_else_is_refused(serve: Callable[..., int], request_: bytes, status: int) -> None:
    port = serve()
    try:
        assert ask(port, request_)[0] == status
    except ConnectionResetError:
        # The answer may be lost to a client that is still talking.
        assert status == 431
    assert get(port, "/live")[0] == 200


def test_silent_clients_keep_nobody_waiting_and_are_sent_away(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = serve()
    silent = [connect(port) for _ in range(probes.MOST_CLIENTS * 2)]
    for client in silent:
        client.sendall(b"GET /live HT")
    assert get(port, "/live")[0] == 200
    monkeypatch.setattr(probes, "PATIENCE", 0.05)
    late = connect(port)
    assert late.recv(1) == b""
    for client in [*silent, late]:
        client.close()


def test_more_clients_than_are_served_send_the_oldest_away(serve: Callable[..., int]) -> None:
    port = serve()
    clients = [connect(port) for _ in range(probes.MOST_CLIENTS + 1)]
    assert clients[0].recv(1) == b""
    for client in clients:
        client.close()


def test_a_flood_of_open_requests_keeps_few_descriptors_and_probes_answer(
    serve: Callable[..., int],
) -> None:
    port = serve()
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    flood = []
    for number in range(200):
        flood.append(connect(port))
        flood[-1].sendall(b"GET /live HT")
        if number % 50 == 0:
            assert get(port, "/live")[0] == 200
    assert get(port, "/live")[0] == 200
    # The clients of this test are descriptors of the same process.
    opened = len(os.listdir("/proc/self/fd")) - descriptors - len(flood)
    assert opened <= probes.MOST_CLIENTS
    assert threading.active_count() - threads <= probes.MOST_CLIENTS
    for client in flood:
        client.close()


def test_a_client_that_sends_a_byte_now_and_then_is_sent_away_too(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "PATIENCE", 0.3)
    with connect(serve()) as slow, pytest.raises(OSError):
        for _ in range(100):
            slow.sendall(b"G")
            threading.Event().wait(0.1)


def test_connections_that_the_system_refuses_are_logged_once_and_probes_recover(
    serve: Callable[..., int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = iter([OSError(errno.EMFILE, "Too many open files")] * 4)

    def accept(server: Any) -> Any:
        for error in refusals:
            raise error
        return server.socket.accept()

    monkeypatch.setattr(probes, "ACCEPT_RETRY", 0.05)
    monkeypatch.setattr(ThreadingTCPServer, "get_request", accept)
    assert get(serve(), "/live")[0] == 200
    assert next(refusals, None) is None
    (line,) = caplog.messages
    assert line.startswith("Accepting a connection of a probe")


def test_connections_do_not_reach_programs_that_a_run_starts(serve: Callable[..., int]) -> None:
    count = [sys.executable, "-c", "import os; print(len(os.listdir('/proc/self/fd')))"]

    def inherited() -> bytes:
        return subprocess.run(count, capture_output=True, close_fds=False, check=True).stdout

    before = inherited()
    with connect(serve()) as client:
        client.sendall(b"GET /live HT")
        assert inherited() == before


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_it_listens_where_it_is_told_to(host: str) -> None:
    served = Listener(probe_pages(lambda: Report(True, True, (), FACTS)))
    served.start(host, 0)
    assert get(served.port, "/ready")[0] == 200


def test_a_port_that_is_taken_is_an_error(serve: Callable[..., int]) -> None:
    with pytest.raises(OSError):
        Listener({}).start("127.0.0.1", serve())
