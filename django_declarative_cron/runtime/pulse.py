"""What the loop says of itself while it turns, for whoever asks from another thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from .. import signals
from .clock import Clock

LIMIT = 30.0
"""Seconds that a pass may take, or the next one be late, before the loop counts as hanging."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What the loop did last.

    Args:
        at: monotonic second at which it did it.
        due: monotonic second by which it is to do the next thing.
        passes: so many passes have ended.
        refused: why the newest pass could not do its work, empty where it did.
    """

    at: float
    due: float
    passes: int = 0
    refused: str = ""


class Pulse:
    """Take down when the loop begins a pass and when it goes to sleep.

    One reference is replaced at a time, so that a reader needs no lock that the loop
    might hold.

    Args:
        clock: of the loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused = ""
        self._thread: int | None = None
        now = clock.monotonic()
        self.last = Beat(now, now)
        # Held weakly, so it ends with this object.
        signals.SIGNALS["persistence_failed"].connect(self._hear)

    def begin(self) -> None:
        """Say that a pass begins."""
        now = self._clock.monotonic()
        self._refused, self._thread = "", threading.get_ident()
        self.last = Beat(now, now, self.last.passes, self.last.refused)

    def fail(self, error: BaseException) -> None:
        """Say that the pass raised.

        Args:
            error: what it raised.
        """
        self._refused = type(error).__name__

    def end(self, sleep: float) -> None:
        """Say that the pass is over.

        Args:
            sleep: seconds to the next one at the latest.
        """
        now = self._clock.monotonic()
        self.last = Beat(now, now + max(sleep, 0.0), self.last.passes + 1, self._refused)

    def is_late(self) -> bool:
        """Tell whether the loop has hung for longer than it may."""
        return self._clock.monotonic() - self.last.due > LIMIT

    def age(self) -> float:
        """Give the seconds since the loop did something."""
        return self._clock.monotonic() - self.last.at

    def _hear(self, error: str, **_: object) -> None:
        """Learn that the database refused something in this very pass, and was outlived."""
        if threading.get_ident() == self._thread:
            # Only the kind: the text may name hosts and users.
            self._refused = error.partition(":")[0]
