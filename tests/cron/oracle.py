"""Occurrences found the slow way: walk the minutes, ask zoneinfo, compare field by field."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, cached_property
from itertools import pairwise
from typing import NamedTuple, Protocol

MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    """Read an instant, in UTC unless the text says otherwise."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Named(Protocol):
    """Tell which local minutes an expression names."""

    def name(self, local: datetime) -> bool: ...


class Fields(NamedTuple):
    """Hold an expression as the sets of its values."""

    sets: tuple[frozenset[int], ...]
    either_day: bool

    def name(self, local: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.sets
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        day, weekday = local.day in days, local.isoweekday() % 7 in weekdays
        return (day or weekday) if self.either_day else (day and weekday)


def fields_of(text: str) -> Fields:
    """Read a valid expression by other means than the package does."""
    parts = text.split()
    limits = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    sets = tuple(
        frozenset(_values(part, low, high)) for part, (low, high) in zip(parts, limits, strict=True)
    )
    return Fields(sets, parts[2] != "*" and parts[4] != "*")


def _values(part: str, low: int, high: int) -> Iterator[int]:
    if part == "*":
        part = f"{low}-{high}"
    for element in part.split(","):
        first, _, last = element.partition("-")
        yield from range(int(first), int(last or first) + 1)


class Walk:
    """Hold every local time that a walk over a window met, with the instant it begins.

    Args:
        begin: first instant of the window.
        end: last instant of the window.
        pairs: each instant of the walk and its local time, in order.
        step: from one local time to the next where no clock changes.
    """

    def __init__(
        self,
        begin: datetime,
        end: datetime,
        pairs: list[tuple[datetime, datetime]],
        step: timedelta,
    ) -> None:
        self.begin, self.end, self.pairs, self.step = begin, end, pairs, step
        # Each rule for changes of the clock asks for the same.
        self._met = cache(self._find)

    def named(self, fields: Named, *, gap: str = "skip", fold: str = "first") -> list[datetime]:
        found = {
            instant for instant, local in self._met(fields) if fold == "both" or not local.fold
        }
        if gap == "shift":
            found |= {instant for instant, lost in self.gaps if any(map(fields.name, lost))}
        return sorted(found)

    def _find(self, fields: Named) -> list[tuple[datetime, datetime]]:
        return [(instant, local) for instant, local in self.pairs if fields.name(local)]

    @cached_property
    def gaps(self) -> list[tuple[datetime, list[datetime]]]:
        """List the first local time after each gap, and the local times the gap took."""
        found = []
        for (_, before), (instant, after) in pairwise(self.pairs):
            missing, end = before.replace(tzinfo=None) + self.step, after.replace(tzinfo=None)
            if missing < end:
                count = -((missing - end) // self.step)
                found.append((instant, [missing + self.step * number for number in range(count)]))
        return found


class Minutes(Walk):
    """Hold every local minute that begins within a window, with the instant it begins.

    Args:
        zone: the time zone.
        begin: first instant of the window.
        end: last instant of the window.
    """

    def __init__(self, zone: tzinfo, begin: datetime, end: datetime) -> None:
        super().__init__(begin, end, [], MINUTE)
        moment = begin.replace(second=0, microsecond=0) - MINUTE
        while moment <= end:
            self.pairs += sorted(self._within(moment, zone))
            moment += MINUTE

    def _within(self, moment: datetime, zone: tzinfo) -> set[tuple[datetime, datetime]]:
        found = set()
        # Offsets may have seconds and may change within the minute, so both its ends are asked.
        for delta in (0, 59):
            shown = (moment + timedelta(seconds=delta)).astimezone(zone).second
            candidate = moment + timedelta(seconds=(delta - shown) % 60)
            local = candidate.astimezone(zone)
            if local.second == 0 and self.begin <= candidate <= self.end:
                found.add((candidate, local))
        return found


def first_after(occurrences: list[datetime], instant: datetime) -> datetime | None:
    """Return the least occurrence after an instant."""
    place = bisect_right(occurrences, instant)
    return occurrences[place] if place < len(occurrences) else None


def last_until(occurrences: list[datetime], instant: datetime) -> datetime | None:
    """Return the greatest occurrence that is not after an instant."""
    place = bisect_right(occurrences, instant)
    return occurrences[place - 1] if place else None


def count_within(occurrences: list[datetime], after: datetime, until: datetime) -> int:
    """Count the occurrences after one instant and not after another."""
    return max(0, bisect_right(occurrences, until) - bisect_right(occurrences, after))
