"""``/live`` and ``/ready`` over HTTP, for orchestrators: a few lines of asyncio in a thread.

It answers from memory, so a database that hangs cannot hold an answer up. A client
has two seconds and eight kilobytes for its request and gets one answer; when there are
too many, the one that has waited longest goes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from .health import Report

LONGEST_REQUEST = 8 * 1024
PATIENCE = 2.0
MOST_CLIENTS = 32

PATHS = ("/live", "/ready")


class Probes:
    """Serve the health of one scheduler.

    Args:
        report: gives it.
    """

    def __init__(self, report: Callable[[], Report]) -> None:
        self._report = report
        self._clients: dict[asyncio.StreamWriter, None] = {}
        self.port = 0

    def start(self, host: str, port: int) -> None:
        """Listen from now on, until the process ends.

        Args:
            host: address or name to listen at; all addresses of the machine where empty.
            port: number; 0 for any that is free.

        Raises:
            OSError: the address cannot be had.
        """
        listening = _listen(host, port)
        self.port = listening.getsockname()[1]
        threading.Thread(
            target=lambda: asyncio.run(self._serve(listening)),
            name="declarative-cron-probes",
            daemon=True,
        ).start()

    async def _serve(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self._meet, sock=listening, limit=LONGEST_REQUEST)
        await server.serve_forever()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            next(iter(self._clients)).transport.abort()
        self._clients[writer] = None
        try:
            writer.write(await self._answer(reader))
            await asyncio.wait_for(writer.drain(), PATIENCE)
        except (OSError, EOFError, TimeoutError):
            writer.transport.abort()
        finally:
            self._clients.pop(writer, None)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        except asyncio.LimitOverrunError:
            return _response(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        method, path = _request(head)
        if not path:
            return _response(HTTPStatus.BAD_REQUEST)
        if method not in ("GET", "HEAD"):
            return _response(HTTPStatus.METHOD_NOT_ALLOWED)
        if path not in PATHS:
            return _response(HTTPStatus.NOT_FOUND, {"paths": list(PATHS)})
        status, body = _judged(self._report(), path)
        return _response(status, body, in_full=method == "GET")


def _judged(found: Report, path: str) -> tuple[HTTPStatus, dict[str, Any]]:
    fine = found.live if path == "/live" else found.ready
    words = {"live": found.live, "ready": found.ready, "reasons": list(found.reasons)}
    return HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE, words | found.facts


def _request(head: bytes) -> tuple[str, str]:
    """Read the method and the path of a request; both are empty where it is none."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return "", ""
    return words[0], words[1].partition("?")[0]


def _response(
    status: HTTPStatus, body: dict[str, Any] | None = None, *, in_full: bool = True
) -> bytes:
    text = json.dumps(body or {"error": status.phrase}, indent=1).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + text if in_full else head.encode()


def _listen(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET
    if host:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family)
