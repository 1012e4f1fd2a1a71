"""A network between a scheduler and its database, which can go silent without a word."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

_PIECE = 65536


class Proxy:
    """Hand bytes on between a port of its own and a server's socket; or do not.

    While it is silent nothing is handed on in either direction, ends of connections
    neither, and new ones are taken and get no answer. What was sent meanwhile is lost, or
    arrives when the silence is over, as after a cable was pulled for a moment.

    Args:
        target: path of the server's socket.
        around: settings of a connection that does not lead through it.
    """

    def __init__(self, target: str, around: Mapping[str, Any]) -> None:
        self._target = target
        self.around = around
        self._flows = threading.Event()
        self._flows.set()
        self._loses = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._start(self._listen)

    def go_silent(self, *, losing: bool) -> None:
        """Hand nothing on from now on.

        Args:
            losing: what is sent meanwhile never arrives.
        """
        self._loses = losing
        self._flows.clear()

    def recover(self) -> None:
        """Hand everything on again."""
        self._flows.set()

    def cut(self) -> None:
        """End every connection there is."""
        for each in self._sockets:
            _close(each)

    def close(self) -> None:
        """Listen no more, and cut off whoever is there."""
        self._flows.set()
        _close(self._listener)
        self.cut()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                self._start(self._connect, client, server)

    def _connect(self, client: socket.socket, server: socket.socket) -> None:
        self._flows.wait()
        try:
            server.connect(self._target)
        except OSError:
            _close(client)
            return
        self._start(self._pump, server, client)
        self._pump(client, server)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                is_lost = self._loses and not self._flows.is_set()
                self._flows.wait()
                if is_lost:
                    # A stream with a hole in it is of no use to anybody.
                    break
                sink.sendall(piece)
        self._flows.wait()
        for each in (source, sink):
            _close(each)

    @staticmethod
    def _start(function: Any, *args: Any) -> None:
        threading.Thread(target=function, args=args, daemon=True).start()


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def before(settings: Mapping[str, Any]) -> Iterator[tuple[Proxy, dict[str, Any]]]:
    """Put a network before a server; give it, and the settings that lead through it.

    Args:
        settings: of a connection to a server that listens on a socket.
    """
    is_mysql = settings["ENGINE"].endswith("mysql")
    options = dict(settings["OPTIONS"])
    here = f"{settings['HOST']}/.s.PGSQL.{settings['PORT']}"
    around = {key: settings[key] for key in ("HOST", "PORT", "OPTIONS", "USER")}
    proxy = Proxy(options.pop("unix_socket") if is_mysql else here, around)
    try:
        yield proxy, {"HOST": "127.0.0.1", "PORT": str(proxy.port), "OPTIONS": options}
    finally:
        proxy.close()
