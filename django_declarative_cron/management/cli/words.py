"""Instants and lengths of time in words for people and machines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from ...cron.zones import is_shown_twice

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def iso(instant: datetime | None) -> str | None:
    """Write an instant for machines: ISO 8601, UTC, milliseconds, ``Z``."""
    if instant is None:
        return None
    text = instant.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def local(instant: datetime, zone: tzinfo) -> str:
    """Write an instant as the clocks of a zone show it, with the zone's abbreviation."""
    return f"{civil(instant, zone)} {instant.astimezone(zone):%Z}"


def civil(instant: datetime, zone: tzinfo) -> str:
    """Write an instant as the clocks of a zone show it; seconds only where there are any."""
    shown = instant.astimezone(zone)
    return f"{shown:%Y-%m-%d %H:%M:%S}" if shown.second else f"{shown:%Y-%m-%d %H:%M}"


def told_apart(instant: datetime, zone: tzinfo) -> str:
    """Write an instant as ``civil`` does; as ``local`` does where the clocks show two so."""
    return (local if is_shown_twice(instant, zone) else civil)(instant, zone)


def relative(instant: datetime, now: datetime) -> str:
    """Return how far an instant is from now, in its largest unit."""
    distance = span(abs(instant - now))
    if distance == "0 s":
        return "now"
    return f"in {distance}" if instant > now else f"{distance} ago"


def span(length: timedelta) -> str:
    """Say a length of time in its largest unit, rounded down."""
    seconds = int(length.total_seconds())
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def duration(seconds: float) -> str:
    """Return how long something took, exactly enough to compare."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))


def count(number: int, one: str) -> str:
    """Say a number of things."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
