"""What a scheduler notices beside its tasks: leaps of the clock, lost rows, a set of nobody."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..core import events
from ..signals import publish
from ..store import instances, marks
from ..store.guard import Member, Standing
from ..store.peek import Peek, is_whole, peek
from .clock import Clock

AUDIT = timedelta(minutes=1)
"""How often a leader counts its rows."""

_GAP = 2.0

LEAP = 2.0
"""Seconds by which the wall clock may part from the monotonic one unremarked."""


class Pace:
    """Compare the clock on the wall with the monotonic one.

    Args:
        clock: gives both.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._before: tuple[datetime, float] | None = None
        self._lapses: list[instances.Lapse] = []
        self._stepped_back = False

    def notice(self, member: Member | None, now: datetime) -> bool:
        """Tell of a leap of the wall clock; after one backwards, reconsider the marks.

        Args:
            member: who this instance is, ``None`` before it has a registration set.
            now: the instant of the tick.

        Returns:
            whether what was known of the next start holds no more.

        Raises:
            django.db.Error: what is to be written is kept for the next tick.
        """
        monotonic = self._clock.monotonic()
        before, self._before = self._before or (now, monotonic), (now, monotonic)
        leap = (now - before[0]).total_seconds() - (monotonic - before[1])
        if member is None:
            return False
        if abs(leap) >= LEAP:
            publish([events.ClockMoved(at=now, seconds=leap)])
            self._stepped_back = self._stepped_back or leap < 0
            self._lapses.append((now - timedelta(seconds=leap), now))
        if self._lapses:
            instances.lapsed(member, self._lapses)
            self._lapses.clear()
        return self._stepped_back and self._reconsidered(member, now)

    def _reconsidered(self, member: Member, now: datetime) -> bool:
        marks.reconsider_after_step(member, now)
        self._stepped_back = False
        return True


class Vigil:
    """Know for how long this instance has watched the others without a gap."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = 0.0

    def look(self, member: Member, monotonic: float) -> None:
        """Take note of a successful look at the deployment.

        Args:
            member: who watches; a gap in which others may have been kept from renewing
                begins the vigil anew.
            monotonic: seconds at the end of the look.
        """
        lease, renew = member.lease.total_seconds(), member.renew.total_seconds()
        if self._since is None or monotonic - self._last > min(max(renew, _GAP), lease - renew):
            self._since = monotonic
        self._last = monotonic

    def interrupt(self) -> None:
        """Begin anew: the database did not answer, to the others neither perhaps."""
        self._since = None

    def finds(self, member: Member, seen: Peek) -> bool:
        """Tell whether an instance is to be taken for dead.

        Args:
            member: who watches.
            seen: what it saw last.
        """
        return seen.shows_silence(member, vigil=self.lasts(member))

    def lasts(self, member: Member) -> bool:
        """Tell whether the vigil has lasted for as long as a silence may.

        Args:
            member: who watches.
        """
        if self._since is None:
            return False
        return self._last - self._since >= member.longest_silence.total_seconds()


class Audit:
    """Look once a minute whether somebody deleted rows."""

    def __init__(self) -> None:
        self._done_at: datetime | None = None
        self._is_suspicious = False

    def suspect(self) -> None:
        """Take the rows for others than the leader's: one was met that it does not know."""
        self._is_suspicious = True

    def finds_loss(self, member: Member, tasks: int, now: datetime) -> bool:
        """Tell whether a leader's tasks lack a row, or itself its own.

        Args:
            member: who leads.
            tasks: number of tasks in its registration set.
            now: the instant of the tick.
        """
        if self._is_suspicious:
            self._is_suspicious = False
            return True
        if self._done_at is not None and abs(now - self._done_at) < AUDIT:
            return False
        self._done_at = now
        return not is_whole(member, tasks)


def told_of(
    before: Standing, standing: Standing, seen: Peek | None, member: Member, now: datetime
) -> list[events.Event]:
    """Tell of a change of what an instance is, unless the store tells of it.

    Args:
        before: what it was.
        standing: what it is.
        seen: what a look showed; ``None`` where the store says what it is.
        member: the instance.
        now: the instant.
    """
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


def is_orphaned(member: Member, *, vigil: bool) -> bool:
    """Tell whether nobody who holds the active registration set lives any more.

    Args:
        member: a superseded instance (semantics 9, superseded schedulers).
        vigil: it has watched for the longest silence.
    """
    seen = peek(member)
    if seen is None:
        return True
    return not instances.has_living_holder(member, seen.digest, seen.database_now, vigil=vigil)
