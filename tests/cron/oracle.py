"""Occurrences found the slow way: walk the minutes or seconds, and compare field by field."""

from __future__ import annotations

from bisect import bisect_right
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def at(text: str) -> datetime:
    """Read an instant, in UTC unless the text says otherwise."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


LIMITS = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


class Fields(NamedTuple):
    """The texts of the six fields of an expression, in either dialect."""

    texts: tuple[str, ...]

    def name(self, local: datetime) -> bool:
        """Tell whether a local second is named."""
        second, minute, hour, day, month, weekday = self.texts
        clock = (local.second, second, 0), (local.minute, minute, 1), (local.hour, hour, 2)
        if not all(value in _plain(text, place) for value, text, place in clock):
            return False
        if local.month not in _plain(month, 4):
            return False
        by_day = local.day in _days(day, local.year, local.month)
        by_weekday = local.day in _days_on(weekday, local.year, local.month)
        if day != "*" and weekday != "*":
            return by_day or by_weekday
        return by_day and by_weekday


@lru_cache(maxsize=4096)
def _days(text: str, year: int, month: int) -> set[int]:
    """Return the days of a month that a day field names."""
    every = range(1, monthrange(year, month)[1] + 1)
    working = [day for day in every if date(year, month, day).isoweekday() < 6]
    found: set[int] = set()
    for element in text.split(","):
        if element == "L":
            found.add(every[-1])
        elif element == "LW":
            found.add(working[-1])
        elif element.endswith("W"):
            wanted = int(element[:-1])
            if wanted in every:
                found.add(min(working, key=lambda day: abs(day - wanted)))
        else:
            found |= _plain(element, 3)
    return found


@lru_cache(maxsize=4096)
def _days_on(text: str, year: int, month: int) -> set[int]:
    """Return the days of a month that a weekday field names."""
    every = range(1, monthrange(year, month)[1] + 1)
    on = {day: date(year, month, day).isoweekday() % 7 for day in every}
    found: set[int] = set()
    for element in text.split(","):
        if element.endswith("L"):
            found.add([day for day in every if on[day] == _weekday(element[:-1])][-1])
        elif "#" in element:
            weekday, _, nth = element.partition("#")
            same = [day for day in every if on[day] == _weekday(weekday)]
            found |= set(same[int(nth) - 1 : int(nth)])
        else:
            named = {value % 7 for value in _plain(element, 5)}
            found |= {day for day in every if on[day] in named}
    return found


def fields_of(text: str) -> Fields:
    """Read a valid expression of five or six fields."""
    parts = text.upper().split()
    return Fields(tuple(parts if len(parts) == 6 else ["0", *parts]))


def _weekday(text: str) -> int:
    return (int(text) if text.isdigit() else _WEEKDAYS.index(text)) % 7


@lru_cache(maxsize=4096)
def _plain(text: str, place: int) -> frozenset[int]:
    found: set[int] = set()
    for element in text.split(","):
        if not any(rule in element for rule in ("#", "W", "L")) or element[:3] in words_of(place):
            found |= _values(element, place)
    return frozenset(found)


def words_of(place: int) -> list[str]:
    return {4: _MONTHS, 5: _WEEKDAYS}.get(place, [])


def _values(element: str, place: int) -> set[int]:
    low, high = LIMITS[place]
    span, _, step = element.partition("/")
    if span == "*":
        return set(range(low, (6 if place == 5 else high) + 1, int(step or 1)))
    first, _, last = span.partition("-")
    begin = _number(first, place)
    end = _number(last, place) if last else begin
    if place == 5 and last and end == 0 < begin:
        end = 7
    return set(range(begin, end + 1, int(step or 1)))


def _number(text: str, place: int) -> int:
    if text.isdigit():
        return int(text)
    return words_of(place).index(text) + (place == 4)


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

    def named(self, fields: Fields, *, gap: str = "skip", fold: str = "first") -> list[datetime]:
        found = {
            instant for instant, local in self._met(fields) if fold == "both" or not local.fold
        }
        if gap == "shift":
            found |= {instant for instant, lost in self.gaps if any(map(fields.name, lost))}
        return sorted(found)

    def _find(self, fields: Fields) -> list[tuple[datetime, datetime]]:
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


class Seconds(Walk):
    """Hold every second of a window with the local time it shows.

    Args:
        zone: the time zone.
        begin: first instant of the window.
        end: last instant of the window.
    """

    def __init__(self, zone: tzinfo, begin: datetime, end: datetime) -> None:
        count = int((end - begin).total_seconds())
        instants = [begin + SECOND * number for number in range(count + 1)]
        pairs = [(instant, instant.astimezone(zone)) for instant in instants]
        super().__init__(begin, end, pairs, SECOND)


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
