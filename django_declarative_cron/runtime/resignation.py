"""Giving up the lead at the beginning of a stop, however long the runs in flight take."""

from __future__ import annotations

from datetime import datetime

from django.db import Error as DatabaseError

from ..store import instances
from ..store.guard import Member


class Resignation:
    """Write down once that a stop was asked for, and give up the lead with it."""

    def __init__(self) -> None:
        self.is_written = False

    def hand_in(self, member: Member | None, now: datetime) -> None:
        """Write it down, unless that was done; where it is refused, the next time counts.

        Args:
            member: who stops, ``None`` where nobody knows of it.
            now: the instant it is written.
        """
        if member is None or self.is_written:
            return
        try:
            instances.stop_requested(member, now)
            self.is_written = True
        except DatabaseError:
            # The lead ends by itself when nobody renews it: a heartbeat that goes on does.
            return
