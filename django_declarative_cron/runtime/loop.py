"""What the loop says of itself while it turns, for whoever asks from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import connections

from .. import signals
from ..signals import log_line, report
from ..store.database import alias
from .clock import Clock
from .connections import leave_pool

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
        """Say that the pass raised."""
        self._refused = type(error).__name__

    def end(self, sleep: float) -> None:
        """Say that the pass is over."""
        now = self._clock.monotonic()
        self.last = Beat(now, now + max(sleep, 0.0), self.last.passes + 1, self._refused)

    def is_late(self) -> bool:
        """Return whether the loop has hung for longer than it may."""
        return self._clock.monotonic() - self.last.due > LIMIT

    def age(self) -> float:
        """Return the seconds since the loop did something."""
        return self._clock.monotonic() - self.last.at

    def _hear(self, error: str, **_: object) -> None:
        """Learn that the database refused something in this very pass, and was outlived."""
        if threading.get_ident() == self._thread:
            # Only the kind: the text may name hosts and users.
            self._refused = error.partition(":")[0]


Tick = Callable[[], datetime | None]

SLOW = 5.0
"""Seconds after which a pass is told of: whatever falls due during it waits for its end."""


class Loop:
    """Call ``tick`` in a thread, at every instant it asks for and before patience ends.

    Args:
        clock: by which it sleeps.
        tick: one pass.
        woken: set by whoever wants a pass at once.
        patience: gives the most seconds between two passes, where nobody wakes it.
    """

    def __init__(
        self,
        clock: Clock,
        tick: Tick,
        woken: threading.Event,
        patience: Callable[[], float],
    ) -> None:
        self.pulse = Pulse(clock)
        self._clock = clock
        self._tick = tick
        self._woken = woken
        self._patience = patience
        self._ended = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it runs already."""
        if not self.is_alive:
            self._ended = False
            self._thread = threading.Thread(
                target=self._run, name="declarative-cron-loop", daemon=True
            )
            self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether the loop's thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End after the pass in hand, and wait for the end."""
        self._ended = True
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def _run(self) -> None:
        leave_pool(alias())
        while not self._ended:
            self._woken.clear()
            self.pulse.begin()
            sleep = self._seconds_after_tick()
            took = self.pulse.age()
            self.pulse.end(sleep)
            if took >= SLOW and not self.pulse.last.refused:
                # A refusal is told of by itself, and is what took so long.
                log_line("slow_tick", seconds=took)
            self._clock.wait(self._woken, sleep)
        connections.close_all()

    def _seconds_after_tick(self) -> float:
        try:
            following = self._tick()
        except BaseException as error:
            # Whatever it was, a receiver that raises SystemExit too: the next pass comes.
            report("A pass of the scheduler", error)
            self.pulse.fail(error)
            following = None
        patience = self._patience()
        if following is None:
            return patience
        return min((following - self._clock.now()).total_seconds(), patience)
