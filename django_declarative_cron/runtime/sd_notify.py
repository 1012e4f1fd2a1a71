"""Messages to systemd: ready, stopping, status, and the watchdog's keep-alive.

Source: sd_notify(3). Datagrams to the socket in ``NOTIFY_SOCKET``; without it nothing is sent.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

from .probes import Report

LONGEST_INTERVAL = 0.5
"""Seconds between two calls of ``look``, where no watchdog asks for more."""


class Notifier:
    """Notify the service manager that started this process, if there is one.

    Args:
        environment: of the process.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        # A path or an abstract name; other kinds of address are not supported.
        self._address = address if address.startswith("/") else ""
        if address.startswith("@"):
            self._address = "\0" + address[1:]
        self._watchdog = _watchdog(environment)
        self._said = ""
        self.interval = min(LONGEST_INTERVAL, self._watchdog / 2 or LONGEST_INTERVAL)

    def ready(self) -> None:
        """Report that the scheduler is up."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Report that the process begins to end; the watchdog expects nothing more then."""
        self._send("STOPPING=1")

    def look(self, found: Report) -> None:
        """Send the status where it has changed, and the keep-alive while the loop works."""
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


def _watchdog(environment: Mapping[str, str]) -> float:
    """Return the seconds within which the watchdog expects a message, 0 without one."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    with suppress(ValueError):
        return max(int(environment.get("WATCHDOG_USEC", "0")) / 1_000_000, 0.0)
    return 0.0
