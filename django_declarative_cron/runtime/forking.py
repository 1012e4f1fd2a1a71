"""Forked processes, and the descriptors of the scheduler.

A callback may fork, by ``multiprocessing`` for example. Its children must neither handle
signals as the scheduler does nor keep the scheduler's descriptors: they could not be ended,
they would report their signals to the scheduler, and its ports would stay in use after it.

A callback may also close descriptors that it does not know. The number of a closed descriptor
is given to the next file that is opened, which may be a database: bytes that are then written
for us would go into that file. So each descriptor of ours is compared with its identity.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType

_HIGH = 200

Identity = tuple[int, int]
Handler = Callable[[int, FrameType | None], None]

_handlers: dict[int, Handler] = {}
_descriptors: dict[int, Identity | None] = {}
_fork = threading.local()


def can_fork() -> bool:
    """Return whether processes can be forked, and given descriptors."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


def handle(numbers: Iterable[int], handler: Handler) -> None:
    """Handle signals in this process; processes that are forked from it get the default."""
    for number in numbers:
        signal.signal(number, handler)
        _handlers[number] = handler


def close_in_children(*descriptors: int) -> None:
    """Close descriptors of this process in each process that is forked from it."""
    _descriptors.update({each: identity(each) for each in descriptors})


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
    """Return device and inode of a descriptor, ``None`` where it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class Sentinel:
    """A descriptor that a callback closes together with those that the scheduler needs.

    Its number is as low as theirs, so make it before connections are opened. A copy of the
    standard error with a high number serves for a last line.
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
            self._outputs = [(each, found) for each in (high, 2) if (found := identity(each))]

    @property
    def is_intact(self) -> bool:
        return identity(self._watched) == self._identity

    def say(self, line: str) -> None:
        """Write a line to the standard error, never into a file that got its number."""
        for output, known in self._outputs:
            with suppress(OSError):
                if identity(output) == known:
                    os.write(output, f"{line}\n".encode())
                    return


# --- around each fork of this process ---


def _before() -> None:
    # Until the child has its own handling, it would write its signals into our pipe.
    if _handlers:
        _fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handlers)


def _in_parent() -> None:
    mask = _fork.__dict__.pop("mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _in_child() -> None:
    for number, ours in _handlers.items():
        # A handler that the callback set itself stays.
        if signal.getsignal(number) is ours:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
    if (wakeup := signal.set_wakeup_fd(-1)) not in _descriptors:
        signal.set_wakeup_fd(wakeup)
    for descriptor, known in _descriptors.items():
        if known is not None and identity(descriptor) == known:
            with suppress(OSError):
                os.close(descriptor)
    _descriptors.clear()
    _handlers.clear()
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
