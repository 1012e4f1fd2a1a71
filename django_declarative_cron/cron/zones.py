"""Valid time zone names, and the transitions of a zone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from .timeline import reload_timelines, timeline_of, to_instant, to_second

_SHOWN: Final = 80

# Abbreviations name an offset, sometimes several; people mean the place.
_ABBREVIATIONS: Final = {
    "": "UTC",
    "bst": "Europe/London",
    "cest": "Europe/Berlin",
    "cet": "Europe/Berlin",
    "cst": "America/Chicago",
    "eet": "Europe/Athens",
    "est": "America/New_York",
    "edt": "America/New_York",
    "gmt": "Etc/GMT",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "mst": "America/Denver",
    "pdt": "America/Los_Angeles",
    "pst": "America/Los_Angeles",
    "wet": "Europe/Lisbon",
    "z": "UTC",
    "+03:30": "Asia/Tehran",
    "+04:30": "Asia/Kabul",
    "+05:30": "Asia/Kolkata",
    "+05:45": "Asia/Kathmandu",
    "+06:30": "Asia/Yangon",
    "+09:30": "Australia/Darwin",
}
_OFFSET: Final = re.compile(r"(?:utc|gmt)? ?(?P<sign>[+-])0?(?P<hours>[0-9]{1,2})(?::?00)?")


class UnknownZoneError(ValueError):
    """Refuse a name that is not an IANA time zone.

    Args:
        name: the given name.
        suggestion: the nearest valid name.
    """

    def __init__(self, name: object, suggestion: str) -> None:
        given = repr(name)[:_SHOWN]
        super().__init__(
            f"Unknown time zone {given}: use an IANA name with its continent, or UTC;"
            f' did you mean "{suggestion}"?'
        )
        self.name = name
        self.suggestion = suggestion
        self.reason = "is not an IANA time zone"
        if isinstance(name, str) and name and "/" not in name:
            # Some of these are IANA names too, for one offset or for a place of long ago.
            self.reason = "is refused: only IANA names with a continent, and UTC, are accepted"


class Transition(NamedTuple):
    """A change of the offset: the instant (aware UTC) and the offset on each side."""

    instant: datetime
    before: timedelta
    after: timedelta


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the valid names, read once from the installed database.

    Names without a slash are excluded except ``UTC``: ``EST`` and similar names are
    abbreviations without daylight saving.
    """
    return frozenset(name for name in available_timezones() if name == "UTC" or "/" in name)


def reload_zones() -> None:
    """Make every schedule follow the database that is installed now (CRON-S03)."""
    zone_names.cache_clear()
    reload_timelines()


def validate_zone(name: str) -> ZoneInfo:
    """Return the zone of a name.

    Args:
        name: an IANA name with a slash, or ``UTC``.

    Raises:
        UnknownZoneError: anything else; ``suggestion`` has the nearest name, fit for a message.
    """
    # Look up the name before calling zoneinfo, so that foreign text never becomes a path.
    if not isinstance(name, str) or name not in zone_names():
        raise UnknownZoneError(name, nearest_zone(name))
    return ZoneInfo(name)


def nearest_zone(name: object) -> str:
    """Return the name that is most similar to a text, or ``UTC`` if no name is similar."""
    if not isinstance(name, str) or len(name) > _SHOWN:
        return "UTC"
    wanted = name.strip().lower().replace(" ", "_")
    wanted = wanted.removeprefix("posix/").removeprefix("right/")
    return _ABBREVIATIONS.get(wanted) or _of_offset(wanted) or _most_alike(wanted) or "UTC"


def _of_offset(wanted: str) -> str | None:
    match = _OFFSET.fullmatch(wanted)
    if match is None:
        return None
    # The names of this family carry the sign of POSIX: west of Greenwich is plus.
    sign = "-" if match["sign"] == "+" else "+"
    candidate = f"Etc/GMT{sign}{int(match['hours'])}"
    return candidate if candidate in zone_names() else None


def _most_alike(wanted: str) -> str | None:
    known = {name.lower(): name for name in sorted(zone_names())}
    cities = {name.rpartition("/")[2]: full for name, full in known.items()}
    for names in (known, cities):
        if wanted in names:
            return names[wanted]
    near = difflib.get_close_matches(wanted, known, n=1)
    return known[near[0]] if near else None


def in_zone(instant: datetime, zone: tzinfo) -> datetime:
    """Return an instant in a zone, or in UTC where its year in the zone is not from 1 to 9999."""
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant.astimezone(UTC)


def is_shown_twice(instant: datetime, zone: tzinfo) -> bool:
    """Return whether the local time of an instant occurs twice in a zone."""
    local = in_zone(instant, zone)
    return local.replace(fold=1 - local.fold).utcoffset() != local.utcoffset()


def next_transitions(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Transition]:
    """Yield the changes of a zone's offset after ``start`` and not after ``end``."""
    low, high = to_second(start) + 1, to_second(end)
    for span in timeline_of(zone).spans(low, high):
        if span.start >= low and span.before != span.offset:
            yield Transition(
                to_instant(span.start),
                timedelta(seconds=span.before),
                timedelta(seconds=span.offset),
            )
