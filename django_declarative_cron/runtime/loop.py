"""The thread that calls the passes, and its health for other threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from .. import signals
from ..signals import log_line, report
from .clock import Clock
from .connections import own_connections

LIMIT = 30.0
"""Seconds that a pass may take, or the next one be late, before the loop counts as hanging."""

SLOW = 5.0
"""Seconds after which a pass is logged: tasks that fall due meanwhile wait for its end."""

Tick = Callable[[], datetime | None]


class BackgroundThread:
    """A daemon thread with connections of its own, which may be started again after its end.

    Args:
        name: of the thread.
        run: its function.
    """

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self._name = f"declarative-cron-{name}"
        self._run = run
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._main, name=self._name, daemon=True)
        self._thread.start()

    def join(self, seconds: float | None = None) -> None:
        """Wait for its end, unless it is the thread that calls this."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def _main(self) -> None:
        with own_connections():
            self._run()


@dataclass(frozen=True, slots=True)
class Beat:
    """The last step of the loop.

    Args:
        at: monotonic second at which it was.
        due: monotonic second by which the next one is due.
        passes: number of passes that have ended.
        refused: why the newest pass could not do its work, empty where it did.
    """

    at: float
    due: float
    passes: int = 0
    refused: str = ""


class Pulse:
    """When the loop began a pass or went to sleep.

    One reference is replaced at a time, so a reader needs no lock that the loop might hold.

    Args:
        clock: of the loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused = ""
        self._thread: int | None = None
        now = clock.monotonic()
        self.last = Beat(now, now)
        # The signal holds it weakly, so the connection ends with this object.
        signals.SIGNALS["persistence_failed"].connect(self._hear)

    def begin(self) -> None:
        now = self._clock.monotonic()
        self._refused, self._thread = "", threading.get_ident()
        self.last = Beat(now, now, self.last.passes, self.last.refused)

    def fail(self, error: BaseException) -> None:
        self._refused = type(error).__name__

    def end(self, sleep: float) -> None:
        now = self._clock.monotonic()
        self.last = Beat(now, now + max(sleep, 0.0), self.last.passes + 1, self._refused)

    def is_late(self) -> bool:
        """Return whether the loop has hung for longer than it may."""
        return self._clock.monotonic() - self.last.due > LIMIT

    def age(self) -> float:
        """Return the seconds since the last step."""
        return self._clock.monotonic() - self.last.at

    def _hear(self, error: str, **_: object) -> None:
        """Take note of a refusal of the database in this very pass."""
        if threading.get_ident() == self._thread:
            # The kind only, because the text may name hosts and users.
            self._refused = error.partition(":")[0]


class Loop:
    """Call ``tick`` in a thread, at every instant it asks for and at least that often.

    Args:
        clock: by which it sleeps.
        tick: one pass.
        woken: set to ask for a pass immediately.
        longest_sleep: returns the most seconds between two passes.
    """

    def __init__(
        self,
        clock: Clock,
        tick: Tick,
        woken: threading.Event,
        longest_sleep: Callable[[], float],
    ) -> None:
        self.pulse = Pulse(clock)
        self._clock, self._tick, self._woken = clock, tick, woken
        self._longest_sleep = longest_sleep
        self._is_stopped = False
        self._thread = BackgroundThread("loop", self._run)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive

    def start(self) -> None:
        """Begin, unless it runs already."""
        if not self.is_alive:
            self._is_stopped = False
            self._thread.start()

    def stop(self) -> None:
        """End after the current pass, and wait for the end."""
        self._is_stopped = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            self._woken.clear()
            self.pulse.begin()
            sleep = self._seconds_after_tick()
            took = self.pulse.age()
            self.pulse.end(sleep)
            # A refusal is reported by itself, and is the reason for the time.
            if took >= SLOW and not self.pulse.last.refused:
                log_line("slow_tick", seconds=took)
            self._clock.wait(self._woken, sleep)

    def _seconds_after_tick(self) -> float:
        try:
            following = self._tick()
        except BaseException as error:
            # A receiver may even raise SystemExit; the next pass comes all the same.
            report("A pass of the scheduler", error)
            self.pulse.fail(error)
            following = None
        longest = self._longest_sleep()
        if following is None:
            return longest
        return min((following - self._clock.now()).total_seconds(), longest)
