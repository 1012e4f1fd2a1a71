"""From signals to an orderly end: the first asks, the second ends at once."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Shutdown:
    """Wait for SIGTERM or SIGINT in the main thread.

    A handler that took a lock could meet the thread it interrupted holding it,
    so the handler writes one byte into a pipe and the waiter reads.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.received: signal.Signals | None = None

    def install(self) -> None:
        """Take the signals over; to be called in the main thread."""
        for number in SIGNALS:
            signal.signal(number, self._handle)

    def wait(self, seconds: float) -> bool:
        """Wait for the first signal.

        Args:
            seconds: the longest wait.

        Returns:
            whether a signal has come.
        """
        readable, _, _ = select.select([self._read], [], [], seconds)
        return bool(readable)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)
        self.received = signal.Signals(number)
        os.write(self._write, b"!")
