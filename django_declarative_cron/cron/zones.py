"""Time zone names people may write, and the transitions of a zone."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from .timeline import timeline_of, to_instant, to_second


class UnknownZoneError(ValueError):
    """Refuse a name that is no IANA time zone.

    Args:
        name: what was given.
        suggestion: the nearest name that is one, or None.
    """

    def __init__(self, name: object, suggestion: str | None) -> None:
        hint = f', did you mean "{suggestion}"?' if suggestion else ""
        super().__init__(f"Unknown time zone {name!r}: use an IANA name like Europe/Berlin{hint}")
        self.name = name
        self.suggestion = suggestion


class Transition(NamedTuple):
    """Hold a change of the offset: the instant (aware UTC) and the offset on each side."""

    instant: datetime
    before: timedelta
    after: timedelta


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names people may write, read once from the installed database.

    Those without a slash are left out except ``UTC``: ``EST`` and its like are abbreviations
    that say nothing of daylight saving.
    """
    return frozenset(name for name in available_timezones() if name == "UTC" or "/" in name)


def reload_zone_names() -> None:
    """Forget the names read, so that an updated database is seen."""
    zone_names.cache_clear()


def validate_zone(name: str) -> ZoneInfo:
    """Return the zone of a name.

    Args:
        name: an IANA name with a slash, or ``UTC``.

    Raises:
        UnknownZoneError: anything else; ``suggestion`` has the nearest name.
    """
    # The name is looked up before zoneinfo sees it: a foreign text never becomes a path.
    if not isinstance(name, str) or name not in zone_names():
        raise UnknownZoneError(name, nearest_zone(name))
    return ZoneInfo(name)


def nearest_zone(name: object) -> str | None:
    """Return the zone name most like a text, None if none is."""
    if not isinstance(name, str):
        return None
    folded = {known.lower(): known for known in zone_names()}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    return folded[near[0]] if near else None


def next_transitions(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Transition]:
    """Yield the changes of a zone's offset after ``start`` and not after ``end``.

    Args:
        zone: the zone.
        start: aware.
        end: aware.
    """
    low, high = to_second(start) + 1, to_second(end)
    for span in timeline_of(zone).spans(low, high):
        instant = to_instant(span.start)
        if span.start >= low and span.before != span.offset and instant is not None:
            yield Transition(
                instant, timedelta(seconds=span.before), timedelta(seconds=span.offset)
            )
