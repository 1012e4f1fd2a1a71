"""Messages to systemd: ready, stopping, status, and the watchdog's keep-alive.

Source: sd_notify(3). Datagrams to the socket in ``NOTIFY_SOCKET``; without it nothing is sent.
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
"""Seconds between two messages where no watchdog asks for more."""


class Notifier:
    """Notify the service manager that started this process, if there is one.

    Args:
        report: returns the health of the scheduler.
        clock: by which it waits.
        environment: of the process.
    """

    def __init__(
        self,
        report: Callable[[], Report],
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._report, self._clock = report, clock
        address = environment.get("NOTIFY_SOCKET", "")
        # A path or an abstract name; other kinds of address are not supported.
        self._address = address if address.startswith("/") else ""
        if address.startswith("@"):
            self._address = "\0" + address[1:]
        self._watchdog = _watchdog(environment)
        self._ended = threading.Event()
        self._said = ""

    def ready(self) -> None:
        """Report that the scheduler is up, and its status from now on."""
        if self._address:
            self._send("READY=1")
            threading.Thread(target=self._run, name="declarative-cron-notify", daemon=True).start()

    def stopping(self) -> None:
        """Report that the process begins to end; the watchdog is served until then."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Send nothing more."""
        self._ended.set()

    def look(self) -> None:
        """Send the status where it has changed, and the keep-alive while the loop works."""
        found, lines = self._report(), []
        if found.line != self._said:
            self._said = found.line
            lines.append(f"STATUS={found.line}")
        if self._watchdog and found.live:
            lines.append("WATCHDOG=1")
        self._send(*lines)

    def _run(self) -> None:
        seconds = min(EVERY, self._watchdog / 2) if self._watchdog else EVERY
        self.look()
        while not self._clock.wait(self._ended, seconds):
            self.look()

    def _send(self, *lines: str) -> None:
        if not self._address or not lines:
            return
        # A service manager that is away must not end the service.
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto("\n".join(lines).encode(), self._address)


def _watchdog(environment: Mapping[str, str]) -> float:
    """Return the seconds within which the watchdog expects a message, 0 without one."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    with suppress(ValueError):
        return max(int(environment.get("WATCHDOG_USEC", "0")) / 1_000_000, 0.0)
    return 0.0
