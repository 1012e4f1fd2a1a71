"""The installed time zone database, watched: an update is followed without a restart."""

from __future__ import annotations

import os
import zoneinfo
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import islice

from ..core.events import Event, TaskRunStarted
from ..core.options import Options
from ..cron.zones import reload_zones
from ..signals import log_line
from ..store import high_water_marks, pruning
from ..store.guard import Member
from .clock import Clock

ZONES_EVERY = timedelta(minutes=10)
"""How often the files of the database are looked at."""

_FILES = ("tzdata.zi", "+VERSION", "zone1970.tab", "zones", "Europe/London")
"""At least one of these changes with every release, wherever it comes from."""

State = tuple[tuple[str, int, int], ...]


def installed() -> State:
    """Return what tells one installed database from another: a few looks at files, no reading."""
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
        """Look from time to time; after an update let every task be looked at again."""
        if self._looked_at is not None and abs(now - self._looked_at) < ZONES_EVERY:
            return
        self._looked_at = now
        found = installed()
        if found != self._known:
            reload_zones()
            high_water_marks.reconsider_all(member, now)
            self._known = found
            log_line("zones_updated")


ROOM = timedelta(milliseconds=100)
"""How far away the next start must be at least for a piece of work to begin."""

IMPATIENCE = 1.0
"""Seconds that a piece of work waits for such a room at most."""

_ROOMS = 2
"""How many times as long as the last piece of work took it must be too."""

_RESTS = 4
"""How many times as long as a piece of work took the next one waits."""


class Respite:
    """Tell when there is time for a piece of work.

    Args:
        clock: by which pieces and rests are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rested_at = clock.monotonic()
        self._took = timedelta(0)
        self._refused_at: float | None = None

    def has_come(self, next_wake: datetime | None) -> bool:
        """Return whether a piece of work may begin."""
        if self.left() > 0:
            return False
        room = max(ROOM, _ROOMS * self._took)
        to_come = room if next_wake is None else next_wake - self._clock.now()
        if not timedelta(0) < to_come < room:
            return True
        if self._refused_at is None:
            self._refused_at = self._clock.monotonic()
        return self._clock.monotonic() - self._refused_at >= IMPATIENCE

    def left(self) -> float:
        """Return the seconds until the rest is over."""
        return self._rested_at - self._clock.monotonic()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Measure a piece of work, which the next one rests after."""
        began, self._refused_at = self._clock.monotonic(), None
        try:
            yield
        finally:
            ended = self._clock.monotonic()
            self._rested_at = ended + _RESTS * (ended - began)
            self._took = timedelta(seconds=ended - began)


EVERY = 20
"""A task's surplus is looked for at each so manieth of its runs, and at no more than a tenth of
what is kept: a look that finds little costs as much as one that finds a batch."""

QUIET = timedelta(seconds=2)
"""How far away the next start must be for other work to begin."""

PATIENCE = timedelta(seconds=10)
"""How long it waits for a quiet moment; where tasks run every second none ever comes."""

_NAMES_AT_ONCE = 5
_AGES = timedelta(minutes=10)


class Housekeeping:
    """Prune by age and by number.

    Args:
        options: say what is kept.
        clock: by which pieces of work are kept between the starts.
    """

    def __init__(self, options: Options, clock: Clock) -> None:
        self._max_age = options.HISTORY_MAX_AGE
        self._max_runs = options.HISTORY_MAX_RUNS
        self._every = max(EVERY, self._max_runs // 10)
        self._respite, self._is_waiting = Respite(clock), False
        # Each once, the longest waiting first: where it is never quiet it waits for many runs.
        self._names: dict[str, None] = {}
        self._by_number = False
        self._aged_at: datetime | None = None
        self._looked_through = 0
        self._worked_at: datetime | None = None
        self._zones = ZoneWatch()

    def note(self, told: Iterable[Event]) -> None:
        """Remember the tasks that may have too many runs by now."""
        for event in told:
            if isinstance(event, TaskRunStarted) and event.run_count % self._every == 0:
                self._names[event.task_name] = None

    def use_the_quiet(self, member: Member, now: datetime, next_wake: datetime | None) -> None:
        """Do a small piece of work: what is forgotten keeps up with what is written."""
        is_quiet = next_wake is None or next_wake - now >= QUIET
        since = self._worked_at if self._worked_at is not None else now
        if is_quiet := is_quiet or abs(now - since) >= PATIENCE:
            self._worked_at = now
            self._zones.look(member, now)
        elif self._worked_at is None:
            self._worked_at = now
        self._is_waiting = bool(self._names) or self._is_time(now, is_quiet=is_quiet)
        if self._is_waiting and self._respite.has_come(next_wake):
            with self._respite.work():
                self._is_waiting = self.step(member, now, is_quiet=is_quiet)

    def patience(self, most: timedelta) -> float:
        """Return the most seconds until the next pass: more work may wait for the end of a rest."""
        left = self._respite.left() if self._is_waiting else 0.0
        self._is_waiting = False
        return min(left, most.total_seconds()) if left > 0 else most.total_seconds()

    def step(self, member: Member, now: datetime, *, is_quiet: bool = True) -> bool:
        """Do a small piece of work: by number and by age in turn, where both wait.

        Returns:
            whether more is waiting.
        """
        is_time = self._is_time(now, is_quiet=is_quiet)
        self._by_number = bool(self._names) and not (is_time and self._by_number)
        if self._by_number:
            self._by_name(member)
        elif is_time:
            self._by_age(member, now)
        return bool(self._names) or self._is_time(now, is_quiet=is_quiet)

    def _is_time(self, now: datetime, *, is_quiet: bool) -> bool:
        """Return whether to look at ages: to begin, a whole history may be looked through."""
        is_time = self._aged_at is None or abs(now - self._aged_at) >= _AGES
        return is_time and (is_quiet or self._looked_through > 0)

    def _by_age(self, member: Member, now: datetime) -> None:
        before = pruning.behind(member, now) - self._max_age
        self._looked_through = pruning.prune_old(member, before, after=self._looked_through)
        if not self._looked_through:
            self._aged_at = now

    def _by_name(self, member: Member) -> None:
        """Forget a batch at least, where so much is found of a few tasks, and two at most."""
        gone = 0
        for name in list(islice(self._names, _NAMES_AT_ONCE)):
            if gone >= pruning.BATCH:
                break
            del self._names[name]
            found = pruning.prune_surplus(member, name, self._max_runs)
            if found >= pruning.BATCH:
                self._names[name] = None
            gone += found
