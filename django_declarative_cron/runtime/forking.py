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
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

_HIGH = 200

Handler = Callable[[int, FrameType | None], None]

_handlers: dict[int, Handler] = {}
_descriptors: dict[int, Owned] = {}
_fork = threading.local()


def can_fork() -> bool:
    """Return whether processes can be forked, and given descriptors."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


def fork() -> int:
    """Fork in a process that is not meant to have threads.

    A library may have started some all the same. Their locks stay locked in the child, which
    does not use them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


@contextmanager
def ending_children() -> Iterator[None]:
    """End a process that is forked within a block and leaves it: it must not go on as its parent.

    It ends as a Python program does, with the exit code that it asked for; 1 where it returned.
    """
    parent = os.getpid()
    try:
        yield
    except BaseException as error:
        if os.getpid() != parent:
            _exit(error)
        raise
    if os.getpid() != parent:
        _exit(None)


def _exit(error: BaseException | None) -> NoReturn:
    code = 1
    try:
        if not isinstance(error, SystemExit):
            if error is not None:
                sys.excepthook(type(error), error, error.__traceback__)
        elif error.code is None or isinstance(error.code, int):
            code = (error.code or 0) & 0xFF
        else:
            sys.stderr.write(f"{error.code}\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


IGNORED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP")
    if hasattr(signal, name)
)


def become_helper(title: str) -> None:
    """Take a name, and leave signals to a whole group or container to the scheduler."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/comm").write_text(title)


def handle(numbers: Iterable[int], handler: Handler) -> None:
    """Handle signals in this process; processes that are forked from it get the default."""
    for number in numbers:
        signal.signal(number, handler)
        _handlers[number] = handler


def close_in_children(*descriptors: int) -> None:
    """Close descriptors of this process in each process that is forked from it."""
    _descriptors.update({each: Owned(each) for each in descriptors})


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


class Owned:
    """A descriptor of ours, as long as no callback has closed it."""

    def __init__(self, descriptor: int) -> None:
        self.number = descriptor
        self._identity = self._present()

    @property
    def is_ours(self) -> bool:
        """Return whether it is still what it was, and not another file."""
        return self._identity is not None and self._present() == self._identity

    def _present(self) -> tuple[int, int] | None:
        """Return device and inode, ``None`` where it is closed."""
        try:
            found = os.fstat(self.number)
        except OSError:
            return None
        return found.st_dev, found.st_ino


class Sentinel:
    """A descriptor that a callback closes together with those that the scheduler needs.

    Its number is as low as theirs, so make it before connections are opened. A copy of the
    standard error with a high number serves for a last line.
    """

    def __init__(self) -> None:
        watched, other = os.pipe()
        os.close(other)
        close_in_children(watched)
        self._watched, self._outputs = Owned(watched), [Owned(2)]
        with suppress(OSError):
            high = out_of_the_way(os.dup(2))
            close_in_children(high)
            self._outputs.insert(0, Owned(high))

    @property
    def is_intact(self) -> bool:
        return self._watched.is_ours

    def say(self, line: str) -> None:
        """Write a line to the standard error, never into a file that got its number."""
        for output in self._outputs:
            with suppress(OSError):
                if output.is_ours:
                    os.write(output.number, f"{line}\n".encode())
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
    for descriptor in _descriptors.values():
        if descriptor.is_ours:
            with suppress(OSError):
                os.close(descriptor.number)
    _descriptors.clear()
    _handlers.clear()
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
