"""How often a refusal of the database is told: an outage of an hour is no 3600 errors."""

from __future__ import annotations

from datetime import datetime

from ..core import events
from ..exceptions import words_of
from ..signals import publish, tell_recovery
from .clock import Clock

_FIRST = 1.0
_LONGEST = 60.0


class Outage:
    """Tell the first refusal, then at intervals that double to a minute, and the recovery.

    Args:
        clock: by which the intervals are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._began = self._told = 0.0
        self._interval = 0.0
        self._is_over = True

    def fails(self, doing: str, error: Exception, now: datetime) -> None:
        """Take note of a refusal, and tell of it where it is time.

        Args:
            doing: what failed.
            error: why.
            now: the instant of the tick.
        """
        monotonic = self._clock.monotonic()
        if not self._failures:
            self._began, self._interval = monotonic, 0.0
        self._failures += 1
        self._is_over = False
        if self._failures > 1 and monotonic - self._told < self._interval:
            return
        self._told = monotonic
        self._interval = min(max(self._interval * 2, _FIRST), _LONGEST)
        text = f"{type(error).__name__}: {words_of(error)}"
        failed = events.PersistenceFailed(at=now, doing=doing, error=text, failures=self._failures)
        publish([failed])

    def ends(self) -> None:
        """Take note of a pass that succeeded; the second without a refusal is a recovery."""
        if not self._is_over:
            self._is_over = True
            return
        if self._failures:
            seconds = self._clock.monotonic() - self._began
            failures, self._failures = self._failures, 0
            tell_recovery(failures, seconds)
