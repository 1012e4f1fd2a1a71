"""Identity of this instance, and for how long it may rely on its last heartbeat.

A heartbeat is valid from the instant at which it *began*, not at which it was answered: the
database dated it some time between the two. When the time is over, another instance may have
taken over, and nothing is relied on without a query.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import Error as DatabaseError

from ..core.liveness import Watch, gap_between
from ..core.options import Options
from ..store import database, liveness, results
from ..store.guard import Member
from ..store.liveness import Process
from .clock import Clock, Moment, moment

_AGAIN = 1.0
_GAP = timedelta(seconds=2)

Refused = Callable[[str, Exception, datetime], None]


def member_of(
    options: Options, clock: Clock, instance: UUID, digest: str = "", deployment: str | None = None
) -> Member:
    """Return an instance with the options' times; without a digest it never leads."""
    return Member(
        using=database.alias(),
        deployment=options.DEPLOYMENT if deployment is None else deployment,
        instance=instance,
        digest=digest,
        lease=options.LEASE,
        renew=options.RENEW,
        dead_after=options.DEAD_AFTER,
        database_time=clock.database_time(),
    )


def this_process(options: Options) -> Process:
    return Process(socket.gethostname(), os.getpid(), options.RELEASE)


class LeaseValidity:
    """The start of the newest heartbeat that the database confirmed.

    Args:
        clock: the source of wall-clock and monotonic time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: Moment | None = None
        self.lapses = 0
        """How often other instances may have taken over before the next heartbeat."""

    def moment(self) -> Moment:
        """Return the present, to be passed to ``renew`` after the heartbeat."""
        return moment(self._clock)

    def renew(self, began: Moment, silence: timedelta) -> None:
        """Take note of a heartbeat that the database has confirmed."""
        if self._since is not None and not self.holds(silence):
            self.lapses += 1
        self._since = began

    def holds(self, span: timedelta) -> bool:
        """Return whether the newest heartbeat began less than a span ago, by both clocks."""
        if self._since is None:
            return False
        (monotonic, now), (since, at) = self.moment(), self._since
        return monotonic - since < span.total_seconds() and now - at < span


class Fence:
    """Admit runs to their call; query the database if the lease may have expired.

    A run may have waited for a free thread, or its process may have been stopped between the
    commit of the claim and the call, for so long that another instance has taken the run over.
    A later heartbeat does not validate runs that were claimed before, and a run that no other
    instance has found yet may be found the moment after: so a heartbeat is written before asking.

    Args:
        clock: the clock for its waits.
        validity: of the heartbeats of this process.
        refused: called with a database error.
    """

    def __init__(self, clock: Clock, validity: LeaseValidity, refused: Refused) -> None:
        self._clock = clock
        self._validity = validity
        self._refused = refused

    @property
    def lapses(self) -> int:
        return self._validity.lapses

    def admits(self, member: Member, run: int, lapses: int) -> bool:
        """Return whether a run is still this instance's; wait until the database answers."""
        while not self._is_sure(member, lapses):
            try:
                return self._is_heard(member) and results.is_open(member, run)
            except DatabaseError as error:
                self._refused("asking for a run before it is called", error, self._clock.now())
                self._clock.wait(threading.Event(), _AGAIN)
        return True

    def _is_heard(self, member: Member) -> bool:
        """Return whether no other instance takes this one's runs over from now on."""
        return self._validity.holds(member.longest_silence) or liveness.vouch(member, is_mute=False)

    def _is_sure(self, member: Member, lapses: int) -> bool:
        # Validity first: it may be renewed, after a lapse, between the two comparisons.
        return self._validity.holds(member.longest_silence) and self._validity.lapses == lapses


class ObservedWindow:
    """From when to when this instance has polled without a gap, and so observed the others.

    By the database's time: a machine that sleeps observes nothing, and its monotonic clock
    does not show it.
    """

    def __init__(self) -> None:
        self.watched: Watch | None = None
        self._was_refused = False

    def extend(self, member: Member, now: datetime) -> None:
        """Take note of a successful poll."""
        since, last = self.watched or (now, now)
        gap = self._longest_gap(member)
        self._was_refused = False
        self.watched = (since if timedelta(0) <= now - last <= gap else now, now)

    def interrupt(self) -> None:
        """Take note that the database did not answer: the others may have had no answer either."""
        self._was_refused = True

    def _longest_gap(self, member: Member) -> timedelta:
        """Return the longest gap; where nothing was refused, only this instance was late."""
        if self._was_refused:
            return gap_between(member.renew, member.longest_silence)
        return min(max(member.renew, _GAP), member.longest_silence - member.renew)
