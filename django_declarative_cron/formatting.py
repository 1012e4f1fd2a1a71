"""Write instants, durations and counts: one form for commands, admin, HTTP and logs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import overload

from .cron.zones import in_zone, is_shown_twice

EARLIEST, LATEST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1900, 9000))
"""The bounds of instants that users enter: every time zone can show those between them."""

SECOND = timedelta(seconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (SECOND, "s"),
)


@overload
def iso8601(instant: datetime) -> str: ...


@overload
def iso8601(instant: None) -> None: ...


def iso8601(instant: datetime | None) -> str | None:
    """Return an instant for programs: UTC, with milliseconds where it has a fraction."""
    if instant is None:
        return None
    timespec = "milliseconds" if instant.microsecond >= 1000 else "seconds"
    return instant.astimezone(UTC).isoformat(timespec=timespec).removesuffix("+00:00") + "Z"


def format_instant(instant: datetime, zone: tzinfo) -> str:
    """Return an instant as the clocks of a zone show it, with the zone's abbreviation."""
    local = in_zone(instant, zone)
    return f"{_civil(local)} {local:%Z}"


def format_civil(instant: datetime, zone: tzinfo) -> str:
    """Return an instant as the clocks of a zone show it, for a reader who knows the zone.

    The abbreviation is added only where the clocks show the same time twice, or the zone cannot
    show the instant.
    """
    local = in_zone(instant, zone)
    if local.tzinfo is not zone or is_shown_twice(instant, zone):
        return format_instant(instant, zone)
    return _civil(local)


def _civil(local: datetime) -> str:
    return f"{local.date()} {format_clock(local)}"


def format_clock(local: datetime, *, seconds: bool = False) -> str:
    """Return the time of day, with seconds where there are any or if they are asked for."""
    return f"{local:%H:%M:%S}" if seconds or local.second else f"{local:%H:%M}"


def format_relative(instant: datetime, now: datetime) -> str:
    """Return how far an instant is from now, in its largest unit."""
    # In UTC, because subtraction within one zone ignores the hour that a clock change removes.
    distance = abs(instant.astimezone(UTC) - now.astimezone(UTC))
    if distance < SECOND:
        return "now"
    text = format_duration(distance - distance % SECOND, units=1)
    return f"in {text}" if instant > now else f"{text} ago"


def format_duration(
    length: timedelta | float, units: int = 2, *, translate: Callable[[str], str] = str
) -> str:
    """Return a duration such as ``250 ms``, ``1.2 s`` or ``2 h 5 min``, never negative.

    Args:
        length: a duration, or its seconds.
        units: number of units shown, largest first.
        translate: translates the units ``ms``, ``s``, ``min``, ``h`` and ``d``.
    """
    if not isinstance(length, timedelta):
        length = timedelta(seconds=length)
    if length < _MILLISECOND:
        return f"0 {translate('s')}"
    if length < SECOND:
        return f"{length // _MILLISECOND} {translate('ms')}"
    if length < timedelta(minutes=1):
        tenths = length // (100 * _MILLISECOND) / 10
        return f"{tenths:.1f}".removesuffix(".0") + f" {translate('s')}"
    parts: list[tuple[int, str]] = []
    for size, unit in _UNITS:
        number, length = divmod(length, size)
        if number or parts:
            parts.append((number, unit))
    return " ".join(f"{number} {translate(unit)}" for number, unit in parts[:units] if number)


def format_elapsed(
    length: timedelta | float, units: int = 2, *, translate: Callable[[str], str] = str
) -> str:
    """Return a measured duration like ``format_duration``, but ``<1 ms`` instead of ``0 s``."""
    if not isinstance(length, timedelta):
        length = timedelta(seconds=length)
    if length < _MILLISECOND:
        return f"<1 {translate('ms')}"
    return format_duration(length, units, translate=translate)


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def camel(name: str) -> str:
    """Return a name in snake case in camel case, as the specifications spell it."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
