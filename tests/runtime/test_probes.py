"""``/live`` and ``/ready``: what they say, and clients that mean no good."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from django_declarative_cron.runtime import probes
from django_declarative_cron.runtime.health import Report
from django_declarative_cron.runtime.probes import Probes

from .conftest import PATIENCE

FACTS = {"standing": "standby", "tasks": 3, "running": 1}


@pytest.fixture
def serve() -> Callable[..., int]:
    """Serve a report on a port of this machine."""

    def start(*, live: bool = True, ready: bool = True, reasons: tuple[str, ...] = ()) -> int:
        served = Probes(lambda: Report(live, ready, reasons, FACTS))
        served.start("127.0.0.1", 0)
        return served.port

    return start


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


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
        (b"POST /live HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd", 405),
        (b"GET /live\r\n\r\n", 400),
        (b"GET http://x/live HTTP/1.1\r\n\r\n", 400),
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


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1"])
def test_it_listens_where_it_is_told_to(host: str) -> None:
    served = Probes(lambda: Report(True, True, (), FACTS))
    served.start(host, 0)
    assert get(served.port, "/ready")[0] == 200


def test_a_port_that_is_taken_is_an_error(serve: Callable[..., int]) -> None:
    with pytest.raises(OSError):
        Probes(lambda: Report(True, True, (), FACTS)).start("127.0.0.1", serve())
