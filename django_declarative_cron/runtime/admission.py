"""The question that is asked right before a claimed run is called: is it still ours?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from django.db import Error as DatabaseError

from ..store import results
from ..store.guard import Member
from .clock import Clock
from .trust import Trust

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
        """Tell whether a run is still this instance's; wait for who can tell.

        Args:
            run: id of its row.
            lapses: their number when it was claimed.
        """
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
