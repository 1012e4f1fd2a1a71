"""Schedules that count from an instant: ``@every 1h30m`` (002 Interval Expression).

Elapsed time is counted, untouched by the clock on the wall; no local time is ever named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo

from .civil import Masks
from .expression import CronExpression, Fold, Gap, rules_of
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


@dataclass(frozen=True, eq=False, repr=False)
class IntervalExpression(CronExpression):
    """Answer when an interval is over, again and again. Made by ``parse``.

    The first occurrence is one interval after the anchor, not at it.
    """

    @property
    def resolution(self) -> timedelta:
        """Return the shortest time there is: occurrences lie at any instant."""
        return timedelta.resolution

    def matches(self, civil: datetime) -> bool:
        """Return ``False``: an interval names no local time."""
        return False

    def next_after(
        self,
        instant: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> datetime | None:
        """Return the first occurrence after an instant; an ``anchor`` is required."""
        start = self._start(anchor, gap, fold)
        return self._at(start, max(0, self._elapsed(start, instant)) + 1)

    def latest_at_or_before(
        self,
        instant: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> datetime | None:
        """Return the last occurrence that is not after an instant; otherwise as ``next_after``."""
        start = self._start(anchor, gap, fold)
        number = self._elapsed(start, instant)
        return self._at(start, number) if number > 0 else None

    def count_between(
        self,
        after: datetime,
        until: datetime,
        zone: ZoneInfo | timezone,
        *,
        anchor: datetime | None = None,
        gap: Gap = "skip",
        fold: Fold = "first",
    ) -> int:
        """Count the occurrences after one instant and not after another."""
        start = self._start(anchor, gap, fold)
        past, reached = (self._elapsed(start, instant) for instant in (after, until))
        return max(0, reached - max(0, past))

    @property
    def _length(self) -> timedelta:
        assert self.every is not None
        return self.every

    def _start(self, anchor: datetime | None, gap: str, fold: str) -> datetime:
        rules_of(gap, fold)
        if anchor is None:
            raise ValueError(f"{self.text!r} counts from an instant: an anchor is needed")
        if anchor.tzinfo is None:
            raise ValueError(f"anchor must be an aware datetime, got {anchor!r}")
        return anchor.astimezone(UTC)

    def _elapsed(self, start: datetime, instant: datetime) -> int:
        try:
            return (instant - start) // self._length
        except TypeError:
            raise ValueError(f"instant must be an aware datetime, got {instant!r}") from None

    def _at(self, start: datetime, number: int) -> datetime | None:
        try:
            return start + number * self._length
        except OverflowError:
            return None
