"""Watchers: monitors and notifications that receive events in each process that has runs.

A scheduler with a loop, ``cron run`` and a worker of a task queue start watchers; a simulation
does not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ..core.declarations.declaration import Declaration
from ..signals import report

if TYPE_CHECKING:
    from ..store.guard import Member

FAREWELL = 3.0
"""Seconds in which waiting messages may be sent at the end of a process."""

Whose = Callable[[], "Member | None"]


class Watcher(Protocol):
    """Receive events, and send messages."""

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Receive events from now on; called again with another registration set."""

    def end(self, seconds: float) -> None:
        """Send the waiting messages, and receive no more events."""


_watchers: list[Watcher] = []
_lock = threading.RLock()
_holders = 0


def register(watcher: Watcher) -> None:
    """Begin a watcher wherever there are runs."""
    _watchers.append(watcher)


def begin(declarations: Sequence[Declaration] | None, whose: Whose = lambda: None) -> None:
    """Begin every watcher; those that a scheduler of this process has begun go on as they are."""
    global _holders
    with _lock:
        _holders += 1
        if _holders == 1 or whose() is not None:
            _begin_each(declarations, whose)


def again(declarations: Sequence[Declaration], whose: Whose) -> None:
    """Continue every watcher with another registration set."""
    with _lock:
        _begin_each(declarations, whose)


def end(seconds: float = FAREWELL) -> None:
    """End every watcher, unless it was begun elsewhere in this process too."""
    global _holders
    with _lock:
        _holders = max(_holders - 1, 0)
        for watcher in [] if _holders else _watchers:
            try:
                watcher.end(seconds)
            except Exception as error:
                report("Ending to watch", error, then="what was not sent is lost")


def _begin_each(declarations: Sequence[Declaration] | None, whose: Whose) -> None:
    for watcher in _watchers:
        try:
            watcher.begin(declarations, whose)
        except Exception as error:
            report("Beginning to watch", error, then="nobody is told of events")
