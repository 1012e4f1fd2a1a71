"""Days that no number names: the last one, the weekday nearest the 15th, the third Friday."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["last", "last_working_day", "nearest_working_day", "last_weekday", "nth_weekday"]

_SUNDAY, _SATURDAY = 0, 6


class DayRule(NamedTuple):
    """Name days of a month in words of the Quartz family: ``L``, ``LW``, ``15W``, ``5L``, ``5#3``.

    Args:
        kind: which of these.
        value: the day, or the weekday with Sunday as 0, that it speaks of.
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
