"""The quiet right before an instant: what has ended waits until what is due has been called."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from .clock import Clock

HUSH = timedelta(milliseconds=35)
"""How long before an instant no result is written: the claim for the instant begins meanwhile."""

CALLING = timedelta(milliseconds=20)
"""How long after it what is due then may take to be called undisturbed."""


class Hush:
    """Let ends wake the loop, but for those that come right before a pass that comes anyway.

    By the monotonic clock: a clock on the wall that is set back makes no hush longer.

    Args:
        clock: by which it is measured.
        wake: wakes the loop.
        stopping: set once nothing more may start; a stop waits for each end.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None], stopping: threading.Event) -> None:
        self._clock = clock
        self._wake = wake
        self._stopping = stopping
        self._until: float | None = None

    def ended(self) -> None:
        """Take note that a run has ended, whose result waits already."""
        if self._left() <= 0:
            self._wake()

    @property
    def is_on(self) -> bool:
        """Tell whether whatever can wait had better wait: the claim is near, or under way."""
        return 0 < self._left() <= (HUSH + CALLING).total_seconds()

    def begin(self, now: datetime, instant: datetime | None, *, is_kept: bool = False) -> bool:
        """Be quiet until what is due at an instant is called, or no longer.

        Args:
            now: the present.
            instant: when the loop passes next.
            is_kept: results are kept for the instant, however far it is.

        Returns:
            whether it was quiet and is not: who ended meanwhile has woken nobody.
        """
        was_quiet = self._until is not None
        is_near = instant is not None and now < instant and (is_kept or instant - now <= HUSH)
        if instant is None or not is_near:
            self._until = None
        else:
            self._until = self._clock.monotonic() + (instant - now + CALLING).total_seconds()
        return was_quiet and self._until is None

    def end(self) -> None:
        """Be quiet no longer: a pass begins that writes whatever has ended."""
        self._until = None

    def _left(self) -> float:
        until = self._until
        if until is None or self._stopping.is_set():
            return 0.0
        return max(until - self._clock.monotonic(), 0.0)
