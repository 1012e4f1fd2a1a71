"""What a scheduler notices beside its tasks: leaps of the clock, lost rows, a set of nobody."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..core import events
from ..core.liveness import Watch, gap_between
from ..signals import publish
from ..store import liveness, reconcile, recovery
from ..store.guard import Member, Peek, Standing, is_whole, peek
from .clock import Moment
from .housekeeping import PATIENCE, QUIET

STANDBY = timedelta(seconds=0.5)
"""How long a standby may not see that nobody leads any more."""

AUDIT = timedelta(minutes=1)
"""How often a leader counts its rows."""

_GAP = timedelta(seconds=2)

LEAP = 2.0
"""Seconds by which the wall clock may part from the monotonic one unremarked."""


class Pace:
    """Compare the clock on the wall with the monotonic one."""

    def __init__(self) -> None:
        self._before: Moment | None = None
        self._lapses: list[liveness.Lapse] = []
        self._stepped_back = False

    def notice(self, member: Member | None, present: Moment) -> bool:
        """Tell of a leap of the wall clock; after one backwards, reconsider the marks.

        Returns:
            whether what was known of the next start holds no more.

        Raises:
            django.db.Error: what is to be written is kept for the next tick.
        """
        before, self._before, now = self._before or present, present, present.at
        leap = (now - before.at).total_seconds() - (present.monotonic - before.monotonic)
        if member is None:
            return False
        if abs(leap) >= LEAP:
            publish([events.ClockStepped(at=now, seconds=leap)])
            self._stepped_back = self._stepped_back or leap < 0
            self._lapses.append((now - timedelta(seconds=leap), now))
        if self._lapses:
            liveness.lapsed(member, self._lapses)
            self._lapses.clear()
        return self._stepped_back and self._reconsidered(member, now)

    def _reconsidered(self, member: Member, now: datetime) -> bool:
        reconcile.reconsider_after_step(member, now)
        self._stepped_back = False
        return True


class Vigil:
    """Know from when to when this instance has watched the others without a gap.

    By the database's time: a machine that sleeps watches nobody, and its monotonic clock
    knows nothing of it.
    """

    def __init__(self) -> None:
        self.watched: Watch | None = None
        self._was_refused = False

    def look(self, member: Member, now: datetime) -> None:
        """Take note of a successful look at the deployment."""
        since, last = self.watched or (now, now)
        gap = self._longest_gap(member)
        self._was_refused = False
        self.watched = (since if timedelta(0) <= now - last <= gap else now, now)

    def refuse(self) -> None:
        """Take note that the database did not answer, to the others neither perhaps."""
        self._was_refused = True

    def _longest_gap(self, member: Member) -> timedelta:
        """Return the longest gap; where nothing was refused it is only this instance's."""
        if self._was_refused:
            return gap_between(member.renew, member.longest_silence)
        return min(max(member.renew, _GAP), member.longest_silence - member.renew)


class Audit:
    """Look once a minute whether somebody deleted rows."""

    def __init__(self) -> None:
        self._done_at: datetime | None = None
        self._is_suspicious = False

    def suspect(self) -> None:
        """Take the rows for others than the leader's: one is gone, or one is a stranger's."""
        self._is_suspicious = True

    def finds_loss(
        self, member: Member, tasks: int, now: datetime, next_wake: datetime | None
    ) -> bool:
        """Return whether a leader's tasks lack a row, or a row is gone or a stranger's."""
        if self._is_suspicious:
            self._is_suspicious = False
            return True
        if self._done_at is not None and abs(now - self._done_at) < _due_after(now, next_wake):
            return False
        self._done_at = now
        return not is_whole(member, tasks)


def _due_after(now: datetime, next_wake: datetime | None) -> timedelta:
    """Return how old a count may be: the next one waits for a quiet moment, but not for long."""
    is_quiet = next_wake is None or next_wake - now >= QUIET
    return AUDIT if is_quiet else AUDIT + PATIENCE


def told_of(
    before: Standing, standing: Standing, seen: Peek | None, member: Member, now: datetime
) -> list[events.Event]:
    """Tell of a change of what an instance is, unless the store tells of it."""
    term, instance = 0 if seen is None else seen.term, str(member.instance)
    match before, standing:
        case ((Standing.LEADING | Standing.STANDBY), Standing.SUPERSEDED) if seen is not None:
            return [events.SchedulerSuperseded(at=now, generation=seen.generation)]
        case Standing.LEADING, Standing.STANDBY:
            return [events.LeadershipLost(at=now, term=term, instance=instance)]
        case Standing.STANDBY, Standing.LEADING if seen is not None:
            # It had only ceased to believe in its lead while the database was away.
            return [events.LeadershipGained(at=now, term=term, instance=instance)]
    return []


def is_orphaned(member: Member, own: Watch | None) -> bool:
    """Return whether nobody who holds the active registration set lives any more."""
    seen = peek(member)
    if seen is None:
        return True
    now = seen.database_now
    return not recovery.has_living_holder(member, seen.digest, seen.watched, own, now)


def patience_for(seen: Peek | None, seconds: float) -> float:
    """Return the most seconds until the next look; a standby looks closer at the lead."""
    if seen is None:
        return seconds
    return min(seconds, STANDBY.total_seconds(), max(seen.lapses_in, 0.02))
