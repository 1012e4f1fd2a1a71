"""Requests whose whole exchange has one deadline, however slowly the bytes of an answer come.

What urllib3 calls a total bounds the connecting and then each single read, so a receiver that
sends a byte now and then would hold its sender for ever.
"""

from __future__ import annotations

import io
import time
from functools import partial
from http.client import HTTPResponse
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class _Until(io.RawIOBase):
    """Read from a socket as long as there is time.

    Args:
        raw: reads from it.
        sock: the socket.
        deadline: monotonic second.
    """

    def __init__(self, raw: Any, sock: Any, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has come; wait for it as long as there is time.

        Args:
            buffer: takes it.

        Raises:
            TimeoutError: there is no more time.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        """Close it, but not the socket."""
        super().close()
        self._raw.close()


class _Answer(HTTPResponse):
    """An answer that is read by its deadline."""

    def __init__(self, sock: Any, *given: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *given, **options)
        self.fp = io.BufferedReader(_Until(self.fp.detach(), sock, deadline))


class _Bounded:
    """A connection whose answers have what is left of the total when the request is sent."""

    def getresponse(self) -> Any:
        """Give the answer to the request that was sent."""
        here: Any = self
        deadline = time.monotonic() + here.timeout
        here.response_class = partial(_Answer, deadline=deadline)
        return super().getresponse()  # type: ignore[misc]


class _Connection(_Bounded, HTTPConnection):
    """To an address that begins with ``http:``."""


class _SafeConnection(_Bounded, HTTPSConnection):
    """To an address that begins with ``https:``."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafePool(HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


class Exchanges(urllib3.PoolManager):
    """Connections whose requests have a deadline each, where they are given a total timeout."""

    def __init__(self, **options: Any) -> None:
        super().__init__(retries=False, **options)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _SafePool}
