"""The thread that says a process lives, apart from the loop that evaluates."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

from ..core.liveness import Watch
from ..signals import report
from ..store import liveness
from ..store.guard import Member
from .clock import Clock
from .connections import leave_pool, renew
from .fencing import Trust
from .watchdog import WatchdogProcess

_LONGEST_JOIN = 10.0


class Heartbeat:
    """Write a heartbeat every ``renew``, whatever the loop is doing.

    Args:
        clock: by which it waits.
        member: gives who this instance is, ``None`` before the first initialisation.
        watchdog: hears of each sign of life.
        trust: is renewed by each.
        watched: gives from when to when it has watched the others without a gap.
    """

    def __init__(
        self,
        clock: Clock,
        member: Callable[[], Member | None],
        watchdog: WatchdogProcess | None = None,
        trust: Trust | None = None,
        watched: Callable[[], Watch | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._member = member
        self._watchdog = watchdog
        self._trust = trust or Trust(clock)
        self._watched = watched
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it beats already."""
        if not self.is_alive:
            self._ended.clear()
            self._thread = threading.Thread(
                target=self._beat, name="declarative-cron-heartbeat", daemon=True
            )
            self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Return whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_LONGEST_JOIN)
        self._thread = None

    def once(self, member: Member) -> bool:
        """Beat once.

        Returns:
            whether the database took it down.
        """
        began = self._trust.moment()
        lives = beat(member, self._watched())
        if lives:
            self._trust.renew(began, member.longest_silence)
        return lives

    def _beat(self) -> None:
        member, lives = self._member(), True  # Its row is fresh.
        if member is not None:
            leave_pool(member.using)
        while member is not None:
            if lives and self._watchdog is not None:
                self._watchdog.heard(member)
            if self._clock.wait(self._ended, member.renew.total_seconds()):
                break
            lives = self.once(member)
            member = self._member()
        connections.close_all()


def beat(member: Member, watched: Watch | None = None) -> bool:
    """Say once that an instance lives; a refusal is logged and tried again next time.

    Returns:
        whether it was said.
    """
    try:
        return liveness.heartbeat(member, watched)
    except BaseException as error:
        # Whatever it was: a process that falls silent is taken for dead.
        report("The heartbeat", error)
        renew(error)
        return False
