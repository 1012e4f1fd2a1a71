"""How often a refusal of the database is told: an outage of an hour is no 3600 errors."""

from __future__ import annotations

from datetime import datetime

from ..core import events
from ..core.backoff import Backoff
from ..exceptions import words_of
from ..formatting import format_count
from ..signals import log_line, publish
from .clock import Clock


class Outage:
    """Tell the first refusal, then at intervals that double to a minute, and the recovery.

    Args:
        clock: by which the intervals are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._began = 0.0
        self._backoff = Backoff()
        self._is_over = True

    def fails(self, doing: str, error: Exception, now: datetime) -> None:
        """Take note of a refusal, and tell of it where it is time."""
        monotonic = self._clock.monotonic()
        if not self._failures:
            self._began, self._backoff = monotonic, Backoff()
        self._failures += 1
        self._is_over = False
        if not self._backoff.line(monotonic):
            return
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
            refusals = format_count(failures, "refusal")
            log_line("database_recovered", refusals=refusals, seconds=seconds)
