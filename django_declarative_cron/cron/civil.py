"""The calendar side of a schedule: which minutes of the wall clock it names.

Fields are bit masks (bit n set: the value n is named), so "the next value at or after n" is
one shift and one lowest bit. Local seconds count from ordinal day 0, see ``timeline``.
"""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from .day_rules import DayRule
from .timeline import SECONDS_PER_DAY

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
    """Hold the parsed fields, and whether the two day fields are joined by OR.

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
        """Tell whether the minute that holds a local second is named."""
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
        """Return the named days of a month whose day 1 has the ordinal ``first``."""
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
