"""The least: rows copied in; all of them read and compared; one indexed query."""

from __future__ import annotations

import psycopg

from ..harness.project import dsn
from ..memory.idling import NEVER
from .restarting import Restarting


class Case(Restarting):
    """What it read is compared and kept, as a scheduler keeps what it is to call."""

    def register(self) -> None:
        """Copy."""
        with psycopg.connect(**dsn(), autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE task (name text PRIMARY KEY, cron text, wake timestamptz)"
            )
            connection.execute("CREATE INDEX ON task (wake)")
            with (
                connection.cursor() as cursor,
                cursor.copy("COPY task (name, cron, wake) FROM STDIN") as copy,
            ):
                for name in self.names:
                    copy.write_row((name, NEVER, "2999-01-01"))

    def restart(self) -> None:
        """Read, and compare."""
        found = self._connection.execute("SELECT name, cron FROM task").fetchall()
        self._there = dict(found)
        assert self._there == dict.fromkeys(self.names, NEVER)

    def idle(self) -> int:
        """Ask when the next task is to be looked at."""
        self._connection.execute("SELECT min(wake) FROM task").fetchall()
        return 1

    def count(self) -> int:
        """Count the rows."""
        self._connection = psycopg.connect(**dsn(), autocommit=True)
        return int(self._connection.execute("SELECT count(*) FROM task").fetchall()[0][0])

    def close(self) -> None:
        """Leave."""
        self._connection.close()
