"""The temporal operators of the theory as small memories, fed one position at a time.

A formula over the past needs a few bits of memory, never the past itself. Names are the
theory's (004 Helper Modalities, 004 Stateful).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

_NOTHING = timedelta(0)


class Moment(NamedTuple):
    """An instant and position in a trace; moments compare in the order of the trace.

    Args:
        at: the instant.
        position: its number, ``BEFORE`` for events before any action at ``at``.
    """

    at: datetime
    position: int

    def __str__(self) -> str:
        where = "" if self.position == BEFORE else f" (position {self.position})"
        return f"{self.at:%Y-%m-%d %H:%M:%S.%f}{where}"


BEFORE = -1


class Mountain:
    """``MountainDue_x``: no ``MinuteStart`` since ``Due_x``; one memory serves all tasks.

    A minute start at which nothing is due changes nothing else, so none has to be fed in:
    the civil minutes of every zone start with those of UTC. A trace may state more. Instants count
    and not positions, as ``Due`` is a truth about an instant.
    """

    def __init__(self) -> None:
        self._stated: datetime | None = None

    def start_minute(self, at: datetime) -> None:
        self._stated = at

    def minute_of(self, at: datetime) -> datetime:
        minute = at.replace(second=0, microsecond=0)
        return minute if self._stated is None else max(minute, self._stated)

    def holds(self, due: Moment | None, at: datetime) -> bool:
        """Return whether the minute that began with a due is still in progress."""
        return due is not None and due.at >= self.minute_of(at)


class RSucc:
    """``RS ∧ (¬(REf ∨ Crash) U REs)``: which starts succeed, known when the success comes."""

    __slots__ = ("_pending",)

    def __init__(self) -> None:
        self._pending: list[tuple[Moment, Moment | None]] = []

    def start(self, moment: Moment, due: Moment | None) -> None:
        self._pending.append((moment, due))

    def fail(self) -> None:
        """Take note of a failure or a crash: no start before it succeeds any more."""
        self._pending.clear()

    def succeed(self) -> list[tuple[Moment, Moment | None]]:
        """Record a success and return the starts that led to it."""
        succeeded, self._pending = self._pending, []
        return succeeded


class AtMostOne:
    """``AtMostOne(B, A)``: between two A there is a B, on the second A at the latest."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: Moment | None = None

    def allows(self, moment: Moment, newest_b: Moment | None) -> bool:
        """Record an A and return whether it is allowed."""
        previous, self.last = self.last, moment
        return previous is None or (newest_b is not None and newest_b > previous)


class FrozenTime:
    """``compute``, as far as a trace shows it: the total frozen time.

    A freeze covers its start and not its end; freezes may overlap.
    """

    def __init__(self) -> None:
        self._before = _NOTHING
        self._since: datetime | None = None
        self._until: datetime | None = None

    def freeze(self, since: datetime, until: datetime) -> None:
        if self._until is not None and since <= self._until:
            self._until = max(self._until, until)
            return
        self._before = self.total(since)
        self._since, self._until = since, until

    def thaw(self, at: datetime) -> None:
        """End the freeze in force: an action disproved it."""
        if self.covers(at):
            self._until = at

    def covers(self, at: datetime) -> bool:
        return (
            self._since is not None and self._until is not None and self._since <= at < self._until
        )

    def total(self, at: datetime) -> timedelta:
        if self._since is None or self._until is None:
            return self._before
        return self._before + max(min(at, self._until) - self._since, _NOTHING)
