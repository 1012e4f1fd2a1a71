"""Callbacks in virtual time, and how their runs end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..core.declarations.declaration import Declaration
from ..runtime.lifecycle import inside
from ..runtime.outcome import failed, succeeded
from ..runtime.runners import Load
from ..runtime.work import Run, Work, invoke
from ..store.results import Result

if TYPE_CHECKING:
    from .instance import Instance


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


@dataclass(order=True)
class End:
    """The planned end of a run.

    Args:
        at: its instant.
        order: of the start, so that ends of one instant keep their order.
        owner: the instance that runs it.
        work: the run.
        error: the exception that it raises, ``None`` for a success.
    """

    at: datetime
    order: int
    owner: Instance = field(compare=False)
    work: Work = field(compare=False)
    error: BaseException | None = field(compare=False)

    def result(self) -> Result:
        """Return the result of the run, dated where its end was planned."""
        duration = (self.at - self.work.run.started_at).total_seconds()
        if self.error is None:
            return succeeded(self.work, self.at, duration)
        return failed(self.work, self.error, self.at, duration)


class Queue:
    """The runner of one instance: keeps claimed runs until the tick is over."""

    def __init__(self) -> None:
        self.waiting: list[Work] = []

    def submit(self, work: Work) -> None:
        """Keep one run.

        Args:
            work: a claimed run.
        """
        self.waiting.append(work)

    def prepare(self, declarations: Iterable[Declaration]) -> None:
        """Do nothing: virtual time needs no preparation."""

    def look(self) -> None:
        """Do nothing: virtual time needs no waiting."""

    @property
    def load(self) -> Load:
        """Return how many wait."""
        return Load("simulation", 0, 0, len(self.waiting))

    def close(self) -> None:
        """Drop the runs that were never called."""
        self.waiting.clear()


def outcome(work: Work) -> BaseException | None:
    """Call a callback in this thread.

    Args:
        work: a claimed run.

    Returns:
        the exception that it raised, if any.
    """
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
