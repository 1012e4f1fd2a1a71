"""How long a process may believe what the database told it last: that it lives, that it leads.

A sign of life is good from the instant at which it *began*, not at which it was answered:
the database dated it some time between the two. Once the time is over, others may have
taken over, and nothing is believed that is not asked.
"""

from __future__ import annotations

from datetime import timedelta

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
        """Give the present, to be kept while a sign of life is under way."""
        return moment(self._clock)

    def renew(self, began: Moment, silence: timedelta) -> None:
        """Take note of a sign of life that the database has taken down.

        Args:
            began: the moment before it was sent.
            silence: the longest that others grant.
        """
        if self._since is not None and not self.holds(silence):
            self.lapses += 1
        self._since = began

    def holds(self, span: timedelta) -> bool:
        """Tell whether the newest sign of life began less than so long ago.

        Args:
            span: a lease, or the longest silence.
        """
        if self._since is None:
            return False
        (monotonic, now), (since, at) = self.moment(), self._since
        return monotonic - since < span.total_seconds() and now - at < span
