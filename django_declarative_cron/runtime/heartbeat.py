"""The thread that writes heartbeats, independent of the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..signals import report
from ..store import liveness
from ..store.guard import Member
from .clock import Clock
from .connections import renew
from .fencing import LeaseValidity, ObservedWindow
from .loop import BackgroundThread
from .watchdog import WatchdogProcess

_LONGEST_JOIN = 10.0


class Heartbeat:
    """Write a heartbeat every ``renew``, even while the loop is busy.

    Args:
        clock: the clock for its waits.
        member: returns this instance, ``None`` before the first initialisation.
        watchdog: receives each heartbeat.
        validity: is renewed by each heartbeat.
        window: is written with each heartbeat.
    """

    def __init__(
        self,
        clock: Clock,
        member: Callable[[], Member | None],
        watchdog: WatchdogProcess | None = None,
        validity: LeaseValidity | None = None,
        window: ObservedWindow | None = None,
    ) -> None:
        self._clock, self._member, self._watchdog = clock, member, watchdog
        self._validity = validity or LeaseValidity(clock)
        self._window = window or ObservedWindow()
        self._stopped = threading.Event()
        self._thread = BackgroundThread("heartbeat", self._run)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive

    def start(self) -> None:
        """Begin, unless it runs already."""
        if not self.is_alive:
            self._stopped.clear()
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._stopped.set()
        self._thread.join(_LONGEST_JOIN)

    def once(self, member: Member) -> bool:
        """Write one heartbeat; return whether the database confirmed it, and log a refusal."""
        began = self._validity.moment()
        try:
            confirmed = liveness.heartbeat(member, self._window.watched)
        except BaseException as error:
            # Without heartbeats the process counts as dead, so nothing may end this thread.
            report("The heartbeat", error)
            renew(error)
            return False
        if confirmed:
            self._validity.renew(began, member.longest_silence)
        return confirmed

    def _run(self) -> None:
        member, confirmed = self._member(), True  # The row was just written.
        while member is not None:
            if confirmed and self._watchdog is not None:
                self._watchdog.heard(member)
            if self._clock.wait(self._stopped, member.renew.total_seconds()):
                break
            confirmed = self.once(member)
            member = self._member()
