"""Runs in flight: whose they are, and which end of theirs the theory can be told; pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from .agenda import Record
from .presence import Presence
from .values import Ran


class Ending(NamedTuple):
    """How a run ended.

    Args:
        at: when, ``None`` where it goes on, or ends with the crash of all instances.
        event: its name in the alphabet.
        values: what its record says besides.
    """

    at: datetime | None
    event: str
    values: Record


class Busy(NamedTuple):
    """A run in flight.

    Args:
        run: id of its row.
        until: its end, or that of the history.
        is_told: whether the judge knows of it.
        is_handed: whether a worker calls it.
    """

    run: int
    until: datetime
    is_told: bool
    is_handed: bool


class Flights(dict[str, Busy]):
    """What is in flight, by the name of the task.

    Args:
        workers: instances that never schedule: they call what was handed to them.
    """

    def __init__(self, workers: Collection[UUID]) -> None:
        super().__init__()
        self._workers = workers

    def handed(self, run: Ran) -> Record:
        """Give what records of a run say of the worker that took it over: of none, nothing.

        Args:
            run: the run.
        """
        return {"handed": True} if run.instance in self._workers else {}

    def end(self, run: Ran) -> None:
        """Take note of the end of a run, unless another one is in flight.

        Args:
            run: the run.
        """
        busy = self.get(run.task)
        if busy is not None and busy.run == run.id:
            del self[run.task]

    def left(self) -> None:
        """Take note of the end of the last scheduler: what workers call goes on."""
        for name in [name for name, busy in self.items() if not busy.is_handed]:
            del self[name]

    def untold_until(self) -> datetime | None:
        """Give how long a stop waits for runs that the judge does not know of."""
        own = (busy for busy in self.values() if not busy.is_handed)
        return max((busy.until for busy in own if not busy.is_told), default=None)


def ending(run: Ran, presence: Presence | None, until: datetime, handed: Record) -> Ending:
    """Say how a run ended, as the theory understands it.

    Args:
        run: the run.
        presence: in which it started.
        until: the end of the history.
        handed: what its records say of a worker.
    """
    at, values = run.finished_at, {**handed}
    is_lost = at is None and presence is not None and _is_lost(run, presence)
    if is_lost or (run.outcome == "interrupted" and at is not None):
        # Found by a survivor, it is a failure whose retry is due when it is found. With the
        # last instance gone, the crash says it all.
        found_at = at or until
        values["retry_at"] = found_at
        over = presence.ended if presence is not None else None
        if presence is not None and over is not None and found_at >= over and not handed:
            at = over if presence.is_orderly else None
    return Ending(at, "REs" if run.outcome == "succeeded" else "REf", values)


def _is_lost(run: Ran, presence: Presence) -> bool:
    """Tell whether nobody calls a run any more, found interrupted or not yet."""
    # What no worker had taken up is let go of by the stop that finds it.
    is_let_go = run.instance is None and presence.is_orderly
    return is_let_go or presence.has_lost(run.instance)
