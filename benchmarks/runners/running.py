"""What everybody is asked in this part."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from statistics import median

from ..harness.parts import Sample


class Calling(ABC):
    """A contender of this part: it calls a function that tells when it was called."""

    def prepare(self, size: int) -> None:
        """Take the number of runs.

        Args:
            size: that number.
        """
        self.size = size

    @abstractmethod
    def one(self) -> float | None:
        """Call once, and wait for the end; give the monotonic second of the call."""

    @abstractmethod
    def many(self) -> int:
        """Call as often as there are runs, ten at a time; give how many went well."""

    def measure(self) -> Iterator[Sample]:
        """Call one after the other, and then ten at a time."""
        self.one()
        starts, whole = [], []
        for _ in range(self.size):
            since = time.monotonic()
            called = self.one()
            whole.append((time.monotonic() - since) * 1000)
            if called is not None:
                starts.append((called - since) * 1000)
        yield Sample("start", median(starts), len(starts), self.size)
        yield Sample("slowest start", max(starts))
        yield Sample("whole run", median(whole))
        since = time.monotonic()
        right = self.many()
        seconds = time.monotonic() - since
        yield Sample("runs, ten at a time", right / seconds, right, self.size)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Leave."""
