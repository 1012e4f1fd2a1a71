"""Schedules that count from an instant: ``@every 1h30m`` (002 Interval Expression).

Elapsed time is counted, untouched by the clock on the wall; no local time is ever named.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from .civil import Masks
from .posix import Parsed

SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(days=18_263)

_UNITS: Final = {
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_DURATION = re.compile(r"(?=[0-9])(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+)s)?(?:([0-9]+)ms)?")
_MOST_DIGITS = 16


def parsed(length: timedelta, remarks: tuple[str, ...] = ()) -> Parsed:
    """Return the content of an interval expression, which names no fields."""
    return Parsed(Masks(0, 0, 0, 0, 0, False, 0), False, False, False, remarks, length)


def duration(text: str) -> timedelta | None:
    """Read a duration such as ``1h30m`` or ``500ms``, the greater unit first.

    Returns:
        None when it is invalid, ``timedelta.max`` when it is too long.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    total = timedelta()
    for digits, unit in zip(match.groups("0"), _UNITS.values(), strict=True):
        if len(digits.lstrip("0")) > _MOST_DIGITS:
            return timedelta.max
        try:
            total += int(digits) * unit
        except OverflowError:
            return timedelta.max
    return total


def spelled(length: timedelta) -> str:
    """Write a duration the way ``duration`` reads it."""
    pieces = []
    for letter, unit in _UNITS.items():
        number, length = divmod(length, unit)
        if number:
            pieces.append(f"{number}{letter}")
    return "".join(pieces) or "0s"


class Interval(NamedTuple):
    """The ends of an interval that is repeated from an anchor on; the anchor is none of them."""

    length: timedelta
    anchor: datetime

    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first end after an instant."""
        return self._end(max(0, self._elapsed(instant)) + 1)

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        """Return the last end that is not after an instant."""
        number = self._elapsed(instant)
        return self._end(number) if number > 0 else None

    def count_between(self, after: datetime, until: datetime) -> int:
        """Count the ends after one instant and not after another."""
        return max(0, self._elapsed(until) - max(0, self._elapsed(after)))

    def _elapsed(self, instant: datetime) -> int:
        try:
            return (instant - self.anchor) // self.length
        except TypeError:
            raise ValueError(f"instant must be an aware datetime, got {instant!r}") from None

    def _end(self, number: int) -> datetime | None:
        try:
            return self.anchor + number * self.length
        except OverflowError:
            return None
