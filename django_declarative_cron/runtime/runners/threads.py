"""Synchronous callbacks: a bounded pool of threads of this process.

A thread cannot be ended from outside. A run that is asked to end is told by
``run.cancelled``; one that does not listen goes on, its task is not started again while it
lives, and another thread takes the place of its own.
"""

from __future__ import annotations

from functools import partial

from ..clock import Clock
from ..work import perform
from .pool import Pool


class ThreadRunner(Pool):
    """Call callbacks in at most so many threads.

    Args:
        workers: size of the pool.
        clock: dates the ends of runs.
    """

    def __init__(self, workers: int, clock: Clock) -> None:
        super().__init__("thread", workers, clock, partial(perform, clock=clock))
