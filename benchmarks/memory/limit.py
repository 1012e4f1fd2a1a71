"""The least: a connection, and one query a second for what is due next."""

from __future__ import annotations

import threading

import psycopg

from ..harness.project import dsn
from .idling import Idling


class Case(Idling):
    """It holds no task in memory."""

    def fill(self) -> None:
        """Make the rows."""
        with psycopg.connect(**dsn(), autocommit=True) as connection:
            connection.execute("CREATE TABLE task (name text PRIMARY KEY, wake timestamptz)")
            connection.execute("CREATE INDEX ON task (wake)")
            with connection.cursor() as cursor:
                rows = [(name,) for name in self.names]
                cursor.executemany("INSERT INTO task VALUES (%s, 'infinity')", rows)

    def begin(self) -> None:
        """Look once a second."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(**dsn(), autocommit=True) as connection:
            while not self._ended.wait(1):
                connection.execute("SELECT min(wake) FROM task").fetchall()
