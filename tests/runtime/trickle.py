"""A receiver whose answer comes byte by byte, slower than anybody would wait for."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n" + b"x" * 40

_PAUSE = 0.1


class Trickle:
    """Answer each request correctly, and take seconds for it.

    Args:
        at_once: so many bytes of the answer come at once.
    """

    def __init__(self, at_once: int = 0) -> None:
        self._at_once = at_once
        self._ending = threading.Event()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.getsockname()[1]}/hook"

    def _serve(self) -> None:
        with suppress(OSError):
            while not self._ending.is_set():
                taken, _ = self._server.accept()
                self._threads.append(threading.Thread(target=self._answer, args=(taken,)))
                self._threads[-1].start()

    def _answer(self, taken: socket.socket) -> None:
        with taken, suppress(OSError):
            taken.recv(65536)
            taken.sendall(ANSWER[: self._at_once])
            for byte in ANSWER[self._at_once :]:
                if self._ending.wait(_PAUSE):
                    return
                taken.sendall(bytes([byte]))

    def close(self) -> None:
        """Let it end, whatever it is at."""
        self._ending.set()
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for thread in self._threads:
            thread.join()
