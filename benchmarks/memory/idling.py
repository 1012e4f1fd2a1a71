"""What everybody is asked in this part: to wait, with many tasks of which none is due."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import psycopg

from ..harness.declared import names
from ..harness.parts import Sample
from ..harness.project import dsn

SECONDS = 10.0
NEVER = "0 0 29 2 *"


class Idling(ABC):
    """A contender of this part: what makes the rows is another process than the one measured."""

    wait = SECONDS

    def prepare(self, size: int) -> None:
        """Fill the database in a child process.

        Args:
            size: how many tasks.
        """
        self.names, self._before = names(size), resident()
        leave_database()
        child = os.fork()
        if not child:
            self.fill()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @abstractmethod
    def fill(self) -> None:
        """Make the rows; the process ends afterwards."""

    @abstractmethod
    def begin(self) -> None:
        """Wait for what is due, in threads."""

    @abstractmethod
    def end(self) -> None:
        """Wait no more."""

    def measure(self) -> Iterator[Sample]:
        """Begin, wait until it is quiet, and look at what the next seconds take."""
        self.begin()
        time.sleep(min(2.0, self.wait))
        yield Sample("memory before", self._before)
        yield Sample("memory", resident())
        with psycopg.connect(**dsn(), autocommit=True) as connection:
            committed, busy, began = _committed(connection), time.process_time(), time.monotonic()
            time.sleep(self.wait)
            seconds = time.monotonic() - began
            yield Sample("one core", (time.process_time() - busy) / seconds * 100)
            # Its statistics come late, by up to a second.
            more = _committed(connection) - committed
            yield Sample("transactions", more / seconds)
        self.end()

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""


def leave_database() -> None:
    """Close Django's connections: a child process must not share one."""
    if "django" in sys.modules:
        from django.db import connections

        connections.close_all()


def resident() -> float:
    """Give the megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _committed(connection: psycopg.Connection[tuple[int]]) -> int:
    asked = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    return int(connection.execute(asked).fetchall()[0][0])
