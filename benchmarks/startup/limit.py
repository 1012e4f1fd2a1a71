"""The least: rows copied in, all rows read and compared, and the one that differs written."""

from __future__ import annotations

import psycopg

from ..harness.project import dsn
from .deploying import Deploying


class Case(Deploying):
    """A table with the name and the schedule, an index on when each is next looked at."""

    def prepare(self, size: int) -> None:
        """Make the table.

        Args:
            size: the number of tasks.
        """
        super().prepare(size)
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        self._connection.execute(
            "CREATE TABLE task (name text PRIMARY KEY, cron text, wake timestamptz)"
        )
        self._connection.execute("CREATE INDEX ON task (wake)")

    def clear(self) -> None:
        """Let nothing be declared."""
        self._connection.execute("TRUNCATE task")

    def declare(self, names: list[str], crons: list[str]) -> int:
        """Write what differs.

        Args:
            names: of the tasks.
            crons: their schedules.
        """
        wanted = dict(zip(names, crons, strict=True))
        with self._connection.transaction(), self._connection.cursor() as cursor:
            there = dict(cursor.execute("SELECT name, cron FROM task").fetchall())
            if there == wanted:
                return 1
            if there:
                changed = [(cron, name) for name, cron in wanted.items() if there[name] != cron]
                cursor.executemany("UPDATE task SET cron = %s WHERE name = %s", changed)
            else:
                with cursor.copy("COPY task (name, cron) FROM STDIN") as copy:
                    for row in wanted.items():
                        copy.write_row(row)
        return 2

    def rows(self) -> dict[object, object]:
        """Give the rows."""
        return dict(self._connection.execute("SELECT name, ctid::text FROM task").fetchall())

    def close(self) -> None:
        """Leave."""
        self._connection.close()
