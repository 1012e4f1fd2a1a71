"""The newest answer of something slow, for whoever must not wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import connections

from ..runtime.clock import Clock, system_clock
from ..runtime.connections import leave_pool, renew
from ..signals import report
from ..store.database import alias

T = TypeVar("T")

FRESH = 5.0
"""Seconds for which an answer is as good as a new one."""

LINGER = 300.0
"""Seconds for which it keeps its connection for the next who asks."""

PATIENCE = 3.0
"""Seconds that somebody who asks waits for a new one."""


class Latest(Generic[T]):
    """Ask in a thread with a connection of its own, and only when somebody wants to know.

    Args:
        read: asks.
        clock: by which answers grow old.
    """

    def __init__(self, read: Callable[[], T | None], clock: Clock = system_clock) -> None:
        self._read = read
        self._clock = clock
        self._news = threading.Condition()
        self._value: T | None = None
        self._read_at: float | None = None
        self._is_asked = self._is_closed = False
        self._thread: threading.Thread | None = None

    @classmethod
    def of(cls, value: T | None) -> Latest[T]:
        """Make one that has its answer."""
        made = cls(lambda: value)
        made._value, made._read_at = value, made._clock.monotonic()
        return made

    def get(self) -> tuple[T | None, float, bool]:
        """Return the newest answer, how old it is in seconds, and whether it is new."""
        with self._news:
            if not self._is_fresh():
                self._is_asked = True
                self._start()
                self._news.notify_all()
                self._news.wait_for(self._is_fresh, PATIENCE)
            age = 0.0 if self._read_at is None else self._clock.monotonic() - self._read_at
            return self._value, age, self._is_fresh()

    def close(self) -> None:
        """Let the thread end, and its connection with it."""
        with self._news:
            self._is_closed = True
            self._news.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(PATIENCE)

    def _is_fresh(self) -> bool:
        return self._read_at is not None and self._clock.monotonic() - self._read_at < FRESH

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._run, name="declarative-cron-metrics", daemon=True
            )
            self._thread.start()

    def _run(self) -> None:
        leave_pool(alias())
        try:
            while True:
                with self._news:
                    # Nobody asks any more: the connection is somebody else's.
                    self._news.wait_for(lambda: self._is_asked or self._is_closed, LINGER)
                    if self._is_closed:
                        return
                    if not self._is_asked:
                        self._thread = None  # Whoever asks from here on needs another one.
                        return
                    self._is_asked = False
                try:
                    value = self._read()
                except Exception as error:
                    renew(error)
                    report("Reading rows for the metrics", error, then="older ones are shown")
                    continue
                with self._news:
                    self._value, self._read_at = value, self._clock.monotonic()
                    self._news.notify_all()
        finally:
            connections.close_all()
