"""The names of months and weekdays, and the first and last day of a week."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

SHORT_NAMES: Final[Mapping[str, Mapping[str, int]]] = {
    "month": {name[:3].lower(): number for number, name in enumerate(MONTHS, 1)},
    "weekday": {name[:3].lower(): number for number, name in enumerate(WEEKDAYS)},
}


def short_name(field: str, number: int) -> str:
    """Return three capital letters for a month or a weekday."""
    return next(name for name, each in SHORT_NAMES[field].items() if each == number).upper()


def sundays(low: int, high: int) -> tuple[int, int]:
    """Return a weekday range in which Sunday begins as 0 and ends as 7."""
    if low % 7 == 0:
        return 0, high if low == 0 else high % 7
    return low, high or 7


MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
