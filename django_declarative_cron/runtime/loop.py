"""The loop: tick, sleep to the next instant or until something happens, tick."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from django.db import connections

from ..signals import report, tell_slow_pass
from ..store.database import alias
from .clock import Clock
from .connections import leave_pool
from .pulse import Pulse

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
        """Tell whether the loop's thread runs."""
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
                tell_slow_pass(took)
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
