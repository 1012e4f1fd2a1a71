"""Whether this system has what runs in processes of their own need."""

from __future__ import annotations

import os
import socket


def can_fork() -> bool:
    """Tell whether processes can be forked, and given descriptors."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")
