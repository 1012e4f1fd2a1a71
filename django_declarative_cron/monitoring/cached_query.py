"""Cache the result of a slow query for the scrapes of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ..runtime.clock import Clock, system_clock
from ..runtime.connections import own_connections, renew
from ..signals import report

T = TypeVar("T")

MAX_AGE = 5.0
"""Seconds for which a result is used again."""


class CachedQuery(Generic[T]):
    """Read on demand, one thread at a time, and keep the last result if reading fails."""

    def __init__(self, read: Callable[[], T | None], clock: Clock = system_clock) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._read_at: float | None = None

    def get(self) -> tuple[T | None, float, bool]:
        """Return the result, its age in seconds, and whether the age is at most ``MAX_AGE``."""
        with self._lock:
            if self._read_at is None or self._clock.monotonic() - self._read_at >= MAX_AGE:
                self._refresh()
            if self._read_at is None:
                return None, 0.0, False
            age = self._clock.monotonic() - self._read_at
            return self._value, age, age < MAX_AGE

    def _refresh(self) -> None:
        # The thread of a scrape ends with its response.
        with own_connections():
            try:
                self._value, self._read_at = self._read(), self._clock.monotonic()
            except Exception as error:
                renew(error)
                report("Reading rows for the metrics", error, then="older ones are shown")
