"""When a failed run is tried again: after a fixed delay, or as a policy says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from .retry_policy import SHORTEST, Retried, RetryPolicy, chance_of

__all__ = ["FixedDelay", "Retried", "Retry", "RetryPolicy", "chance_of"]


class Retry(Protocol):
    """Say when the next attempt may start; time and chance are handed in."""

    @property
    def max_attempts(self) -> int | None:
        """Give how many attempts there may be, ``None`` where nothing limits them."""

    def after(
        self, finished_at: datetime, attempt: int, errors: Iterable[str], chance: float
    ) -> Retried:
        """Say what follows from a failure."""

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

    @property
    def max_attempts(self) -> None:
        """Give ``None``: nothing limits the attempts."""
        return None

    def after(
        self, finished_at: datetime, attempt: int, errors: Iterable[str], chance: float
    ) -> Retried:
        """Say what follows from a failure: another attempt, whatever it was.

        Args:
            finished_at: end of the failed run.
            attempt: its number, from 1.
            errors: every name its error goes by.
            chance: a random number.
        """
        return Retried(self.next_retry_at(finished_at), None, "retry")

    def next_retry_at(self, finished_at: datetime) -> datetime:
        """Give the instant from which a retry may start.

        Args:
            finished_at: end of the failed run.
        """
        try:
            return finished_at + (self.delay or SHORTEST)
        except OverflowError:
            return datetime.max.replace(tzinfo=finished_at.tzinfo)

    def latest_retry_at(self, now: datetime) -> datetime:
        """Give the latest retry instant that a failure up to ``now`` can have set."""
        return self.next_retry_at(now)
