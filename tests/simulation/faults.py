"""Faults of the world around the engine, put between any two statements of the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from django.db import OperationalError

from django_declarative_cron.testing import SimulatedCrash

Of = Literal["all", "writes"]

_LONGEST = 8_000
_WRITES = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM) ")


class HotLoopError(AssertionError):
    """Tell that one step of a story asks the database without end."""


def writes(text: str) -> bool:
    return _WRITES.match(text) is not None


class Faults:
    """A wrapper around every statement, which refuses or kills as it was told to.

    A statement that is refused, or before which the process goes, never reaches the database.
    Where only those that write are counted, only those are struck. ``has_written`` says whether
    any was made since it was last set back that writes.
    """

    def __init__(self) -> None:
        self._crash_in = 0
        self._refuse_in = 0
        self._times = 0
        self._of_writes = False
        self._made = 0
        self._lifted = False
        self.has_written = False

    @property
    def are_armed(self) -> bool:
        return bool(self._crash_in or self._times)

    def crash_at(self, statement: int, of: Of) -> None:
        """Let the process that makes the n-th statement from here be gone before it."""
        self._crash_in, self._of_writes = statement, of == "writes"

    def refuse(self, statement: int, of: Of, times: int) -> None:
        """Refuse so many statements, from the n-th on."""
        self._refuse_in, self._of_writes, self._times = statement, of == "writes", times

    def disarm(self) -> None:
        self._crash_in = self._refuse_in = self._times = 0

    def begin_step(self) -> None:
        self._made = 0

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let the story itself look without meeting or moving a fault."""
        before, self._lifted = self._lifted, True
        try:
            yield
        finally:
            self._lifted = before

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        does_write = writes(sql)
        self.has_written |= does_write
        if not self._lifted and not sql.startswith("ROLLBACK"):
            self._count()
            if does_write or not self._of_writes:
                self._strike(context["cursor"])
        return execute(sql, params, many, context)

    def _count(self) -> None:
        self._made += 1
        if self._made > _LONGEST:
            raise HotLoopError(f"more than {_LONGEST} statements in one step")

    def _strike(self, cursor: Any) -> None:
        if self._crash_in:
            self._crash_in -= 1
            if not self._crash_in:
                self.disarm()
                # Django closes it for what is an error, and a dead process has none open.
                cursor.close()
                raise SimulatedCrash
        if self._times:
            self._refuse_in = max(self._refuse_in - 1, 0)
            if not self._refuse_in:
                self._times -= 1
                raise OperationalError("the server closed the connection")
