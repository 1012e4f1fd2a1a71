"""Durations in ISO 8601, as 002 writes those of a retry policy: ``PT30S``, ``PT1H30M``.

Weeks, days, hours, minutes and seconds, of which the last may have a fraction. Years and
months are refused: their length depends on when they begin.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = ("weeks", "days", "hours", "minutes", "seconds")
_FORM: Final = re.compile(
    r"P(?!$)(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?!$)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:[.,][0-9]+)?)S)?)?"
)
_CALENDAR: Final = re.compile(r"P[0-9.,WD]*[0-9][YM]")
_MOST_DIGITS: Final = 15
_MICROSECONDS: Final = 1_000_000


def read_duration(text: str) -> timedelta:
    """Read a duration.

    Args:
        text: such as ``PT0.5S``; finer than a microsecond is cut off.

    Raises:
        ValueError: it is none, with the reason and what to write, readable after the name
            of what it is for.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(_flaw(text))
    parts = dict(zip(_UNITS, match.groups("0"), strict=True))
    parts["seconds"], _, fraction = parts["seconds"].replace(",", ".").partition(".")
    if any(len(digits.lstrip("0")) > _MOST_DIGITS for digits in parts.values()):
        raise ValueError("is too long a duration")
    numbers = {unit: int(digits.lstrip("0") or "0") for unit, digits in parts.items()}
    try:
        return timedelta(microseconds=int(f"{fraction[:6]:0<6}"), **numbers)
    except OverflowError:
        raise ValueError("is too long a duration") from None


def write_duration(duration: timedelta) -> str:
    """Write a duration that is not negative, hours being its greatest unit."""
    seconds, microseconds = divmod(duration // timedelta(microseconds=1), _MICROSECONDS)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{microseconds:06}".rstrip("0") if microseconds else ""
    written = f"{hours}H" if hours else ""
    written += f"{minutes}M" if minutes else ""
    if seconds or fraction or not written:
        written += f"{seconds}{fraction}S"
    return f"PT{written}"


def _flaw(text: str) -> str:
    if _CALENDAR.match(text):
        return f"{text[:40]!r} has years or months, whose length varies: write days, such as P30D"
    return f"{text[:40]!r} is no duration of ISO 8601: write such as PT30S, PT5M or PT1H30M"
