"""HTTP requests with one deadline for the whole exchange.

The total timeout of urllib3 limits the connect and then each single read, so a receiver that
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
    """Read from a socket up to a monotonic second."""

    def __init__(self, raw: Any, sock: Any, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left)
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        super().close()
        self._raw.close()


class _Answer(HTTPResponse):
    """A response that is read up to its deadline."""

    def __init__(self, sock: Any, *given: Any, deadline: float, **options: Any) -> None:
        super().__init__(sock, *given, **options)
        self.fp = io.BufferedReader(_Until(self.fp.detach(), sock, deadline))


class _Bounded:
    """A connection that limits its responses to the rest of the total timeout."""

    def getresponse(self) -> Any:
        here: Any = self
        deadline = time.monotonic() + here.timeout
        here.response_class = partial(_Answer, deadline=deadline)
        return super().getresponse()  # type: ignore[misc]


class _Connection(_Bounded, HTTPConnection):
    """A connection by HTTP."""


class _SafeConnection(_Bounded, HTTPSConnection):
    """A connection by HTTPS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafePool(HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


class Exchanges(urllib3.PoolManager):
    """A pool of connections that treats total timeouts as deadlines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(retries=False, **options)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _SafePool}
