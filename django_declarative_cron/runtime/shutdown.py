"""From signals to an orderly end: the first asks, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from types import FrameType

from . import forking
from .descriptors import out_of_the_way

# A terminal that closes, and a supervisor that reloads, send SIGHUP.
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)


class LastResort:
    """End the process in any case, once it was asked to end and a while has passed."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def arm(self, delay: timedelta) -> None:
        """End it after a delay, instead of the one that was named before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(delay.total_seconds(), os._exit, (0,))
        self._timer.daemon = True
        self._timer.start()


class Shutdown:
    """Wait for SIGTERM, SIGINT or SIGHUP.

    The interpreter writes the number of a signal into a pipe as soon as it arrives, and
    a thread reads it there. So nothing runs in the middle of what the main thread does,
    and a second signal is obeyed although the main thread waits in a driver's code.

    Args:
        at_first: called in that thread when the first signal has come.
    """

    def __init__(self, at_first: Callable[[], None] = lambda: None) -> None:
        self.received: signal.Signals | None = None
        self._at_first = at_first
        self._came = threading.Event()
        self._read, self._write = map(out_of_the_way, os.pipe())
        self._thread = threading.Thread(
            target=self._watch, name="declarative-cron-signals", daemon=True
        )

    def install(self) -> None:
        """Take the signals over; to be called in the main thread."""
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        forking.close_in_children(self._read, self._write)
        handled = [number for number in SIGNALS if not _is_ignored_hangup(number)]
        forking.handle(handled, _to_the_pipe)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether signals are heard."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Wait for the first signal.

        Returns:
            whether a signal has come.
        """
        return self._came.wait(seconds)

    def _watch(self) -> None:
        while True:
            for number in os.read(self._read, 16):
                if number in SIGNALS:
                    self._take(signal.Signals(number))

    def _take(self, number: signal.Signals) -> None:
        if self.received is not None:
            if is_hangup(number):
                # One terminal that closes sends several.
                return
            os._exit(128 + number)
        # First: whoever waits may arm something longer as soon as it is told.
        self._at_first()
        self.received = number
        self._came.set()


def is_hangup(number: int) -> bool:
    """Return whether a signal says that the terminal is closed."""
    return number == getattr(signal, "SIGHUP", None)


def _is_ignored_hangup(number: int) -> bool:
    """Return whether the process was started by ``nohup``."""
    return is_hangup(number) and signal.getsignal(number) is signal.SIG_IGN


def _to_the_pipe(number: int, frame: FrameType | None) -> None:
    """Do nothing: that there is a handler makes the interpreter write into the pipe."""
