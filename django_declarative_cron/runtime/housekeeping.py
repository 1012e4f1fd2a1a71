"""What a leader does while nothing is due: old history goes, new time zones are seen."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import islice

from ..core.events import Event, TaskRunStarted
from ..core.options import Options
from ..store import claims, pruning, results
from ..store.guard import Member
from .tzdata import ZoneWatch

EVERY = 20
"""A task's surplus is looked for at each so manieth of its runs."""

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
    """

    def __init__(self, options: Options) -> None:
        self._max_age = options.HISTORY_MAX_AGE
        self._max_runs = options.HISTORY_MAX_RUNS
        # Each once, the longest waiting first: where it is never quiet it waits for many runs.
        self._names: dict[str, None] = {}
        self._by_number = False
        self._aged_at: datetime | None = None
        self._looked_through = 0
        self._worked_at: datetime | None = None
        self._zones, self._is_ready = ZoneWatch(), False

    def note(self, told: Iterable[Event]) -> None:
        """Remember the tasks that may have too many runs by now.

        Args:
            told: events of a claim.
        """
        for event in told:
            if isinstance(event, TaskRunStarted) and event.run_count % EVERY == 0:
                self._names[event.task_name] = None

    def use_the_quiet(self, member: Member, now: datetime, next_wake: datetime | None) -> None:
        """Do a small piece of work where nothing is about to start, or nothing else ever ends.

        Args:
            member: who leads.
            now: the instant of the tick.
            next_wake: when the next task is to be considered, ``None`` where none is.
        """
        is_quiet = next_wake is None or next_wake - now >= QUIET
        since = self._worked_at if self._worked_at is not None else now
        if is_quiet or abs(now - since) >= PATIENCE:
            self._worked_at = now
            self._get_ready(member, now)
            self._zones.look(member, now)
            self.step(member, now)
        elif self._worked_at is None:
            self._worked_at = now

    def _get_ready(self, member: Member, now: datetime) -> None:
        if not self._is_ready:
            claims.get_ready(member, now)
            results.get_ready(member.using)
            self._is_ready = True

    def step(self, member: Member, now: datetime) -> bool:
        """Do a small piece of work: by number and by age in turn, where both wait.

        Args:
            member: who leads.
            now: the instant of the tick.

        Returns:
            whether more is waiting.
        """
        is_time = self._is_time(now)
        self._by_number = bool(self._names) and not (is_time and self._by_number)
        if self._by_number:
            for name in list(islice(self._names, _NAMES_AT_ONCE)):
                del self._names[name]
                self._of_one(member, name)
        elif is_time:
            self._by_age(member, now)
        return bool(self._names)

    def _is_time(self, now: datetime) -> bool:
        return self._aged_at is None or abs(now - self._aged_at) >= _AGES

    def _by_age(self, member: Member, now: datetime) -> None:
        before = pruning.behind(member, now) - self._max_age
        self._looked_through = pruning.prune_old(member, before, after=self._looked_through)
        if not self._looked_through:
            self._aged_at = now

    def _of_one(self, member: Member, name: str) -> None:
        if pruning.prune_surplus(member, name, self._max_runs) >= pruning.BATCH:
            self._names[name] = None
