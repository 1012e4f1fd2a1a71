"""Who calls: somebody from outside, or the scheduler itself by a callback or a receiver.

A call from inside must not wait for what waits for it. A context variable knows,
because it follows a callback into coroutines and into ``asyncio.to_thread``; into a
thread that a callback starts by hand it does not follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class _Passage:
    """A stretch of code that a scheduler runs.

    ``over`` is asked because a context may be copied and outlive the stretch.
    """

    owner: object
    alone: bool
    over: bool = False


_passages: ContextVar[tuple[_Passage, ...]] = ContextVar("declarative_cron_inside", default=())


@contextmanager
def inside(owner: object, *, alone: bool = False) -> Iterator[None]:
    """Let calls made meanwhile count as made from inside."""
    passage = _Passage(owner, alone)
    token = _passages.set((*_passages.get(), passage))
    try:
        yield
    finally:
        passage.over = True
        _passages.reset(token)


def is_inside(owner: object) -> bool:
    """Return whether this call comes from a callback, a receiver or a pass of the owner."""
    return any(passage.owner is owner for passage in _open())


def is_alone(owner: object) -> bool:
    """Return whether this call comes from within an initialisation or a shutdown of the owner."""
    return any(passage.owner is owner and passage.alone for passage in _open())


def _open() -> Iterator[_Passage]:
    return (passage for passage in _passages.get() if not passage.over)
