"""Retry rules: the policy of 002 with limited attempts and back-off, and a fixed delay.

Random numbers are arguments, so the same failure always has the same result.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from .declarations.values import (
    in_short,
    read_duration,
    write_duration,
)
from .readers import CENTURY, Flaw, Reader, one_of, read_each, truth, whole

SHORTEST: Final = timedelta(seconds=1)
"""The delay where zero is declared: never a hot loop."""

Exhaustion = Literal["discard", "dead_letter"]
EXHAUSTIONS: Final[tuple[Exhaustion, ...]] = ("discard", "dead_letter")

MOST_ATTEMPTS: Final = 10_000
LARGEST_COEFFICIENT: Final = 1_000

_LEAST_FACTOR = 0.5
_WILDCARD = ".*"
_MOST_NAMES, _LONGEST_NAME = 50, 500


@dataclass(frozen=True, slots=True)
class Retried:
    """The consequence of a failure: another attempt, or none.

    Args:
        at: from when the next attempt may start, ``None`` if there is none.
        ends_as: the state of the run without another attempt.
        reason: ``attempts`` used up, an error that is ``non_retryable``, or ``retry``.
    """

    at: datetime | None
    ends_as: Exhaustion | None
    reason: Literal["retry", "attempts", "non_retryable"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The retry policy of the long form (002 Field Definitions); the docs show these texts.

    An interval of zero means one second after the end, as with a fixed delay.

    Args:
        max_attempts: maximum number of attempts, including the first run; 0 and 1 mean no retry.
        initial_interval: delay from the end of the first failed attempt to the next one.
        backoff_coefficient: factor by which the delay grows after each attempt; at least 1.
        max_interval: maximum delay.
        jitter: multiply each delay by a random factor from 0.5 to 1.5.
        non_retryable_errors: names of exceptions that are not retried, such as ``"ValueError"`` or
            ``"shop.errors.Refused"``; ``"shop.errors.*"`` matches a prefix.
        on_exhaustion: status after the last failure: ``"discard"``, or ``"dead_letter"`` for runs
            that need attention.
    """

    max_attempts: int = 3
    initial_interval: timedelta = timedelta(seconds=1)
    backoff_coefficient: float = 2.0
    max_interval: timedelta = timedelta(minutes=5)
    jitter: bool = True
    non_retryable_errors: tuple[str, ...] = ()
    on_exhaustion: Exhaustion = "discard"

    def after(
        self, finished_at: datetime, attempt: int, errors: Iterable[str], chance: float
    ) -> Retried:
        """Return the consequence of a failure.

        Args:
            finished_at: end of the failed attempt.
            attempt: its number, from 1.
            errors: every name of its error, see ``names_of``.
            chance: a random number, at least 0 and less than 1.
        """
        if any(map(self.refuses, errors)):
            return Retried(None, self.on_exhaustion, "non_retryable")
        if attempt >= self.max_attempts:
            return Retried(None, self.on_exhaustion, "attempts")
        try:
            at = finished_at + (self.delay(attempt, chance) or SHORTEST)
        except OverflowError:
            at = datetime.max.replace(tzinfo=finished_at.tzinfo)
        return Retried(at, None, "retry")

    def refuses(self, error: str) -> bool:
        """Return whether an error of a name is not retried."""
        return any(_matches(error, entry) for entry in self.non_retryable_errors)

    def delay(self, attempt: int, chance: float = 0.5) -> timedelta:
        """Return the time from the end of a failed attempt to the next one.

        Args:
            attempt: number of the failed one, from 1.
            chance: a random number, at least 0 and less than 1; at 0.5 jitter has no effect.
        """
        capped = self._capped(self.initial_interval, self._growth(attempt))
        return self._capped(capped, _LEAST_FACTOR + chance) if self.jitter else capped

    def latest_retry_at(self, now: datetime) -> datetime:
        """Return the latest retry instant that a failure up to ``now`` can have set."""
        try:
            return now + (self.max_interval or SHORTEST)
        except OverflowError:
            return datetime.max.replace(tzinfo=now.tzinfo)

    def as_data(self) -> dict[str, Any]:
        """Return the whole policy as JSON-native data, in the spelling of the specification."""
        return {
            "max_attempts": self.max_attempts,
            "initial_interval": write_duration(self.initial_interval),
            "backoff_coefficient": self.backoff_coefficient,
            "max_interval": write_duration(self.max_interval),
            "jitter": self.jitter,
            "non_retryable_errors": list(self.non_retryable_errors),
            "on_exhaustion": self.on_exhaustion,
        }

    def in_words(self) -> str:
        """Return the policy in one line for people."""
        if self.max_attempts <= 1:
            return "never"
        first, most = self.initial_interval, self.max_interval
        growth = f", ×{self.backoff_coefficient:g} each" if self.backoff_coefficient != 1 else ""
        jitter = ", with jitter" if self.jitter else ""
        times = f"{write_duration(first)}{growth}, {write_duration(most)} at most{jitter}"
        dead = ", then a dead letter" if self.on_exhaustion == "dead_letter" else ""
        return f"{self.max_attempts} attempts, {times}{dead}"

    def _growth(self, attempt: int) -> float:
        try:
            return float(self.backoff_coefficient) ** (attempt - 1)
        except OverflowError:
            return math.inf

    def _capped(self, interval: timedelta, factor: float) -> timedelta:
        # Compared before it is multiplied: a timedelta cannot hold every product.
        longest = self.max_interval / interval if interval else math.inf
        return self.max_interval if factor >= longest else interval * factor


def _matches(error: str, entry: str) -> bool:
    if entry.endswith(_WILDCARD):
        return error.startswith(entry[:-1])
    return error == entry


def names_of(error: type[BaseException]) -> tuple[str, ...]:
    """Return the names of an error class and its bases, with and without their modules."""
    names: dict[str, None] = {}
    for each in error.__mro__[:_MOST_NAMES]:
        if issubclass(each, BaseException):
            name = each.__qualname__[:_LONGEST_NAME]
            names |= dict.fromkeys((f"{each.__module__}.{name}", name))
    return tuple(names)


def chance_of(*seed: object) -> float:
    """Return a pseudo-random number from 0 to below 1 that depends on the seed alone."""
    digest = hashlib.sha256(repr(seed).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6]) / 2**48


def read_policy(given: Mapping[str, Any]) -> tuple[RetryPolicy, list[Flaw]]:
    """Return ``options.retry`` merged over the defaults, and the flaws of its keys.

    A refused key keeps its default.
    """
    values, flaws = read_each(given, POLICY_KEYS)
    return RetryPolicy(**values), flaws


def _coefficient(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 <= value <= LARGEST_COEFFICIENT:
        bounds = f"a number from 1 to {LARGEST_COEFFICIENT}"
        raise ValueError(f"must be {bounds}, not {in_short(value)[:40]}")
    return float(value)


def _interval(value: Any) -> timedelta:
    if not isinstance(value, str):
        raise ValueError(f"must be a text such as PT30S, not {type(value).__name__}")
    found = read_duration(value)
    if found > CENTURY:
        raise ValueError(f"must be at most {CENTURY.days} days, not {found.days} days")
    return found


def _errors(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of texts")
    for name in value:
        if not name.removesuffix(_WILDCARD) or "*" in name.removesuffix(_WILDCARD):
            raise ValueError(f"must have names such as `auth.*` or `ValueError`, not {name[:40]!r}")
    return tuple(value)


POLICY_KEYS: Final[dict[str, Reader]] = {
    "max_attempts": whole(0, MOST_ATTEMPTS),
    "initial_interval": _interval,
    "backoff_coefficient": _coefficient,
    "max_interval": _interval,
    "jitter": truth,
    "non_retryable_errors": _errors,
    "on_exhaustion": one_of(EXHAUSTIONS),
}


@dataclass(frozen=True, slots=True)
class FixedDelay:
    """Retry after one delay without limit (001 From Running to AwaitingRetry).

    A delay of zero means one second after the end, never a hot loop.
    """

    delay: timedelta

    @property
    def max_attempts(self) -> None:
        """Return ``None``: nothing limits the attempts."""
        return None

    def after(
        self, finished_at: datetime, attempt: int, errors: Iterable[str], chance: float
    ) -> Retried:
        """Return another attempt after any failure."""
        return Retried(self.latest_retry_at(finished_at), None, "retry")

    def latest_retry_at(self, now: datetime) -> datetime:
        """Return the retry instant of a failure at ``now``."""
        try:
            return now + (self.delay or SHORTEST)
        except OverflowError:
            return datetime.max.replace(tzinfo=now.tzinfo)


Retry = FixedDelay | RetryPolicy
"""A rule that dates the next attempt; time and chance are arguments."""
