"""When a failed run is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

SHORTEST = timedelta(seconds=1)
"""What a delay of zero means: the next poll, never a hot loop."""


class Retry(Protocol):
    """Say when the next attempt may start, from ``now`` handed in."""

    def next_retry_at(self, finished_at: datetime, attempt: int) -> datetime | None:
        """Give the instant from which a retry may start, ``None`` for never."""

    def latest_retry_at(self, now: datetime) -> datetime:
        """Give the latest retry instant that a failure up to ``now`` can have set."""


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """Retry after one delay for ever (001 From Running to AwaitingRetry).

    A delay of zero means one second after the end: the next poll, never a hot loop.

    Args:
        delay: from the end of the failed run.
    """

    delay: timedelta

    def next_retry_at(self, finished_at: datetime, attempt: int) -> datetime:
        """Give the instant from which a retry may start.

        Args:
            finished_at: end of the failed run.
            attempt: its number, from 1; a fixed delay does not look at it.
        """
        try:
            return finished_at + (self.delay or SHORTEST)
        except OverflowError:
            return datetime.max.replace(tzinfo=finished_at.tzinfo)

    def latest_retry_at(self, now: datetime) -> datetime:
        """Give the latest retry instant that a failure up to ``now`` can have set."""
        return self.next_retry_at(now, 1)
