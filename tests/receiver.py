"""A receiver of webhooks on a port of this machine, which behaves as a test wants."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .timeouts import TIMEOUT

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()

Post = Callable[..., None]


@dataclass(frozen=True)
class Got:
    """One request."""

    headers: dict[str, str]
    body: bytes
    path: str

    @property
    def envelope(self) -> dict[str, Any]:
        return dict(json.loads(self.body))

    @property
    def kind(self) -> str:
        return str(self.envelope["type"])


Behaviour = Callable[[Got], "int | tuple[int, dict[str, str], str]"]


def ok(got: Got) -> int:
    return 204


class Receiver:
    """Take requests in, and answer as ``behave`` says; what was answered by 2xx is taken.

    Args:
        port: any that is free unless given.
    """

    def __init__(self, port: int = 0) -> None:
        self.behave: Behaviour = ok
        self.got: list[Got] = []
        self.taken: list[Got] = []
        self._news = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver._meet(self, Got(headers, body, self.path))

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that went away is what some tests are about."""

        self._server = Server(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/s3cret"

    def _meet(self, handler: BaseHTTPRequestHandler, got: Got) -> None:
        with self._news:
            self.got.append(got)
            self._news.notify_all()
        answer = self.behave(got)
        status, headers, words = answer if isinstance(answer, tuple) else (answer, {}, "")
        if 200 <= status < 300:
            with self._news:
                self.taken.append(got)
                self._news.notify_all()
        body = words.encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def wait(self, condition: Callable[[Receiver], bool], seconds: float = TIMEOUT) -> None:
        """Wait until something is true of what came."""
        with self._news:
            assert self._news.wait_for(lambda: condition(self), seconds), self.kinds()

    def kinds(self) -> list[str]:
        """Give the types of what was taken, in its order."""
        return [got.kind for got in self.taken]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
