"""Deliver check-ins and notifications from background threads.

Delivery is best effort. Messages wait in memory, and beyond 1,000 the oldest is dropped. A message
that its receiver does not accept is lost, which an event reports. Each attempt has a timeout, so a
receiver that hangs delays only the messages with the same key and, in the end, those of one sender.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from django.db import connections

from ..core.events import Event
from ..exceptions import words_of
from ..signals import publish, report

MAX_WAITING = 1000
MAX_THREADS = 8


class DeliveryError(Exception):
    """Raise if a receiver did not accept a message; the text has no address and no secret."""


class Delivery:
    """Deliver messages in the background; those with the same key one after another.

    The threads are daemons, not those of a ``ThreadPoolExecutor``: the interpreter joins the
    threads of an executor at exit, so a receiver that hangs would delay the end of the process.

    Args:
        name: of the threads.
        failed: makes the event for an error and the number of failures in a row.
    """

    def __init__(self, name: str, failed: Callable[[str, int], Event]) -> None:
        self._name = name
        self._failed = failed
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque(maxlen=MAX_WAITING)
        self._busy: set[str] = set()
        self._threads = self._failures = 0

    def send(self, attempt: Callable[[], None], key: str = "") -> None:
        """Queue a message; never block and never raise."""
        if self._pid != os.getpid():
            self._reset()  # A forked process has none of the threads of its parent.
        with self._changed:
            self._waiting.append((key, attempt))
            if key in self._busy or self._threads >= MAX_THREADS:
                return
            try:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            except RuntimeError as error:
                report("Starting a delivery thread", error, then="the next message starts one")
            else:
                self._threads += 1

    def finish(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._busy), seconds)

    def _work(self) -> None:
        while (message := self._take()) is not None:
            key, attempt = message
            try:
                self._attempt(attempt)
            finally:
                with self._changed:
                    self._busy.discard(key)
                    self._changed.notify_all()
        try:
            connections.close_all()  # A mail backend may have used the database.
        except Exception as error:
            report("Closing connections after a delivery", error, then="nothing is lost")

    def _take(self) -> tuple[str, Callable[[], None]] | None:
        with self._changed:
            for message in self._waiting:
                if message[0] not in self._busy:
                    self._waiting.remove(message)
                    self._busy.add(message[0])
                    return message
            self._threads -= 1
            return None

    def _attempt(self, attempt: Callable[[], None]) -> None:
        try:
            attempt()
        except DeliveryError as error:
            self._report(str(error))
        except BaseException as error:
            # Catch everything, so that one failure does not stop the thread.
            self._report(f"{type(error).__name__}: {words_of(error)}")
        else:
            self._failures = 0

    def _report(self, error: str) -> None:
        self._failures += 1
        # Publish the 1st, 2nd, 4th, 8th, … failure in a row.
        if not self._failures & (self._failures - 1):
            publish([self._failed(error, self._failures)])
