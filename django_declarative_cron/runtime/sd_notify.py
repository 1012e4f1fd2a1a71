"""What systemd is told: ready, stopping, how it goes, and that the loop still turns.

Source: sd_notify(3). Datagrams to the socket in ``NOTIFY_SOCKET``; without it nothing
is done.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from .clock import Clock
from .probes import Report

EVERY = 5.0
"""Seconds between two looks where no watchdog asks for more."""


class Notifier:
    """Tell the service manager that started this process, if any did.

    Args:
        report: gives the health of the scheduler.
        clock: by which it waits.
        environment: of the process.
    """

    def __init__(
        self,
        report: Callable[[], Report],
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._report = report
        self._clock = clock
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._watchdog = _watchdog(environment)
        self._ended = threading.Event()
        self._said = ""

    def ready(self) -> None:
        """Say that the scheduler is up, and from now on how it goes."""
        if not self._address:
            return
        self._send("READY=1")
        threading.Thread(target=self._go_on, name="declarative-cron-notify", daemon=True).start()

    def stopping(self) -> None:
        """Say that the process begins to end; the watchdog is served as long as it lives."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Say nothing more."""
        self._ended.set()

    def _go_on(self) -> None:
        seconds = min(EVERY, self._watchdog / 2) if self._watchdog else EVERY
        self.look()
        while not self._clock.wait(self._ended, seconds):
            self.look()

    def look(self) -> None:
        """Return how it goes where that has changed, and that the loop turns where it does."""
        found = self._report()
        lines = []
        if found.line != self._said:
            self._said = found.line
            lines.append(f"STATUS={found.line}")
        if self._watchdog and found.live:
            lines.append("WATCHDOG=1")
        self._send(*lines)

    def _send(self, *lines: str) -> None:
        if not self._address or not lines:
            return
        # A service manager that is away must not end the service.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), self._address)


def _address(named: str) -> str:
    """Understand a path, or an abstract name; other kinds of address are not spoken to."""
    if named.startswith("@"):
        return "\0" + named[1:]
    return named if named.startswith("/") else ""


def _watchdog(environment: Mapping[str, str]) -> float:
    """Return the seconds within which the watchdog wants to hear us; 0 where it does not."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    with suppress(ValueError):
        return max(int(environment.get("WATCHDOG_USEC", "0")) / 1_000_000, 0.0)
    return 0.0
