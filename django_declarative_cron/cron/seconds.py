"""Schedules with a field for seconds: the minutes of another schedule, and seconds in each."""

from __future__ import annotations

from typing import Protocol

from .civil import CivilSchedule, Masks, lowest
from .ruled import RuledSchedule

_ON_THE_MINUTE = 1


class Civil(Protocol):
    """Search the local times that the fields of an expression name, in local seconds."""

    @property
    def unit(self) -> int:
        """Return how long a named local time lasts: 60 for minutes, 1 for seconds."""

    def names(self, local: int) -> bool:
        """Tell whether the local time that holds a local second is named."""

    def next_from(self, local: int) -> int | None:
        """Return the first named local time that begins at a local second or later."""

    def last_until(self, local: int) -> int | None:
        """Return the last named local time that begins at a local second or earlier."""

    def count(self, low: int, high: int) -> int:
        """Count the named local times that begin at ``low`` or later and before ``high``."""


class SecondsSchedule:
    """Search named seconds.

    Args:
        minutes: names the minutes.
        seconds: mask of the seconds within each.
    """

    __slots__ = ("_first", "_last", "_minutes", "_seconds")

    unit = 1

    def __init__(self, minutes: CivilSchedule, seconds: int) -> None:
        self._minutes = minutes
        self._seconds = seconds
        self._first = lowest(seconds)
        self._last = seconds.bit_length() - 1

    def names(self, local: int) -> bool:
        """Tell whether a local second is named."""
        return bool(self._seconds >> local % 60 & 1) and self._minutes.names(local)

    def next_from(self, local: int) -> int | None:
        """Return the first named second at a local second or later."""
        second = local % 60
        left = self._seconds >> second
        if left and self._minutes.names(local):
            return local + lowest(left)
        minute = self._minutes.next_from(local - second + 60)
        return None if minute is None else minute + self._first

    def last_until(self, local: int) -> int | None:
        """Return the last named second at a local second or earlier."""
        second = local % 60
        gone = self._seconds & (2 << second) - 1
        if gone and self._minutes.names(local):
            return local - second + gone.bit_length() - 1
        minute = self._minutes.last_until(local - second - 1)
        return None if minute is None else minute + self._last

    def count(self, low: int, high: int) -> int:
        """Count the named seconds from ``low`` on and before ``high``."""
        whole = self._minutes.count(low - low % 60, high - high % 60)
        counted = whole * self._seconds.bit_count()
        return counted - self._begun(low) + self._begun(high)

    def _begun(self, local: int) -> int:
        """Count the named seconds of a minute before one of them."""
        if not self._minutes.names(local):
            return 0
        return (self._seconds & (1 << local % 60) - 1).bit_count()


def schedule_of(masks: Masks) -> Civil:
    """Return the plainest schedule that can search the given fields."""
    has_rules = masks.day_rules or masks.weekday_rules
    minutes = RuledSchedule(masks) if has_rules else CivilSchedule(masks)
    if masks.seconds == _ON_THE_MINUTE:
        return minutes
    return SecondsSchedule(minutes, masks.seconds)
