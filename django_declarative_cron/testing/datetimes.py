"""Instants in tests, in the zone of their task."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from .clock import Instant


def in_zone(value: Instant, zone: ZoneInfo) -> datetime:
    """Read an instant; where it names no zone, it is a local time of the task's.

    Args:
        value: a ``datetime``, or text in ISO 8601.
        zone: of the task.

    Raises:
        ValueError: it is invalid, it does not exist there, or it occurs twice.
    """
    read = datetime.fromisoformat(value) if isinstance(value, str) else value
    if read.tzinfo is not None:
        return read.astimezone(UTC)
    passes = {read.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    real = sorted(at for at in passes if at.astimezone(zone).replace(tzinfo=None) == read)
    if not real:
        raise ValueError(f"{read:%Y-%m-%d %H:%M} does not exist in {zone.key}: the clock leaps")
    if len(real) > 1:
        both = " or ".join(f"{read:%Y-%m-%d %H:%M}{offset(at, zone)}" for at in real)
        raise ValueError(f"{read:%Y-%m-%d %H:%M} happens twice in {zone.key}: write {both}")
    return real[0]


def shown(instant: datetime, zone: ZoneInfo) -> str:
    """Return an instant in readable form.

    Args:
        instant: aware.
        zone: where it is read.
    """
    local = instant.astimezone(zone)
    seconds = f"{local:%H:%M:%S}" if local.second or local.microsecond else f"{local:%H:%M}"
    return f"{local:%a %Y-%m-%d} {seconds}{offset(instant, zone)}"


def offset(instant: datetime, zone: ZoneInfo) -> str:
    """Return the UTC offset of a zone in ISO 8601 format.

    Args:
        instant: aware.
        zone: the time zone.
    """
    return instant.astimezone(zone).isoformat(timespec="minutes")[len("2024-01-01T00:00") :]
