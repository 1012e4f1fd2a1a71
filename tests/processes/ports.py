"""Ports for processes that are told where to listen."""

from __future__ import annotations

import os
import socket
from itertools import cycle

# Below the ports that systems hand out by themselves, so that no other process gets one by chance.
_FIRST, _COUNT = 20_000, 12_000
# Each process begins elsewhere, so that two that search at the same time find different ones.
_ports = cycle((os.getpid() * 97 + step) % _COUNT + _FIRST for step in range(_COUNT))


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens at, and another one each time."""
    return next(port for port in _ports if is_free(port))


def is_free(port: int) -> bool:
    """Return whether nobody listens at a port of 127.0.0.1."""
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
