"""The least: a sleep to the minute, one statement, and the calls."""

from __future__ import annotations

import threading
import time

import psycopg

from ..harness.project import dsn
from . import DUE
from .waiting import Waiting


class Case(Waiting):
    """A thread that sleeps once."""

    def begin(self) -> None:
        """Sleep."""
        self._calls = list[float]()
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def called(self, since: float) -> list[float]:
        """Give the calls.

        Args:
            since: the minute.
        """
        return [each for each in self._calls if each >= since]

    def end(self) -> None:
        """Wake it."""
        self._ended.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._ended.wait(60 - time.time() % 60):
            self._connection.execute("SELECT 1")
            self._calls += [time.time() for _ in range(DUE)]
