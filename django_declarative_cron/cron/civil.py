"""Days that no number names: the last one, the weekday nearest the 15th, the third Friday."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

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
        """Return the days of a month that the rule names.

        Args:
            length: of the month, in days.
            first: the weekday of its first day, Sunday as 0.
        """
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
_LONG, _SHORT, _FEBRUARY, _LEAP_FEBRUARY = ((2 << length) - 2 for length in (31, 30, 28, 29))
_LENGTHS = tuple(
    {2: _FEBRUARY, 4: _SHORT, 6: _SHORT, 9: _SHORT, 11: _SHORT}.get(month, _LONG)
    for month in range(13)
)
# Six weeks of one bit per week: a weekday mask times this is that mask week after week.
_SIX_WEEKS = sum(1 << 7 * week for week in range(6))

EVERY_DAY = _LONG
EVERY_MONTH = (2 << 12) - 2
EVERY_WEEKDAY = (1 << 7) - 1


def lowest(mask: int) -> int:
    """Return the least value named by a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


def month_mask(year: int, month: int) -> int:
    """Return the days that a month has."""
    if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
        return _LEAP_FEBRUARY
    return _LENGTHS[month]


def weeks_from(weekdays: int, first: int) -> int:
    """Return the days that fall on some weekdays, in a month that begins with ``first``."""
    return weekdays * _SIX_WEEKS >> first << 1


class Masks(NamedTuple):
    """The parsed fields, and whether the two day fields are joined by OR.

    ``day_rules`` and ``weekday_rules`` name further days, see ``day_rules``.
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


class CivilSchedule:
    """Search the civil minutes that the fields of an expression name.

    Args:
        masks: the parsed fields.
    """

    __slots__ = ("_daily", "_first_second", "_last_second", "_masks", "_weeks")

    unit = 60

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._weeks = masks.weekdays * _SIX_WEEKS
        self._daily = masks.months == EVERY_MONTH and self._every_day(masks)
        self._first_second = lowest(masks.hours) * 3600 + lowest(masks.minutes) * 60
        last_hour, last_minute = masks.hours.bit_length() - 1, masks.minutes.bit_length() - 1
        self._last_second = last_hour * 3600 + last_minute * 60

    @staticmethod
    def _every_day(masks: Masks) -> bool:
        full_days, full_week = masks.days == EVERY_DAY, masks.weekdays == EVERY_WEEKDAY
        return full_days or full_week if masks.either_day else full_days and full_week

    def names(self, local: int) -> bool:
        """Return whether the minute of a local second is named."""
        day, second = divmod(local, SECONDS_PER_DAY)
        hour, minute = divmod(second // 60, 60)
        in_day = self._masks.hours >> hour & self._masks.minutes >> minute & 1
        return bool(in_day) and self._next_day(day) == day

    def next_from(self, local: int) -> int | None:
        """Return the first named minute that begins at a local second or later."""
        today, second = divmod(local + 59, SECONDS_PER_DAY)
        if today < 1:
            today, second = 1, 0
        day = self._next_day(today)
        if day == today:
            found = self._next_in_day(second // 60)
            if found is not None:
                return day * SECONDS_PER_DAY + found
            day = self._next_day(today + 1)
        return None if day is None else day * SECONDS_PER_DAY + self._first_second

    def last_until(self, local: int) -> int | None:
        """Return the last named minute that begins at a local second or earlier."""
        today, second = divmod(local, SECONDS_PER_DAY)
        if today > _LAST_DAY:
            today, second = _LAST_DAY, SECONDS_PER_DAY - 1
        day = self._last_day(today)
        if day == today:
            found = self._last_in_day(second // 60)
            if found is not None:
                return day * SECONDS_PER_DAY + found
            day = self._last_day(today - 1)
        return None if day is None else day * SECONDS_PER_DAY + self._last_second

    def count(self, low: int, high: int) -> int:
        """Count the named minutes that begin at ``low`` or later and before ``high``."""
        first, begin = divmod(low + 59, SECONDS_PER_DAY)
        last, end = divmod(high + 59, SECONDS_PER_DAY)
        per_day = self._masks.hours.bit_count() * self._masks.minutes.bit_count()
        total = per_day * self._count_days(first, last)
        if self._next_day(first) == first:
            total -= self._count_in_day(begin // 60)
        if self._next_day(last) == last:
            total += self._count_in_day(end // 60)
        return total

    def _next_in_day(self, minute_of_day: int) -> int | None:
        hour, minute = divmod(minute_of_day, 60)
        hours = self._masks.hours >> hour
        if hours & 1:
            minutes = self._masks.minutes >> minute
            if minutes:
                return (minute_of_day + lowest(minutes)) * 60
        hours >>= 1
        if not hours:
            return None
        return (hour + 1 + lowest(hours)) * 3600 + self._first_second % 3600

    def _last_in_day(self, minute_of_day: int) -> int | None:
        hour, minute = divmod(minute_of_day, 60)
        if self._masks.hours >> hour & 1:
            minutes = self._masks.minutes & (2 << minute) - 1
            if minutes:
                return hour * 3600 + (minutes.bit_length() - 1) * 60
        hours = self._masks.hours & (1 << hour) - 1
        if not hours:
            return None
        return (hours.bit_length() - 1) * 3600 + self._last_second % 3600

    def _count_in_day(self, minute_of_day: int) -> int:
        hour, minute = divmod(minute_of_day, 60)
        earlier_hours = self._masks.hours & (1 << hour) - 1
        total = earlier_hours.bit_count() * self._masks.minutes.bit_count()
        if self._masks.hours >> hour & 1:
            total += (self._masks.minutes & (1 << minute) - 1).bit_count()
        return total

    def _days_of(self, year: int, month: int, first: int) -> int:
        """Return the named days of the month that starts at the ordinal ``first``."""
        length = month_mask(year, month)
        # An ordinal modulo 7 is the weekday with Sunday as 0.
        by_weekday = self._weeks >> first % 7 << 1
        if self._masks.either_day:
            return (self._masks.days | by_weekday) & length
        return self._masks.days & by_weekday & length

    def _next_day(self, day: int) -> int | None:
        if not 1 <= day <= _LAST_DAY:
            return None
        if self._daily:
            return day
        today = date.fromordinal(day)
        year, month = today.year, today.month
        if self._masks.months >> month & 1:
            days = self._days_of(year, month, day - today.day + 1) >> today.day
            if days:
                return day + lowest(days)
        return self._first_day_after(year, month)

    def _first_day_after(self, year: int, month: int) -> int | None:
        while True:
            months = self._masks.months >> month + 1
            if months:
                month += 1 + lowest(months)
            else:
                year, month = year + 1, lowest(self._masks.months)
            if year > _LAST_YEAR:
                return None
            first = date(year, month, 1).toordinal()
            days = self._days_of(year, month, first)
            if days:
                return first + lowest(days) - 1

    def _last_day(self, day: int) -> int | None:
        if not 1 <= day <= _LAST_DAY:
            return None
        if self._daily:
            return day
        today = date.fromordinal(day)
        year, month = today.year, today.month
        if self._masks.months >> month & 1:
            first = day - today.day + 1
            days = self._days_of(year, month, first) & (2 << today.day) - 1
            if days:
                return first + days.bit_length() - 2
        return self._last_day_before(year, month)

    def _last_day_before(self, year: int, month: int) -> int | None:
        while True:
            months = self._masks.months & (1 << month) - 1
            if months:
                month = months.bit_length() - 1
            else:
                year, month = year - 1, self._masks.months.bit_length() - 1
            if year < 1:
                return None
            first = date(year, month, 1).toordinal()
            days = self._days_of(year, month, first)
            if days:
                return first + days.bit_length() - 2

    def _count_days(self, low: int, high: int) -> int:
        low, high = max(low, 1), min(high, _LAST_DAY + 1)
        if self._daily:
            return max(0, high - low)
        total = 0
        while low < high:
            today = date.fromordinal(low)
            year, month, first = today.year, today.month, low - today.day + 1
            total += self._count_in_month(year, month, first, low, high)
            low = first + month_mask(year, month).bit_count()
        return total

    def _count_in_month(self, year: int, month: int, first: int, low: int, high: int) -> int:
        if not self._masks.months >> month & 1:
            return 0
        days = self._days_of(year, month, first) >> 1 + low - first
        return (days & (1 << high - low) - 1).bit_count()


_MONTH_LENGTHS = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}


class RuledSchedule(CivilSchedule):
    """Search the civil minutes of fields with rules for days."""

    __slots__ = ("_known",)

    def __init__(self, masks: Masks) -> None:
        super().__init__(masks)
        self._known: dict[tuple[int, int], int] = {}

    def _days_of(self, year: int, month: int, first: int) -> int:
        key = month_mask(year, month), first % 7
        days = self._known.get(key)
        if days is None:
            days = self._known[key] = days_named(self._masks, key[0].bit_count(), key[1])
        return days


def days_named(masks: Masks, length: int, first: int) -> int:
    """Return the days of a month that the two day fields name together.

    Args:
        masks: the parsed fields.
        length: of the month, in days.
        first: the weekday of its first day, Sunday as 0.
    """
    by_day, by_weekday = masks.days, weeks_from(masks.weekdays, first)
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
        for month in range(1, 13)
        if masks.months >> month & 1
        for length in _MONTH_LENGTHS.get(month, (31,))
        for first in range(7)
    )


_ON_THE_MINUTE = 1


class Civil(Protocol):
    """Search the local times that the fields of an expression name, in local seconds."""

    @property
    def unit(self) -> int:
        """Return how long a named local time lasts: 60 for minutes, 1 for seconds."""

    def names(self, local: int) -> bool:
        """Return whether the local time of a local second is named."""

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
        """Return whether a local second is named."""
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


# A process parses every expression when it starts, but computes dates for few of them.
@lru_cache(maxsize=4096)
def schedule_of(masks: Masks) -> Civil:
    """Return the plainest schedule that can search the given fields."""
    has_rules = masks.day_rules or masks.weekday_rules
    minutes = RuledSchedule(masks) if has_rules else CivilSchedule(masks)
    if masks.seconds == _ON_THE_MINUTE:
        return minutes
    return SecondsSchedule(minutes, masks.seconds)
