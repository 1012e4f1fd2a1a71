"""Sending in the background: a bounded queue, a few attempts, and never a word to the caller.

What is sent is best effort: it waits in the memory of this process, the oldest is dropped
where too much waits, and what a receiver does not take after a few attempts is lost, which is
told. A run is never delayed by it. An attempt that never ends, such as one of a mail server
that says nothing, holds its thread and not what comes after it.
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

LONGEST = 300.0
"""Seconds after which a thread whose attempt has not ended is not waited for any more."""

_MOST_STUCK = 3


class DeliveryError(Exception):
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
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._news = threading.Condition()
        self._hurry = threading.Event()
        self._pid = self._turn = self._stuck = 0
        self._is_busy = False
        self._sending, self._since = "", 0.0
        self._failures = self.dropped = 0

    @property
    def waiting(self) -> int:
        """Return how much waits, or is being sent."""
        return len(self._waiting) + self._is_busy

    def holds(self, whose: str) -> bool:
        """Return whether something of somebody waits, or is being sent."""
        with self._news:
            is_sent = self._is_busy and self._sending == whose
            return is_sent or any(each == whose for each, _ in self._waiting)

    def send(self, attempt: Callable[[], None], whose: str = "") -> None:
        """Queue something; never block, never raise."""
        with self._news:
            if len(self._waiting) >= MOST:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append((whose, attempt))
            self._news.notify_all()
            try:
                self._begin()
            except RuntimeError as error:
                report("Starting a thread that sends", error, then="it is tried with the next")

    def finish(self, seconds: float) -> bool:
        """Send what waits.

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
        is_new = self._pid != os.getpid()
        if not is_new and not self._is_stuck():
            return
        given = (self._turn + 1, not is_new)
        threading.Thread(target=self._work, args=given, name=self._name, daemon=True).start()
        self._pid, self._is_busy, self._turn = os.getpid(), False, self._turn + 1
        self._stuck = 0 if is_new else self._stuck + 1

    def _is_stuck(self) -> bool:
        lasts = self._clock.monotonic() - self._since
        return self._is_busy and lasts >= LONGEST and self._stuck < _MOST_STUCK

    def _work(self, turn: int, replaces: bool) -> None:
        if replaces:
            self._fails(f"it has not ended after {LONGEST:.0f} s, and is not waited for")
        while True:
            with self._news:
                if self._turn != turn:
                    # Another thread took its place meanwhile.
                    self._stuck -= 1
                    return
                self._is_busy = False
                self._news.notify_all()
                self._news.wait_for(lambda: bool(self._waiting) and self._turn == turn)
                self._sending, attempt = self._waiting.popleft()
                self._since, self._is_busy = self._clock.monotonic(), True
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
            except DeliveryError as error:
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
        self._fails(failure)

    def _fails(self, failure: str) -> None:
        self._failures += 1
        # Told less and less often.
        if not self._failures & (self._failures - 1):
            publish([self._tell(Failure(failure, self._failures))])
