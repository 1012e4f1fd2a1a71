"""Which run this very thread hands to an engine, for engines that call it right there.

The backend that Django has for development, the immediate one, makes the scheduler its own
worker: a stop of the scheduler is then one of the worker.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..work import Work

_handing: ContextVar[Work | None] = ContextVar("declarative_cron_handing", default=None)


@contextmanager
def handing(work: Work) -> Iterator[None]:
    """Let a run be the one that is handed over.

    Args:
        work: the run.
    """
    token = _handing.set(work)
    try:
        yield
    finally:
        _handing.reset(token)


def here_stopping(run: int) -> threading.Event | None:
    """Give what tells of a stop where a run is called by who hands it over.

    Args:
        run: id of its row.
    """
    work = _handing.get()
    return work.run.stopping if work is not None and work.id == run else None
