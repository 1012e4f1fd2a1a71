"""Schedules with rules for days, such as the last one of the month.

Which days of a month these are depends on two things alone, its length and the weekday it
begins with. There are 28 such months, so each answer is computed once.
"""

from __future__ import annotations

from .civil import CivilSchedule, Masks, month_mask, weeks_from

_LENGTHS = {2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}


class RuledSchedule(CivilSchedule):
    """Search the civil minutes of fields that hold rules for days."""

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
    """Tell whether any month of any year has a day that the fields name."""
    return any(
        days_named(masks, length, first)
        for month in range(1, 13)
        if masks.months >> month & 1
        for length in _LENGTHS.get(month, (31,))
        for first in range(7)
    )
