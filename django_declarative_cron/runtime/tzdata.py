"""The installed time zone database, watched: an update is followed without a restart."""

from __future__ import annotations

import os
import zoneinfo
from datetime import datetime, timedelta
from importlib.util import find_spec

from ..cron.zones import reload_zones
from ..signals import report_zones
from ..store import marks
from ..store.guard import Member

EVERY = timedelta(minutes=10)
"""How often the files of the database are looked at."""

_FILES = ("tzdata.zi", "+VERSION", "zone1970.tab", "zones", "Europe/London")
"""At least one of these changes with every release, wherever it comes from."""

State = tuple[tuple[str, int, int], ...]


def installed() -> State:
    """Give what tells one installed database from another: a few looks at files, no reading."""
    found = []
    for path in [os.path.join(place, name) for place in _places() for name in _FILES]:
        try:
            seen = os.stat(path)
        except OSError:
            continue
        found.append((path, seen.st_mtime_ns, seen.st_size))
    return tuple(found)


def _places() -> list[str]:
    package = find_spec("tzdata")
    inside = package.submodule_search_locations if package is not None else None
    places = [*zoneinfo.TZPATH]
    for place in inside or ():
        places += [place, os.path.join(place, "zoneinfo")]
    return places


class ZoneWatch:
    """See that another time zone database was installed, and follow it."""

    def __init__(self) -> None:
        self._known = installed()
        self._looked_at: datetime | None = None

    def look(self, member: Member, now: datetime) -> None:
        """Look from time to time; after an update let every task be looked at again.

        Args:
            member: who leads.
            now: the instant of the tick.
        """
        if self._looked_at is not None and abs(now - self._looked_at) < EVERY:
            return
        self._looked_at = now
        found = installed()
        if found != self._known:
            reload_zones()
            marks.reconsider_all(member, now)
            self._known = found
            report_zones()
