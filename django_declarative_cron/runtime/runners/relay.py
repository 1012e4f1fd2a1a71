"""Telling a run in a worker that somebody has asked it to end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error as DatabaseError
from django.db import connections

from ...store import cancelling
from ...store.guard import Member
from ..clock import Clock
from ..connections import renew
from ..work import Work

EVERY = 1.0
"""Seconds between two looks."""


@contextmanager
def cancelled_when_asked(work: Work, member: Member, clock: Clock) -> Iterator[None]:
    """Look now and then whether the run is to end, in a thread of its own.

    Args:
        work: the run that is called meanwhile.
        member: whose run it is.
        clock: by which it waits.
    """
    over = threading.Event()

    def look() -> None:
        while not clock.wait(over, EVERY):
            try:
                if work.id in cancelling.requested(member):
                    work.ending.ask("cancelled")
                    break
            except DatabaseError as error:
                renew(error)
        connections.close_all()

    thread = threading.Thread(target=look, name="declarative-cron-relay", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
