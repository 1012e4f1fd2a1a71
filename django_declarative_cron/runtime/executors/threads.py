"""Synchronous callbacks: a bounded pool of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ..clock import Clock
from ..work import Work, perform


class ThreadExecutor:
    """Run callbacks in at most so many threads; the others wait in a queue.

    Args:
        workers: size of the pool.
        clock: dates the ends of runs.
    """

    def __init__(self, workers: int, clock: Clock) -> None:
        self._clock = clock
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="declarative-cron-worker")

    def submit(self, work: Work) -> None:
        """Queue one run.

        Args:
            work: a claimed run.
        """
        self._pool.submit(self._run, work)

    def close(self) -> None:
        """Let the threads end; to be called when every run has ended."""
        self._pool.shutdown(wait=False)

    def _run(self, work: Work) -> None:
        work.done(perform(work, self._clock))
