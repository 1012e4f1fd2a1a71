"""Stopping: signals of the process, and waiting for the runs in flight."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError

from ..exceptions import StopSchedulerError
from . import forking
from .forking import out_of_the_way

if TYPE_CHECKING:
    from .engine import Engine

# A terminal that closes, and a supervisor that reloads, send SIGHUP.
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)
)
_ATTEMPTS_TO_RECORD = 10
_LOOK_AGAIN = 0.5


def drain(engine: Engine, deadline: float | None) -> bool:
    """Wait until every run has ended and every result is recorded.

    Returns:
        whether nothing is left.

    Raises:
        StopSchedulerError: the runs have ended and their results cannot be recorded.
    """
    clock, executor, refusals = engine.clock, engine.executor, 0
    seconds = -1 if deadline is None else max(deadline - clock.monotonic(), 0.0)
    # The gate is held during a claim; nothing can start after it.
    if not engine.gate.acquire(timeout=seconds):
        return False
    engine.gate.release()
    while executor.unfinished:
        engine.write_down_stop(clock.now())
        if deadline is not None and clock.monotonic() >= deadline:
            return False
        refusal = _record(engine)
        refusals = refusals + 1 if refusal is not None and not executor.running else 0
        if refusal is not None and refusals >= _ATTEMPTS_TO_RECORD:
            raise StopSchedulerError(refusal) from refusal
    return True


def _record(engine: Engine) -> DatabaseError | None:
    """Record the results that wait, then wait for the next end of a run."""
    engine.woken.clear()
    refusal, clock = None, engine.clock
    try:
        engine.record(clock.now())
    except DatabaseError as error:
        engine.refused("recording results", error, clock.now())
        refusal = error
    if engine.executor.unfinished:
        clock.wait(engine.woken, _LOOK_AGAIN)
    return refusal


class LastResort:
    """End the process some time after it was asked to end, even if it hangs."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def arm(self, delay: timedelta) -> None:
        """End the process after a delay; replaces a delay that was set before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(delay.total_seconds(), os._exit, (0,))
        self._timer.daemon = True
        self._timer.start()


class Shutdown:
    """Wait for SIGTERM, SIGINT or SIGHUP; the second signal ends the process immediately.

    The interpreter writes the number of a signal into a pipe as soon as it arrives, and a
    thread reads it there. So nothing interrupts the main thread, and a second signal works
    although the main thread waits in a driver's code.

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
        """Handle the signals; to be called in the main thread."""
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        forking.close_in_children(self._read, self._write)
        handled = [number for number in SIGNALS if not _is_ignored_hangup(number)]
        forking.handle(handled, _write_to_the_pipe)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Wait for the first signal; return whether it has come."""
        return self._came.wait(seconds)

    def _watch(self) -> None:
        while True:
            for number in os.read(self._read, 16):
                if number in SIGNALS:
                    self._take(signal.Signals(number))

    def _take(self, number: signal.Signals) -> None:
        if self.received is not None:
            if is_hangup(number):
                return  # One terminal that closes sends several.
            os._exit(128 + number)
        # First, because the main thread may set a longer delay as soon as it knows the signal.
        self._at_first()
        self.received = number
        self._came.set()


def is_hangup(number: int) -> bool:
    """Return whether a signal means that the terminal is closed."""
    return number == getattr(signal, "SIGHUP", None)


def _is_ignored_hangup(number: int) -> bool:
    """Return whether the process was started by ``nohup``."""
    return is_hangup(number) and signal.getsignal(number) is signal.SIG_IGN


def _write_to_the_pipe(number: int, frame: FrameType | None) -> None:
    """Do nothing: the interpreter writes to the pipe for signals that have a handler."""
