"""For how long a database was watched without a gap, by several who took turns."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

Watch = tuple[datetime, datetime]
"""From when to when somebody reached the database without a gap, by the database's time."""


def watched_since(watches: Iterable[Watch], now: datetime, gap: timedelta) -> datetime:
    """Return since when somebody has watched, whoever it was."""
    since = now
    for begin, end in sorted(watches, key=lambda watch: watch[1], reverse=True):
        if since - end > gap:
            break
        since = min(since, begin)
    return since


def gap_between(renew: timedelta, silence: timedelta) -> timedelta:
    """Return the longest gap in which nobody who lives can have been silent for too long.

    Whoever said before it that he lives may have failed to say so in it, and once more
    after it: two of his turns are gone then.
    """
    return max(min(renew, silence - 2 * renew), timedelta(0))
