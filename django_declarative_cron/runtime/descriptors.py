"""Descriptors of our own in a process in which callbacks may close what they do not know.

The number of a closed descriptor is given to the next file that is opened, which may be
a database: what is then written for us would be written into that file.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

_HIGH = 200

Identity = tuple[int, int]


def out_of_the_way(descriptor: int) -> int:
    """Move a descriptor to a number that files opened later do not get.

    Args:
        descriptor: is closed, where another one is returned.
    """
    if sys.platform == "win32":
        return descriptor
    import fcntl

    with suppress(OSError):
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(descriptor)
        return moved
    return descriptor


def identity(descriptor: int) -> Identity | None:
    """Tell what a descriptor stands for, ``None`` where it is closed.

    Args:
        descriptor: may be somebody else's by now.
    """
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino
