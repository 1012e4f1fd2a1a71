"""The thread that says a process lives, apart from the loop that evaluates."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import Error as DatabaseError
from django.db import connections

from ..signals import report
from ..store import instances
from ..store.guard import Member
from .clock import Clock
from .connections import refresh

_LONGEST_JOIN = 10.0


class Heartbeat:
    """Write a heartbeat every ``renew``, whatever the loop is doing.

    Args:
        clock: by which it waits.
        member: gives who this instance is, ``None`` before the first initialisation.
    """

    def __init__(self, clock: Clock, member: Callable[[], Member | None]) -> None:
        self._clock = clock
        self._member = member
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, unless it beats already."""
        if self._thread is None or not self._thread.is_alive():
            self._ended.clear()
            self._thread = threading.Thread(
                target=self._beat, name="declarative-cron-heartbeat", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_LONGEST_JOIN)
        self._thread = None

    def _beat(self) -> None:
        member = self._member()
        while member is not None and not self._clock.wait(
            self._ended, member.renew.total_seconds()
        ):
            beat(member)
            member = self._member()
        connections.close_all()


def beat(member: Member) -> None:
    """Say once that an instance lives; a refusal is logged and tried again next time.

    Args:
        member: who lives.
    """
    try:
        instances.heartbeat(member)
    except DatabaseError as error:
        report("The heartbeat", error)
        refresh()
