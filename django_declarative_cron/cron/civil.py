"""Search the local times that the fields of an expression name.

A set of numbers is a mask: the number whose bits at these places are 1.
"""

from __future__ import annotations

from calendar import isleap, monthrange
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

from .timeline import SECONDS_PER_DAY

Kind = Literal["last", "last_working_day", "nearest_working_day", "last_weekday", "nth_weekday"]

_SUNDAY, _SATURDAY = 0, 6


class DayRule(NamedTuple):
    """Name days of a month in words of the Quartz family: ``L``, ``LW``, ``15W``, ``5L``, ``5#3``.

    Args:
        kind: which of these.
        value: its day, or its weekday with Sunday as 0.
        nth: of ``5#3`` the 3.
    """

    kind: Kind
    value: int = 0
    nth: int = 0

    def __str__(self) -> str:
        return _SPELLED[self.kind].format(self.value, self.nth)

    def days(self, length: int, first: int) -> int:
        """Return the named days of a month that begins on the weekday ``first``, Sunday as 0."""
        match self.kind:
            case "last":
                day = length
            case "last_working_day":
                day = _nearest_working_day(length, length, first)
            case "nearest_working_day":
                day = _nearest_working_day(self.value, length, first)
            case "last_weekday":
                day = length - (first + length - 1 - self.value) % 7
            case "nth_weekday":
                day = 1 + (self.value - first) % 7 + 7 * (self.nth - 1)
        return 1 << day if day <= length else 0


_SPELLED: dict[Kind, str] = {
    "last": "L",
    "last_working_day": "LW",
    "nearest_working_day": "{}W",
    "last_weekday": "{}L",
    "nth_weekday": "{}#{}",
}


def _nearest_working_day(day: int, length: int, first: int) -> int:
    """Return the day from Monday to Friday nearest to one, without leaving the month."""
    weekday = (first + day - 1) % 7
    if weekday == _SATURDAY:
        return day + 2 if day == 1 else day - 1
    if weekday == _SUNDAY:
        return day - 2 if day == length else day + 1
    return day


_LAST_DAY = date.max.toordinal()
_LAST_YEAR = date.max.year
_ON_THE_MINUTE = 1
_LENGTHS = (0, *(monthrange(2001, month)[1] for month in range(1, 13)))
# Six weeks of one bit per week: a weekday mask times this is that mask week after week.
_SIX_WEEKS = sum(1 << 7 * week for week in range(6))

_EVERY_DAY = (2 << 31) - 2
_EVERY_MONTH = (2 << 12) - 2
_EVERY_WEEKDAY = (1 << 7) - 1


class Masks(NamedTuple):
    """The parsed fields, and whether the two day fields are joined by OR.

    ``day_rules`` and ``weekday_rules`` name further days.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    either_day: bool
    seconds: int = 1
    day_rules: tuple[DayRule, ...] = ()
    weekday_rules: tuple[DayRule, ...] = ()


def values_of(mask: int) -> frozenset[int]:
    """Return the numbers in a mask."""
    return frozenset(value for value in range(mask.bit_length()) if mask >> value & 1)


def _lowest(mask: int) -> int:
    """Return the least value named by a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


def _length_of(year: int, month: int) -> int:
    return 29 if month == 2 and isleap(year) else _LENGTHS[month]


def days_named(masks: Masks, length: int, first: int) -> int:
    """Return the named days of a month that begins on the weekday ``first``, Sunday as 0."""
    by_day, by_weekday = masks.days, masks.weekdays * _SIX_WEEKS >> first << 1
    for rule in masks.day_rules:
        by_day |= rule.days(length, first)
    for rule in masks.weekday_rules:
        by_weekday |= rule.days(length, first)
    named = by_day | by_weekday if masks.either_day else by_day & by_weekday
    return named & (2 << length) - 2


def names_a_date(masks: Masks) -> bool:
    """Return whether any month of any year has a day that the fields name."""
    return any(
        days_named(masks, length, first)
        for month in values_of(masks.months)
        for length in {_LENGTHS[month], _length_of(2000, month)}
        for first in range(7)
    )


class CivilSchedule:
    """Search the local times that the fields of an expression name, in local seconds.

    ``unit`` is how long a named local time lasts: 60 for minutes, 1 for seconds.

    Args:
        masks: the parsed fields.
    """

    __slots__ = ("_days", "_is_daily", "_masks", "_times", "unit")

    def __init__(self, masks: Masks) -> None:
        self.unit = 60 if masks.seconds == _ON_THE_MINUTE else 1
        self._masks = masks
        self._times = _times_of_day(masks, self.unit)
        self._days: dict[tuple[int, int], int] = {}
        full_days, full_week = masks.days == _EVERY_DAY, masks.weekdays == _EVERY_WEEKDAY
        either, both = full_days or full_week, full_days and full_week
        self._is_daily = masks.months == _EVERY_MONTH and (either if masks.either_day else both)

    def names(self, local: int) -> bool:
        """Return whether the local time of a local second is named."""
        day, second = divmod(local, SECONDS_PER_DAY)
        return bool(self._times >> second // self.unit & 1) and self._next_day(day) == day

    def next_from(self, local: int) -> int | None:
        """Return the first named local time that begins at a local second or later."""
        today, second = divmod(local + self.unit - 1, SECONDS_PER_DAY)
        if today < 1:
            today, second = 1, 0
        day, time = self._next_day(today), second // self.unit
        if day == today:
            left = self._times >> time
            if left:
                return day * SECONDS_PER_DAY + (time + _lowest(left)) * self.unit
            day = self._next_day(today + 1)
        return None if day is None else day * SECONDS_PER_DAY + _lowest(self._times) * self.unit

    def last_until(self, local: int) -> int | None:
        """Return the last named local time that begins at a local second or earlier."""
        today, second = divmod(local, SECONDS_PER_DAY)
        if today > _LAST_DAY:
            today, second = _LAST_DAY, SECONDS_PER_DAY - 1
        day, times = self._last_day(today), self._times
        if day == today:
            times &= (2 << second // self.unit) - 1
            if not times:
                day, times = self._last_day(today - 1), self._times
        if day is None:
            return None
        return day * SECONDS_PER_DAY + (times.bit_length() - 1) * self.unit

    def count(self, low: int, high: int) -> int:
        """Count the named local times that begin at ``low`` or later and before ``high``."""
        first, begin = divmod(low + self.unit - 1, SECONDS_PER_DAY)
        last, end = divmod(high + self.unit - 1, SECONDS_PER_DAY)
        total = self._times.bit_count() * self._count_days(first, last)
        if self._next_day(first) == first:
            total -= self._count_before(begin)
        if self._next_day(last) == last:
            total += self._count_before(end)
        return total

    def _count_before(self, second: int) -> int:
        return (self._times & (1 << second // self.unit) - 1).bit_count()

    def _days_of(self, year: int, month: int, first: int) -> int:
        """Return the named days of a named month that starts at the ordinal ``first``."""
        # An ordinal modulo 7 is the weekday with Sunday as 0.
        key = _length_of(year, month), first % 7
        days = self._days.get(key)
        if days is None:
            days = self._days[key] = days_named(self._masks, *key)
        return days

    def _next_day(self, day: int) -> int | None:
        if not 1 <= day <= _LAST_DAY:
            return None
        if self._is_daily:
            return day
        today = date.fromordinal(day)
        year, month, first = today.year, today.month, day - today.day + 1
        days = 0
        if self._masks.months >> month & 1:
            days = self._days_of(year, month, first) >> today.day << today.day
        while not days:
            later = self._masks.months >> month + 1
            year, month = (year, month + 1) if later else (year + 1, 0)
            month += _lowest(later or self._masks.months)
            if year > _LAST_YEAR:
                return None
            first = date(year, month, 1).toordinal()
            days = self._days_of(year, month, first)
        return first + _lowest(days) - 1

    def _last_day(self, day: int) -> int | None:
        if not 1 <= day <= _LAST_DAY:
            return None
        if self._is_daily:
            return day
        today = date.fromordinal(day)
        year, month, first = today.year, today.month, day - today.day + 1
        days = 0
        if self._masks.months >> month & 1:
            days = self._days_of(year, month, first) & (2 << today.day) - 1
        while not days:
            earlier = self._masks.months & (1 << month) - 1
            year = year if earlier else year - 1
            month = (earlier or self._masks.months).bit_length() - 1
            if year < 1:
                return None
            first = date(year, month, 1).toordinal()
            days = self._days_of(year, month, first)
        return first + days.bit_length() - 2

    def _count_days(self, low: int, high: int) -> int:
        low, high = max(low, 1), min(high, _LAST_DAY + 1)
        if self._is_daily:
            return max(0, high - low)
        total = 0
        while low < high:
            today = date.fromordinal(low)
            year, month, first = today.year, today.month, low - today.day + 1
            if self._masks.months >> month & 1:
                days = self._days_of(year, month, first) >> today.day
                total += (days & (1 << high - low) - 1).bit_count()
            low = first + _length_of(year, month)
        return total


def _times_of_day(masks: Masks, unit: int) -> int:
    """Return the mask of the named minutes or seconds of a day."""
    in_minute = 1 if unit == 60 else masks.seconds
    in_hour = _repeated(in_minute, 60 // unit, masks.minutes)
    return _repeated(in_hour, 3600 // unit, masks.hours)


def _repeated(mask: int, width: int, places: int) -> int:
    return sum(mask << width * place for place in values_of(places))


# A process parses every expression when it starts, but computes dates for few of them.
@lru_cache(maxsize=4096)
def schedule_of(masks: Masks) -> CivilSchedule:
    """Return the schedule that searches the given fields."""
    return CivilSchedule(masks)
