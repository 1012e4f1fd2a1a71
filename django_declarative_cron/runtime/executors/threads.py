"""Synchronous callbacks: a bounded pool of threads."""

from __future__ import annotations

import threading
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

        Raises:
            RuntimeError: no thread could be started; the run will not be called.
        """
        ticket = _Ticket(work)
        try:
            self._pool.submit(self._run, ticket)
        except BaseException:
            # It may stand in the queue all the same; nobody may call it any more.
            ticket.withdraw()
            raise

    def close(self) -> None:
        """Let the threads end; to be called when every run has ended."""
        self._pool.shutdown(wait=False)

    def _run(self, ticket: _Ticket) -> None:
        work = ticket.redeem()
        if work is not None and work.admit(work.id):
            work.done(perform(work, self._clock))


class _Ticket:
    """A run that is called once or not at all."""

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work
        self._lock = threading.Lock()

    def redeem(self) -> Work | None:
        """Give the run, the first time it is asked for."""
        with self._lock:
            work, self._work = self._work, None
        return work

    def withdraw(self) -> None:
        """Let nobody have it."""
        self.redeem()
