"""Remarks about accepted expressions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from .expression import CronExpression
from .names import MONTHS

_LENGTHS: Final = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}

# Years begin with each weekday, and are leap years or not, in a cycle of 28.
_CYCLE: Final = tuple(datetime(year, 1, 1, tzinfo=UTC) for year in range(2001, 2030))
_TICK: Final = timedelta(seconds=1)


class Lacking(NamedTuple):
    """A day that is named, and the named months that lack it (or have it in leap years)."""

    day: int
    months: tuple[int, ...]


def fires_only_in_some_years(expression: CronExpression) -> bool:
    """Return whether there are years without a date that an expression names."""
    has_rules = expression.day_rules or expression.weekday_rules
    if expression.every is not None or (expression.months != {2} and not has_rules):
        return False
    following = (expression.next_after(begin - _TICK, UTC) for begin in _CYCLE[:-1])
    pairs = zip(following, _CYCLE[1:], strict=True)
    return any(found is None or found >= end for found, end in pairs)


def days_some_months_lack(expression: CronExpression) -> tuple[Lacking, ...]:
    """List the days that an expression names and some of its months do not have.

    A day that ends a row of named days is left out: ``28-31`` means the end of any month.

    Source: 002 Expression Validation.
    """
    days = {day for day in expression.days if day - 1 not in expression.days}
    days |= {rule.value for rule in expression.day_rules if rule.kind == "nearest_working_day"}
    if not expression.day_restricted:
        return ()
    lacking = (
        Lacking(day, tuple(m for m in sorted(expression.months) if _LENGTHS.get(m, 31) < day))
        for day in sorted(days)
    )
    return tuple(each for each in lacking if each.months)


def remarks_on(expression: CronExpression) -> tuple[str, ...]:
    """Return remarks on an ojs expression as sentences without a full stop."""
    if expression.dialect == "posix":
        return ()
    lacking = (
        f"day {day} does not exist in {', '.join(_month(month, day) for month in months)}"
        for day, months in days_some_months_lack(expression)
    )
    return (*expression.remarks, *lacking)


def _month(month: int, day: int) -> str:
    return "February of most years" if (month, day) == (2, 29) else MONTHS[month - 1]
