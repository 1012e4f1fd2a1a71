"""Words about an expression: a description by cron-descriptor, and remarks of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from .civil import DayRule
from .expression import CronExpression
from .names import MONTHS
from .suggestions import listed

# The library names its languages with a country; only these ever reach its file names.
_SHIPPED: Final = (
    "cs_CZ da_DK de_DE el_GR en_US es_ES fa_IR fi_FI fr_FR he_IL hu_HU it_IT ja_JP kk_KZ ko_KR "
    "nb_NO nl_NL pl_PL pt_PT ro_RO ru_RU sk_SK sl_SI sv_SE ta_IN th_TH tr_TR uk_UA vi_VN zh_CN"
)
_LOCALES: Final = {code.partition("_")[0]: code for code in _SHIPPED.split()} | {
    "es_mx": "es_MX",
    "zh_hant": "zh_TW",
    "zh_tw": "zh_TW",
}
_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_SECOND, _MILLISECOND = timedelta(seconds=1), timedelta(milliseconds=1)
_CAPITALISED = re.compile(r"[A-Z][a-z]+")


def describe(
    expression: CronExpression, locale: str = "en", names: Mapping[str, str] | None = None
) -> str:
    """Return a description of an expression with a 24-hour clock, or else its text.

    Fields that match every value are described as ``*``. Two restricted day fields, and several
    rules for days, are described as alternatives. Intervals have English descriptions only.

    Args:
        expression: the expression.
        locale: a language code such as ``en`` or ``pt-br``; the default is English.
        names: translations of the English names of weekdays and months.
    """
    if expression.every is not None:
        return _interval(expression.every) if _locale(locale) == "en_US" else expression.text
    try:
        words = _describe(_canonical(expression), _locale(locale))
    except Exception:
        # The library is optional, so the page must render even if it raises.
        return expression.text
    if names is None:
        return words
    return _CAPITALISED.sub(lambda word: names.get(word[0], word[0]), words)


def _locale(locale: str) -> str:
    code = locale.lower().replace("-", "_")
    return _LOCALES.get(code) or _LOCALES.get(code.partition("_")[0], "en_US")


def _canonical(expression: CronExpression) -> tuple[str, ...]:
    """Return the meaning of an expression as one text, or as the texts that an OR joins."""
    seconds = _seconds(expression)
    minutes = _stepped(expression, expression.minutes, 60)
    hours = _stepped(expression, expression.hours, 24)
    months = _field(expression.months, 12)
    return tuple(
        f"{seconds}{minutes} {hours} {day} {months} {weekday}"
        for day, weekday in _dates(expression)
    )


def _dates(expression: CronExpression) -> list[tuple[str, str]]:
    """Write the two day fields, once for each alternative."""
    days = _alternatives(expression.days, 31, expression.day_rules)
    weekdays = _alternatives(expression.weekdays, 7, expression.weekday_rules)
    if not expression.restricted_both:
        return [(day, weekday) for day in days for weekday in weekdays]
    if "*" in (*days, *weekdays):
        return [("*", "*")]
    return [*((day, "*") for day in days), *(("*", weekday) for weekday in weekdays)]


def _alternatives(values: frozenset[int], size: int, rules: tuple[DayRule, ...]) -> list[str]:
    plain = [_field(values, size)] if values else []
    return plain if plain == ["*"] else [*plain, *map(str, rules)]


def _seconds(expression: CronExpression) -> str:
    return "" if expression.seconds == {0} else f"{_stepped(expression, expression.seconds, 60)} "


def _stepped(expression: CronExpression, values: frozenset[int], size: int) -> str:
    """Write the values of a clock's field; a step where the dialect has it."""
    if expression.dialect != "posix" and 2 < len(values) < size and size % len(values) == 0:
        step = size // len(values)
        if values == set(range(0, size, step)):
            return f"*/{step}"
    return _field(values, size)


def _field(values: frozenset[int], size: int) -> str:
    return "*" if len(values) == size else listed(values)


def _interval(every: timedelta) -> str:
    amounts = {
        "hour": every // _HOUR,
        "minute": every % _HOUR // _MINUTE,
        "second": every % _MINUTE // _SECOND,
        "millisecond": every % _SECOND // _MILLISECOND,
    }
    words = [f"{count} {unit}{'s' * (count != 1)}" for unit, count in amounts.items() if count]
    return f"Every {' '.join(words)}"


@lru_cache(maxsize=4096)
def _describe(texts: tuple[str, ...], locale: str) -> str:
    from cron_descriptor import ExpressionDescriptor, Options

    # Version 1, which django-celery-beat requires, takes no arguments here.
    options = Options()
    options.locale_code = locale
    options.use_24hour_time_format = options.day_of_week_start_index_zero = True
    first, *others = (ExpressionDescriptor(text, options).get_description() for text in texts)
    if locale != "en_US":
        return " / ".join([first, *others])
    return "; or ".join([first, *(other[0].lower() + other[1:] for other in others)])


_LENGTHS: Final = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}

# Years begin with each weekday, and are leap years or not, in a cycle of 28.
_CYCLE: Final = tuple(datetime(year, 1, 1, tzinfo=UTC) for year in range(2001, 2030))


class Lacking(NamedTuple):
    """A day that is named, and the named months that lack it (or have it in leap years)."""

    day: int
    months: tuple[int, ...]


def fires_only_in_some_years(expression: CronExpression) -> bool:
    """Return whether there are years without a date that an expression names."""
    has_rules = expression.day_rules or expression.weekday_rules
    if expression.every is not None or (expression.months != {2} and not has_rules):
        return False
    following = (expression.next_after(begin - _SECOND, UTC) for begin in _CYCLE[:-1])
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
