"""The run's end of its conversation with the scheduler, in a process that is the callback's.

A callback may close every descriptor that it does not know. Nothing of ours is then written
into what got its number: what cannot be said is not said, and the exit code says why.
"""

from __future__ import annotations

import select
import socket
import threading
from typing import Any

from .. import forking
from ..descriptors import identity, out_of_the_way
from .wire import MOST_AT_ONCE, send_line


class Talk:
    """Say and hear, as long as the descriptor is ours.

    Args:
        conversation: is moved, and of no use to the caller any more.
    """

    def __init__(self, conversation: socket.socket) -> None:
        self._socket = socket.socket(fileno=out_of_the_way(conversation.detach()))
        self._identity = identity(self._socket.fileno())
        forking.close_in_children(self._socket.fileno())
        self._lock = threading.Lock()

    @property
    def is_ours(self) -> bool:
        """Tell whether nobody has closed it."""
        return identity(self._socket.fileno()) == self._identity

    def say(self, **said: Any) -> bool:
        """Say one thing, and tell whether that was possible.

        Args:
            said: JSON-native.
        """
        with self._lock:
            try:
                if self.is_ours:
                    send_line(self._socket, **said)
                    return True
            except OSError:
                pass
        return False

    def break_line(self) -> None:
        """Let what comes next be understood, although a signal cut off what was said before."""
        if self.is_ours:
            self._socket.sendall(b"\n")

    def hear(self, seconds: float | None = None) -> bytes | None:
        """Wait for what the scheduler says.

        Args:
            seconds: to wait; for ever unless given.

        Returns:
            what came, nothing where the scheduler is gone; ``None`` where nothing came.
        """
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        if not ready or not self.is_ours:
            return None
        try:
            return self._socket.recv(MOST_AT_ONCE)
        except OSError:
            return b""
