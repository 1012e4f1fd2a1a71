"""Close connections that go silent: no answer, no error, and no limit by the server.

A thread polls the waits for the database. After a time limit it shuts the socket, so that
the waiting thread gets the error that the network did not report. The thread that owns
the connection duplicates the socket beforehand, because mysqlclient does not return it to
other threads while a statement runs.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

STEP = 1.0
"""Seconds between two looks."""

PATIENCE = 15
"""Looks for which a statement may go unanswered; servers end it sooner, where they can."""

_IDLE_LOOKS = 30


class _Wait:
    """One thread that waits for the database."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._connection = connection
        self._raw: Any = None
        self._twins: list[int] = []
        self.looks = 0

    def restart(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Wait anew with each statement."""
        self.looks = 0
        if self._raw is not self._connection.connection:
            self._raw = self._connection.connection
            self._twins += _twins_of(self._raw)
        return execute(sql, params, many, context)

    def cut(self) -> None:
        """Shut the socket under the connection, which stays its thread's to close."""
        for twin in self._twins:
            with suppress(OSError), socket.socket(fileno=os.dup(twin)) as held:
                held.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        for twin in self._twins:
            os.close(twin)


class Watchdog:
    """Shut sockets that wait too long; the thread lives while there is one to watch."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Reset in a forked child: the thread does not exist there, and its lock may be locked."""
        self._waits: set[_Wait] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, connection: BaseDatabaseWrapper) -> Iterator[None]:
        """Watch this thread's use of a connection."""
        if connection.vendor not in ("postgresql", "mysql"):
            yield
            return
        wait = _Wait(connection)
        with self._lock:
            self._waits.add(wait)
            self._be_there()
        try:
            with connection.execute_wrapper(wait.restart):
                yield
        finally:
            with self._lock:
                self._waits.discard(wait)
                wait.end()

    def _be_there(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._look, name="declarative-cron-watchdog", daemon=True
            )
            self._thread.start()

    def _look(self) -> None:
        idle, pause = 0, threading.Event()
        while not pause.wait(STEP):
            with self._lock:
                idle = 0 if self._waits else idle + 1
                if idle > _IDLE_LOOKS:
                    self._thread = None
                    return
                for wait in self._waits:
                    wait.looks += 1
                    if wait.looks > PATIENCE:
                        wait.cut()


watchdog = Watchdog()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watchdog.forget)


def _twins_of(raw: Any) -> list[int]:
    """Return a duplicate of the socket of a driver's connection, if there is one.

    Only its number: to make a socket of it asks the system several things, each time.
    """
    with suppress(Exception):
        number = raw.fileno() if hasattr(raw, "fileno") else raw._sock.fileno()
        return [os.dup(number)]
    return []
