"""Suggestions: extensions of other crons written out in plain POSIX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from ..exceptions import FieldParseError
from .names import MACROS, MONTHS, WEEKDAYS, sundays
from .posix import FIELDS, WEEKDAY, Field, parse_field, parse_text


def _numbered(names: tuple[str, ...], start: int) -> dict[str, int]:
    """Number full names and their first three letters."""
    return {
        name.lower(): number
        for number, full in enumerate(names, start)
        for name in (full, full[:3])
    }


_NAMES: Final = {"month": _numbered(MONTHS, 1), "weekday": _numbered(WEEKDAYS, 0)}
_ELEMENT = re.compile(
    r"(?:(?P<star>\*)|(?P<low>[a-z]+|[0-9]{1,4})(?:-(?P<high>[a-z]+|[0-9]{1,4}))?)"
    r"(?:/(?P<step>[0-9]{1,4}))?"
)


class _Unclear(Exception):
    """Raised when cron programs disagree on a text, or when it has no meaning."""


def posix_equivalent(text: str) -> str | None:
    """Spell out steps, names, macros, weekday 7 and wrap-around ranges.

    Args:
        text: an expression that the posix dialect rejects.

    Returns:
        The POSIX text with the same meaning in ordinary cron, or None when the text is valid
        already, or when cron programs disagree on its meaning.
    """
    if _accepts(text):
        return None
    lowered = text.lower()
    parts = MACROS.get(lowered.strip(), lowered).split()
    if len(parts) != len(FIELDS) or _ambiguous_days(parts[2], parts[4]):
        return None
    try:
        spelled = " ".join(map(_spell_field, parts, FIELDS))
    except _Unclear:
        return None
    return spelled if _accepts(spelled) else None


def _accepts(text: str) -> bool:
    try:
        parse_text(text)
    except FieldParseError:
        return False
    return True


def _ambiguous_days(day: str, weekday: str) -> bool:
    # Some crons take a day field that begins with a star as unrestricted, others only "*".
    return day != "*" != weekday and (day.startswith("*") or weekday.startswith("*"))


def _spell_field(text: str, field: Field) -> str:
    if text == "*/1":
        return "*"
    try:
        parse_field(text, field)
    except FieldParseError:
        return listed({value for element in text.split(",") for value in _values(element, field)})
    return text


def _values(element: str, field: Field) -> list[int]:
    match = _ELEMENT.fullmatch(element)
    if match is None:
        raise _Unclear
    low, high = _bounds(match, field)
    step = int(match["step"] or 1)
    wraps = low > high
    # A lone number with a step means two things in the wild, and so does a stepped wrap.
    if not 1 <= step <= field.high - field.low or (match["step"] and (wraps or low == high)):
        raise _Unclear
    values = (
        [*range(low, field.high + 1), *range(field.low, high + 1)]
        if wraps
        else (range(low, high + 1, step))
    )
    return [value % 7 for value in values] if field is WEEKDAY else list(values)


def _bounds(match: re.Match[str], field: Field) -> tuple[int, int]:
    if match["star"]:
        if not match["step"]:
            raise _Unclear
        return field.low, field.high
    low = _number(match["low"], field)
    high = low if match["high"] is None else _number(match["high"], field)
    if field is WEEKDAY and match["high"] is not None:
        low, high = sundays(low, high)
    return low, high


def _number(text: str, field: Field) -> int:
    number = int(text) if text.isdigit() else _NAMES.get(field.name, {}).get(text, -1)
    highest = 7 if field is WEEKDAY else field.high
    if not field.low <= number <= highest:
        raise _Unclear
    return number


def listed(values: Iterable[int]) -> str:
    """Write values as a list, three and more in a row as a range."""
    pieces: list[str] = []
    for _, group in groupby(enumerate(sorted(values)), key=lambda pair: pair[1] - pair[0]):
        row = [value for _, value in group]
        if len(row) > 2:
            pieces.append(f"{row[0]}-{row[-1]}")
        else:
            pieces.extend(map(str, row))
    return ",".join(pieces)
