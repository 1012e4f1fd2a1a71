"""The least: a row at the start and an update at the end, each committed by itself; and batches."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg

from ..harness.parts import Sample
from ..harness.project import dsn
from .running import Running

BEGIN = "INSERT INTO run (name, started) VALUES (%s, now()) RETURNING id"
END = "UPDATE run SET finished = now(), outcome = 'succeeded' WHERE id = %s"
BEGIN_ALL = "INSERT INTO run (name, started) SELECT unnest(%s::text[]), now() RETURNING id"
END_ALL = "UPDATE run SET finished = now(), outcome = 'succeeded' WHERE id = ANY(%s)"
BATCH = 100


class Case(Running):
    """One connection, no thread."""

    def prepare(self, size: int) -> None:
        """Make the table.

        Args:
            size: the number of runs.
        """
        super().prepare(size)
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        self._connection.execute(
            "CREATE TABLE run (id bigserial PRIMARY KEY, name text, started timestamptz,"
            " finished timestamptz, outcome text)"
        )

    def queue(self) -> None:
        """Begin with no rows."""
        self._connection.execute("TRUNCATE run")

    def run(self) -> float:
        """Run them one after the other."""
        began = time.perf_counter()
        for number in range(self.size):
            row = self._connection.execute(BEGIN, [f"task-{number}"]).fetchall()[0]
            self._connection.execute(END, row)
        return time.perf_counter() - began

    def recorded(self) -> int:
        """Count the rows."""
        counted = "SELECT count(*) FROM run WHERE outcome = 'succeeded'"
        return int(self._connection.execute(counted).fetchall()[0][0])

    def measure(self) -> Iterator[Sample]:
        """Run them one by one, and in batches."""
        yield from super().measure()
        self.queue()
        began = time.perf_counter()
        for first in range(0, self.size, BATCH):
            batch = [f"task-{n}" for n in range(first, min(first + BATCH, self.size))]
            rows = self._connection.execute(BEGIN_ALL, [batch]).fetchall()
            self._connection.execute(END_ALL, [[row[0] for row in rows]])
        seconds = time.perf_counter() - began
        right = self.recorded()
        yield Sample(f"in batches of {BATCH}", right / seconds, right, self.size)

    def close(self) -> None:
        """Leave."""
        self._connection.close()
