"""Telling a run in a worker that it is to end, or that the worker is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import Error as DatabaseError
from django.db import connections

from ...store import cancelling
from ...store.guard import Member
from ..clock import Clock
from ..connections import renew
from ..work import Work

EVERY = 1.0
"""Seconds between two looks."""

_STOPS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


@contextmanager
def told_when_asked(work: Work, member: Member, clock: Clock) -> Iterator[None]:
    """Look now and then whether the run or the worker is to end, in a thread of its own.

    Args:
        work: the run that is called meanwhile.
        member: whose run it is.
        clock: by which it waits.
    """
    over, stops = threading.Event(), list[int]()

    def look() -> None:
        while not clock.wait(over, EVERY):
            if stops:
                work.run.stopping.set()
            if not work.ending.asked.is_set():
                _ask(work, member)
        connections.close_all()

    thread = threading.Thread(target=look, name="declarative-cron-relay", daemon=True)
    thread.start()
    try:
        with _noted(stops):
            yield
    finally:
        over.set()
        thread.join()


def _ask(work: Work, member: Member) -> None:
    try:
        if work.id in cancelling.requested(member):
            work.ending.ask("cancelled")
    except DatabaseError as error:
        renew(error)


@contextmanager
def _noted(stops: list[int]) -> Iterator[None]:
    """Take note of signals that the worker has a handler for, which does what it did before.

    A note only: what a signal interrupts may hold the lock of any event.
    """
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in [getattr(signal, name) for name in _STOPS if hasattr(signal, name)]:
                handler = signal.getsignal(number)
                if callable(handler) and handler is not signal.default_int_handler:
                    stack.callback(_give_back, number, _listen(number, handler, stops), handler)
        yield


def _listen(number: int, handler: Callable[..., Any], stops: list[int]) -> Callable[..., Any]:
    def note(number: int, frame: Any) -> None:
        stops.append(number)
        handler(number, frame)

    signal.signal(number, note)
    return note


def _give_back(number: int, ours: Callable[..., Any], handler: Callable[..., Any]) -> None:
    """Put a handler back, unless the callback has set one of its own."""
    if signal.getsignal(number) is ours:
        signal.signal(number, handler)
