"""Processes that are forked: whether there can be any, and the state that they inherit.

A callback may fork, by ``multiprocessing`` for example. Its children must neither handle
signals as the scheduler does nor keep the scheduler's descriptors: they could not be ended,
they would report their signals to the scheduler, and its ports would stay in use after it.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

from . import descriptors
from .descriptors import close_in_children as close_in_children

Handler = Callable[[int, FrameType | None], None]

_handlers: dict[int, Handler] = {}
_fork = threading.local()


def can_fork() -> bool:
    """Return whether processes can be forked, and given descriptors."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


def handle(numbers: Iterable[int], handler: Handler) -> None:
    """Handle signals in this process; processes that are forked from it get the default."""
    for number in numbers:
        signal.signal(number, handler)
        _handlers[number] = handler


def _before() -> None:
    """Block the handled signals until the child has its own handling.

    Until then the child would write its signals into the pipe of this process.
    """
    if _handlers:
        _fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handlers)


def _in_parent() -> None:
    mask = _fork.__dict__.pop("mask", None)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _in_child() -> None:
    for number in _ours():
        signal.signal(number, _default(number))
    if not descriptors.is_ours(wakeup := signal.set_wakeup_fd(-1)):
        signal.set_wakeup_fd(wakeup)
    descriptors.close_ours()
    _handlers.clear()
    _in_parent()


def _ours() -> Iterator[int]:
    """Return the signals whose handler was not replaced by the callback's own."""
    return (number for number, own in _handlers.items() if signal.getsignal(number) is own)


def _default(number: int) -> signal.Handlers | Handler:
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
