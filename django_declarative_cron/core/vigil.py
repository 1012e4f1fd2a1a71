"""For how long a database was watched without a gap, by several who took turns."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

Watch = tuple[datetime, datetime]
"""From when to when somebody reached the database without a gap, by the database's time."""


def watched_since(watches: Iterable[Watch], now: datetime, gap: timedelta) -> datetime:
    """Give since when somebody has watched, whoever it was.

    Args:
        watches: in any order; what one of them says holds for all.
        now: the present, when the database was reached too.
        gap: the longest time between two watches that is none.
    """
    since = now
    for begin, end in sorted(watches, key=lambda watch: watch[1], reverse=True):
        if since - end > gap:
            break
        since = min(since, begin)
    return since


def gap_between(renew: timedelta, silence: timedelta) -> timedelta:
    """Give the longest gap in which nobody who lives can have been silent for too long.

    Whoever said before it that he lives may have failed to say so in it, and once more
    after it: two of his turns are gone then.

    Args:
        renew: how often everybody says that he lives.
        silence: the longest one that is no death.
    """
    return max(min(renew, silence - 2 * renew), timedelta(0))
