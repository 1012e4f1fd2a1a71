"""How long a process may believe what the database told it last: that it lives, that it leads.

A sign of life is good from the instant at which it *began*, not at which it was answered:
the database dated it some time between the two. Once the time is over, others may have
taken over, and nothing is believed that is not asked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import Error as DatabaseError

from ..store import liveness, results
from ..store.guard import Member
from .clock import Clock, Moment, moment


class Trust:
    """Remember when the newest sign of life that was taken down began.

    Args:
        clock: gives both kinds of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: Moment | None = None
        self.lapses = 0
        """How often others may have taken over before a sign of life was taken down again."""

    def moment(self) -> Moment:
        """Return the present, to be kept while a sign of life is under way."""
        return moment(self._clock)

    def renew(self, began: Moment, silence: timedelta) -> None:
        """Take note of a sign of life that the database has taken down."""
        if self._since is not None and not self.holds(silence):
            self.lapses += 1
        self._since = began

    def holds(self, span: timedelta) -> bool:
        """Return whether the newest sign of life began less than so long ago."""
        if self._since is None:
            return False
        (monotonic, now), (since, at) = self.moment(), self._since
        return monotonic - since < span.total_seconds() and now - at < span


_AGAIN = 1.0

Refused = Callable[[str, Exception, datetime], None]


class Admission:
    """Admit runs to their call; ask the database where trust is over.

    A run may have waited for a free thread, or its process may have been stopped between
    the commit of the claim and the call, for so long that others have taken it over. That this
    process lives again says nothing of the runs that it had claimed before.

    Args:
        clock: by which it waits.
        trust: that this process lives.
        member: gives who this instance is.
        refused: takes a refusal of the database that is outlived.
    """

    def __init__(
        self, clock: Clock, trust: Trust, member: Callable[[], Member | None], refused: Refused
    ) -> None:
        self._clock = clock
        self._trust = trust
        self.member = member
        self._refused = refused

    @property
    def lapses(self) -> int:
        """Count how often others may have taken over all runs that were claimed before."""
        return self._trust.lapses

    def admits(self, run: int, lapses: int) -> bool:
        """Return whether a run is still this instance's; wait for who can tell."""
        member = self.member()
        while member is not None and not self._is_sure(member, lapses):
            try:
                return results.is_open(member, run)
            except DatabaseError as error:
                self._refused("asking for a run before it is called", error, self._clock.now())
                self._clock.wait(threading.Event(), _AGAIN)
        return True

    def _is_sure(self, member: Member, lapses: int) -> bool:
        # Trust first: it may be renewed, after a lapse, between the two looks.
        return self._trust.holds(member.longest_silence) and self._trust.lapses == lapses


class Resignation:
    """Write down once that a stop was asked for, and give up the lead with it."""

    def __init__(self) -> None:
        self.is_written = False

    def hand_in(self, member: Member | None, now: datetime) -> None:
        """Write it down, unless that was done; where it is refused, the next time counts."""
        if member is None or self.is_written:
            return
        try:
            liveness.stop_requested(member, now)
            self.is_written = True
        except DatabaseError:
            # The lead ends by itself when nobody renews it: a heartbeat that goes on does.
            return
