"""Callbacks in virtual time, and how their runs end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from ..core.declarations.declaration import Declaration
from ..runtime.lifecycle import inside
from ..runtime.runners import Load
from ..runtime.work import Run, Work, invoke


class SimulatedFailure(Exception):
    """Raised by a simulated job with the outcome ``fail``."""


class SimulatedCrash(BaseException):
    """Kill the process of the working instance at the place where this is raised.

    A callback may raise it, or a wrapper around the database's statements.
    """


@dataclass(eq=False)
class Job:
    """A callback in virtual time.

    Args:
        outcomes: ``ok``, ``fail`` or an exception to raise; the last one repeats.
        duration: the duration of each run.
    """

    outcomes: Sequence[str | BaseException] = ("ok",)
    duration: timedelta = timedelta(0)
    runs: list[Run] = field(default_factory=list)

    def __call__(self, run: Run) -> None:
        """Begin one run; raise the exception of its outcome."""
        outcome = self.outcomes[min(len(self.runs), len(self.outcomes) - 1)]
        self.runs.append(run)
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome != "ok":
            raise SimulatedFailure(outcome)


class Queue:
    """The runner of one instance: keeps claimed runs until the tick is over, and never waits."""

    def __init__(self) -> None:
        self.waiting: list[Work] = []

    def submit(self, work: Work) -> None:
        self.waiting.append(work)

    def prepare(self, declarations: Iterable[Declaration]) -> None: ...

    def look(self) -> None: ...

    @property
    def load(self) -> Load:
        return Load("simulation", 0, 0, len(self.waiting))

    def close(self) -> None:
        self.waiting.clear()


def outcome(work: Work) -> BaseException | None:
    """Call a callback in this thread, and return the exception that it raised, if any."""
    try:
        with inside(work.owner):
            value = invoke(work)
            if inspect.isawaitable(value):
                asyncio.run(_awaited(value))
    except SimulatedCrash:
        raise
    except BaseException as error:
        return error
    return None


async def _awaited(value: Awaitable[Any]) -> None:
    await value
