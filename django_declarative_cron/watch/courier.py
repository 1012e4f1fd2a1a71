"""Sending in the background: a bounded queue, a few attempts, and never a word to the caller.

What is sent is best effort: it waits in the memory of this process, the oldest is dropped
where too much waits, and what a receiver does not take after a few attempts is lost, which is
told. A run is never delayed by it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connections

from ..core.events import Event
from ..exceptions import words_of
from ..runtime.clock import Clock, system_clock
from ..signals import publish, report

MOST = 1000
"""How much waits at most."""

PAUSES = (1.0, 4.0)
"""Seconds between the attempts."""


class SendingError(Exception):
    """Tell why a receiver did not take something; its words have no address and no secret.

    Args:
        words: in one line.
        is_final: another attempt would fail too.
    """

    def __init__(self, words: str, *, is_final: bool = False) -> None:
        super().__init__(words)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Failure:
    """What became of something that was not taken.

    Args:
        error: in one line.
        failures: so many in a row.
    """

    error: str
    failures: int


class Courier:
    """Send things one after another, in a thread that is started by the first of them.

    Args:
        name: of the thread.
        tell: makes the event that tells of a failure.
        clock: by which it waits.
    """

    def __init__(
        self, name: str, tell: Callable[[Failure], Event], clock: Clock = system_clock
    ) -> None:
        self._name = name
        self._tell = tell
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._news = threading.Condition()
        self._hurry = threading.Event()
        self._pid = 0
        self._is_busy = False
        self._failures = self.dropped = 0

    def send(self, attempt: Callable[[], None]) -> None:
        """Queue something; never block, never raise.

        Args:
            attempt: sends it, and may be called again; raises ``SendingError``.
        """
        with self._news:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(attempt)
            self._news.notify_all()
            try:
                self._begin()
            except RuntimeError as error:
                report("Starting a thread that sends", error, then="it is tried with the next")

    def finish(self, seconds: float) -> bool:
        """Send what waits.

        Args:
            seconds: the longest that may take; a receiver that fails is not tried again.

        Returns:
            whether nothing waits any more.
        """
        self._hurry.set()
        try:
            with self._news:
                return self._news.wait_for(
                    lambda: not (self._waiting or self._is_busy), max(seconds, 0.0)
                )
        finally:
            self._hurry.clear()

    def _begin(self) -> None:
        # A process that was forked has none of the threads of its parent.
        if self._pid != os.getpid():
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._pid, self._is_busy = os.getpid(), False

    def _work(self) -> None:
        while True:
            with self._news:
                self._is_busy = False
                self._news.notify_all()
                self._news.wait_for(lambda: bool(self._waiting))
                attempt = self._waiting.popleft()
                self._is_busy = True
            # Whatever a library does: the next one is sent.
            try:
                self._send(attempt)
            except BaseException as error:
                report("Sending", error, then="it is lost")
            try:
                connections.close_all()
            except BaseException as error:
                report("Closing connections after sending", error, then="the next one is sent")

    def _send(self, attempt: Callable[[], None]) -> None:
        # A receiver that is down is not waited for with each thing that comes.
        pauses = () if self._failures else PAUSES
        for pause in (*pauses, None):
            try:
                attempt()
            except SendingError as error:
                final = error.is_final or pause is None or self._hurry.is_set()
                failure = str(error)
            except Exception as error:
                final, failure = True, f"{type(error).__name__}: {words_of(error)}"
            else:
                self._failures = 0
                return
            if final or pause is None:
                break
            self._clock.wait(self._hurry, pause)
        self._failures += 1
        # Told less and less often.
        if not self._failures & (self._failures - 1):
            publish([self._tell(Failure(failure, self._failures))])
