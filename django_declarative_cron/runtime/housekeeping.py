"""What a leader does while nothing is due: old history goes, new time zones are seen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from ..core.events import Event, TaskRunStarted
from ..core.options import Options
from ..store import pruning
from ..store.guard import Member
from .clock import Clock
from .respite import Respite
from .tzdata import ZoneWatch

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
        """Remember the tasks that may have too many runs by now.

        Args:
            told: events of a claim.
        """
        for event in told:
            if isinstance(event, TaskRunStarted) and event.run_count % self._every == 0:
                self._names[event.task_name] = None

    def use_the_quiet(self, member: Member, now: datetime, next_wake: datetime | None) -> None:
        """Do a small piece of work: what is forgotten keeps up with what is written.

        Args:
            member: who leads.
            now: the instant of the tick.
            next_wake: when the next task is to be considered, ``None`` where none is.
        """
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
        """Give the most seconds until the next pass: more work may wait for the end of a rest.

        Args:
            most: where none does.
        """
        left = self._respite.left() if self._is_waiting else 0.0
        self._is_waiting = False
        return min(left, most.total_seconds()) if left > 0 else most.total_seconds()

    def step(self, member: Member, now: datetime, *, is_quiet: bool = True) -> bool:
        """Do a small piece of work: by number and by age in turn, where both wait.

        Args:
            member: who leads.
            now: the instant of the tick.
            is_quiet: no start is near, or none ever will be far.

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
        """Tell whether to look at ages: to begin, a whole history may be looked through."""
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
