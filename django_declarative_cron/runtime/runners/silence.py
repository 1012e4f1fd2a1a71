"""How long a fork server owes an answer: one that is stopped is woken, one that hangs is ended.

A callback may stop or hang the server by accident or in anger. Each run that goes on looks
now and then; time in which nobody looked does not count, so that a machine that slept, or
that has too much to do, accuses nobody.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from contextlib import suppress

from ..clock import Clock
from .wire import ASK, MESSAGE

EVERY = 1.0
"""Seconds between two questions, and the most that counts between two looks."""

WAKE_AFTER = 5.0
"""Seconds without an answer after which the server is told to go on, should it be stopped."""

LONGEST_SILENCE = 15.0
"""Seconds without an answer after which a server that has answered before is ended."""

LONGEST_LOAD = 60.0
"""Seconds within which a new server has to load the project and answer."""


class Silence:
    """Ask one server whether it serves, and measure how long it says nothing.

    Args:
        control: the conversation with it.
        pid: of it.
        clock: measures.
    """

    def __init__(self, control: socket.socket, pid: int, clock: Clock) -> None:
        self._control = control
        self._pid = pid
        self._clock = clock
        self._looked = self._asked = clock.monotonic()
        self._owed = self._has_answered = self._was_woken = False
        self.seconds = 0.0

    def is_too_long(self) -> bool:
        """Look, and tell whether the server is to be given up."""
        now = self._clock.monotonic()
        passed, self._looked = now - self._looked, now
        if self._hears():
            self._owed, self._has_answered, self._was_woken, self.seconds = False, True, False, 0.0
        if self._owed:
            self.seconds += min(passed, EVERY)
        elif now - self._asked >= EVERY or not self._has_answered:
            self._ask(now)
        if self.seconds >= WAKE_AFTER and not self._was_woken:
            self._was_woken = True
            with suppress(OSError):
                os.kill(self._pid, signal.SIGCONT)
        return self.seconds >= (LONGEST_SILENCE if self._has_answered else LONGEST_LOAD)

    def _hears(self) -> bool:
        try:
            return self._may(select.POLLIN) and bool(self._control.recv(MESSAGE.size))
        except OSError:
            return False

    def _ask(self, now: float) -> None:
        self._asked, self._owed = now, True
        with suppress(OSError):
            if self._may(select.POLLOUT):
                self._control.sendall(MESSAGE.pack(ASK, 0, 0))

    def _may(self, event: int) -> bool:
        """Tell whether the conversation holds nobody up now."""
        poll = select.poll()
        poll.register(self._control.fileno(), event)
        return bool(poll.poll(0))
