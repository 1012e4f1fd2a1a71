"""How long a database was observed without a gap, by several instances in turn."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

Watch = tuple[datetime, datetime]
"""Begin and end of a time in which an instance reached the database, by the database's clock."""


def watched_since(watches: Iterable[Watch], now: datetime, gap: timedelta) -> datetime:
    """Return since when any instance has observed the database without a gap."""
    since = now
    for begin, end in sorted(watches, key=lambda watch: watch[1], reverse=True):
        if since - end > gap:
            break
        since = min(since, begin)
    return since


def gap_between(renew: timedelta, silence: timedelta) -> timedelta:
    """Return the longest gap in which no living instance can have missed too many heartbeats.

    A living instance may have missed the heartbeat in the gap and the one after it, so two of
    its heartbeats may be missing.
    """
    return max(min(renew, silence - 2 * renew), timedelta(0))
