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
    """Move a descriptor to a number that files opened later do not get."""
    if sys.platform == "win32":
        return descriptor
    import fcntl

    with suppress(OSError):
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        os.close(descriptor)
        return moved
    return descriptor


def identity(descriptor: int) -> Identity | None:
    """Return what a descriptor stands for, ``None`` where it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


_ours: dict[int, Identity | None] = {}


def close_in_children(*descriptors: int) -> None:
    """Close descriptors of this process in each process that is forked from it."""
    _ours.update({each: identity(each) for each in descriptors})


def is_ours(descriptor: int) -> bool:
    """Return whether a descriptor is closed in processes that are forked from this one."""
    return descriptor in _ours


def close_ours() -> None:
    """Close the descriptors that a process was forked with and must not keep."""
    for descriptor, known in _ours.items():
        if known is not None and identity(descriptor) == known:
            with suppress(OSError):
                os.close(descriptor)
    _ours.clear()


class Sentinel:
    """A descriptor that a callback closes together with those that the scheduler needs.

    Its number is as low as theirs, so make it before connections are opened. The standard error is
    kept at a high number beside it, for a last line.
    """

    def __init__(self) -> None:
        self._watched, other = os.pipe()
        os.close(other)
        close_in_children(self._watched)
        self._identity = identity(self._watched)
        self._outputs: list[tuple[int, Identity]] = []
        with suppress(OSError):
            high = out_of_the_way(os.dup(2))
            close_in_children(high)
            self._keep(high)
            self._keep(2)

    def _keep(self, output: int) -> None:
        found = identity(output)
        if found is not None:
            self._outputs.append((output, found))

    @property
    def is_intact(self) -> bool:
        """Return whether nobody has closed it."""
        return identity(self._watched) == self._identity

    def say(self, line: str) -> None:
        """Write a line to the standard error, and never into a file that got its number."""
        for output, is_known_as in self._outputs:
            with suppress(OSError):
                if identity(output) == is_known_as:
                    os.write(output, f"{line}\n".encode())
                    return
