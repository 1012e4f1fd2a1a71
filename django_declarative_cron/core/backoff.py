"""Back-off of log lines: an outage of an hour is not 3,600 errors."""

from __future__ import annotations

from typing import Final

FIRST: Final = 1.0
LONGEST: Final = 60.0
QUIET: Final = 120.0
"""Seconds without a failure after which the next one counts as a new fault."""


class Backoff:
    """Space the log lines of a failure, at intervals that double to a minute."""

    def __init__(self) -> None:
        self._lines = 0
        self._interval = 0.0
        self._logged = self._seen = 0.0

    def line(self, at: float) -> int:
        """Return the number of the line for a failure, from 1, or 0 if it is not due."""
        if self._lines and not 0 <= at - self._seen <= QUIET:
            self._lines, self._interval = 0, 0.0
        self._seen = at
        if self._lines and at - self._logged < self._interval:
            return 0
        self._logged = at
        self._interval = min(max(self._interval * 2, FIRST), LONGEST)
        self._lines += 1
        return self._lines
