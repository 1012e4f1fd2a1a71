"""The least: one indexed query when idle, one statement that starts and one that records."""

from __future__ import annotations

import psycopg

from ..harness.declared import names
from ..harness.project import dsn
from . import DUE
from .passing import Passing

START = """
WITH due AS (
    UPDATE task SET wake = now() + interval '1 day' WHERE wake <= now() RETURNING name
)
INSERT INTO run (name, started) SELECT name, now() FROM due RETURNING id, name
"""
RECORD = "UPDATE run SET finished = now(), outcome = 'succeeded' WHERE id = ANY(%s)"


class Case(Passing):
    """Two tables, an index on when each task is next looked at."""

    most_due = DUE[-1]
    records = True
    size = 0

    def prepare(self, size: int) -> None:
        """Fill the tables.

        Args:
            size: the number of tasks.
        """
        self.size, self._started = size, list[int]()
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        for statement in (
            "CREATE TABLE task (name text PRIMARY KEY, wake timestamptz)",
            "CREATE INDEX ON task (wake)",
            "CREATE TABLE run (id bigserial PRIMARY KEY, name text, started timestamptz,"
            " finished timestamptz, outcome text)",
        ):
            self._connection.execute(statement)
        with self._connection.cursor() as cursor, cursor.copy("COPY task FROM STDIN") as copy:
            for name in names(size):
                copy.write_row((name, "2999-01-01"))
        self._connection.execute("ANALYZE")

    def idle(self) -> int:
        """Ask when the next task is to be looked at."""
        self._connection.execute("SELECT min(wake) FROM task").fetchall()
        return 1

    def make_due(self, number: int) -> None:
        """Let some be due.

        Args:
            number: how many.
        """
        self._connection.execute(
            "UPDATE task SET wake = now() WHERE name = ANY(%s)", [names(number)]
        )

    def start(self) -> int:
        """Start them."""
        self._started = [row[0] for row in self._connection.execute(START).fetchall()]
        return 1

    def record(self) -> int:
        """Record them."""
        self._connection.execute(RECORD, [self._started])
        return 1

    def right(self) -> int:
        """Count what was recorded since."""
        return self._connection.execute(
            "DELETE FROM run WHERE outcome = 'succeeded' RETURNING id"
        ).rowcount

    def close(self) -> None:
        """Leave."""
        self._connection.close()
