"""Work between the starts: pruning, steps of the clock, deleted rows, and time zone updates."""

from __future__ import annotations

import os
import zoneinfo
from collections.abc import Iterable
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import islice

from ..core.events import ClockStepped, Event, TaskRunStarted
from ..core.options import Options
from ..cron.zones import reload_zones
from ..signals import log_line, publish
from ..store import liveness, pruning, reconcile
from ..store.guard import Member
from ..store.reconcile import is_whole
from .clock import Clock, Moment

QUIET = timedelta(seconds=2)
"""How far away the next start must be for work that may take long to begin."""

LONGEST_WAIT = timedelta(seconds=10)
"""How long that work waits for a quiet moment; where tasks run every second there is none."""

# --- pruning ---

EVERY = 20
"""A task's surplus is looked for at each 20th of its runs, and at most at each tenth of the
number that is kept: a query that finds little costs as much as one that finds a batch."""

_NAMES_AT_ONCE = 5
_AGES = timedelta(minutes=10)

_RESTS = 4
"""How many times as long as a piece of pruning took the next one waits."""


def _is_due(done_at: datetime, every: timedelta, now: datetime, next_wake: datetime | None) -> bool:
    """Return whether regular work is due; it waits for a quiet moment, but not for long."""
    is_quiet = next_wake is None or next_wake - now >= QUIET
    return abs(now - done_at) >= (every if is_quiet else every + LONGEST_WAIT)


class Housekeeping:
    """Prune by age and by number; detect clock steps and time zone updates.

    Args:
        options: set the age and number of the runs to keep.
        clock: measures how long pruning takes.
    """

    def __init__(self, options: Options, clock: Clock) -> None:
        self._clock = clock
        self._max_age = options.HISTORY_MAX_AGE
        self._max_runs = options.HISTORY_MAX_RUNS
        self._every = max(EVERY, self._max_runs // 10)
        # Each name once, the longest waiting first.
        self._names: dict[str, None] = {}
        self._by_number = self._is_waiting = False
        self._aged_at: datetime | None = None
        self._looked_through = 0
        self._rests_until = clock.monotonic()
        self._zones, self._clock_steps = ZoneWatch(), ClockSteps()

    def follow_clock_steps(self, member: Member | None, began: Moment) -> bool:
        return self._clock_steps.follow(member, began)

    def note(self, told: Iterable[Event]) -> None:
        """Remember the tasks that may have too many runs by now."""
        for event in told:
            if isinstance(event, TaskRunStarted) and event.run_count % self._every == 0:
                self._names[event.task_name] = None

    def work(self, member: Member, now: datetime, next_wake: datetime | None) -> None:
        """Do a small piece of work, after the starts of a pass."""
        self._zones.look(member, now)
        began = self._clock.monotonic()
        if began < self._rests_until:
            return
        try:
            self._is_waiting = self.prune(member, now, next_wake)
        finally:
            ended = self._clock.monotonic()
            self._rests_until = ended + _RESTS * (ended - began)

    def longest_sleep(self, most: timedelta) -> float:
        """Return the most seconds until the next pass: more work may wait for the end of a rest."""
        left = self._rests_until - self._clock.monotonic() if self._is_waiting else 0.0
        self._is_waiting = False
        return min(left, most.total_seconds()) if left > 0 else most.total_seconds()

    def prune(self, member: Member, now: datetime, next_wake: datetime | None = None) -> bool:
        """Prune a little: by number and by age in turn, where both wait.

        Returns:
            whether more is waiting.
        """
        is_time = self._is_time(now, next_wake)
        self._by_number = bool(self._names) and not (is_time and self._by_number)
        if self._by_number:
            self._by_name(member)
        elif is_time:
            self._by_age(member, now)
        return bool(self._names) or self._looked_through > 0

    def _is_time(self, now: datetime, next_wake: datetime | None) -> bool:
        """Return whether to prune by age: it may begin by reading a whole history."""
        self._aged_at = self._aged_at or now - _AGES
        return self._looked_through > 0 or _is_due(self._aged_at, _AGES, now, next_wake)

    def _by_age(self, member: Member, now: datetime) -> None:
        before = pruning.behind(member, now) - self._max_age
        self._looked_through = pruning.prune_old(member, before, after=self._looked_through)
        if not self._looked_through:
            self._aged_at = now

    def _by_name(self, member: Member) -> None:
        """Delete the surplus of a few tasks: a batch at least if there is one, and two at most."""
        gone = 0
        for name in list(islice(self._names, _NAMES_AT_ONCE)):
            if gone >= pruning.BATCH:
                break
            del self._names[name]
            found = pruning.prune_surplus(member, name, self._max_runs)
            if found >= pruning.BATCH:
                self._names[name] = None
            gone += found


# --- steps of the clock ---

LEAP = 2.0
"""Seconds by which the wall clock may part from the monotonic one without notice."""


class ClockSteps:
    """Compare the wall clock with the monotonic one."""

    def __init__(self) -> None:
        self._before: Moment | None = None
        self._lapses: list[liveness.Lapse] = []
        self._stepped_back = False

    def follow(self, member: Member | None, present: Moment) -> bool:
        """Publish a step of the wall clock; after one backwards, reconsider the marks.

        Returns:
            whether the known instant of the next start is out of date.

        Raises:
            django.db.Error: the step is kept for the next pass.
        """
        before, self._before, now = self._before or present, present, present.at
        leap = (now - before.at).total_seconds() - (present.monotonic - before.monotonic)
        if member is None:
            return False
        if abs(leap) >= LEAP:
            publish([ClockStepped(at=now, seconds=leap)])
            self._stepped_back = self._stepped_back or leap < 0
            self._lapses.append((now - timedelta(seconds=leap), now))
        if self._lapses:
            liveness.lapsed(member, self._lapses)
            self._lapses.clear()
        if not self._stepped_back:
            return False
        reconcile.reconsider(member, now, reconcile.ahead_of(now))
        self._stepped_back = False
        return True


# --- deleted rows ---

AUDIT = timedelta(minutes=1)
"""How often a leader counts its rows."""


class RowAudit:
    """Find out once a minute whether rows were deleted."""

    def __init__(self) -> None:
        self._done_at: datetime | None = None
        self._is_suspicious = False

    def suspect(self) -> None:
        """Take note of a row that is gone, or that the leader does not know."""
        self._is_suspicious = True

    def finds_loss(
        self, member: Member, tasks: int, now: datetime, next_wake: datetime | None
    ) -> bool:
        """Return whether rows of a leader's tasks are gone, or unknown rows were found."""
        if self._is_suspicious:
            self._is_suspicious = False
            return True
        if self._done_at is not None and not _is_due(self._done_at, AUDIT, now, next_wake):
            return False
        self._done_at = now
        return not is_whole(member, tasks)


# --- time zones ---

ZONES_EVERY = timedelta(minutes=10)
"""How often the files of the time zone database are checked."""

_FILES = ("tzdata.zi", "+VERSION", "zone1970.tab", "zones", "Europe/London")
"""At least one of these changes with every release, wherever it comes from."""

State = tuple[tuple[str, int, int], ...]


class ZoneWatch:
    """Follow an update of the installed time zone database without a restart."""

    def __init__(self) -> None:
        self._known = installed()
        self._looked_at: datetime | None = None

    def look(self, member: Member, now: datetime) -> None:
        """Check from time to time; after an update, reconsider every task."""
        if self._looked_at is not None and abs(now - self._looked_at) < ZONES_EVERY:
            return
        self._looked_at = now
        found = installed()
        if found != self._known:
            reload_zones()
            reconcile.reconsider(member, now)
            self._known = found
            log_line("zones_updated")


def installed() -> State:
    """Return names, times and sizes of files that identify the installed database."""
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
