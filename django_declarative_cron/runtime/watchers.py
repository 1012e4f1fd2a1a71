"""What watches from within a process that has runs: who tells monitors and people of events.

A watcher is begun where runs are: by a scheduler with a loop, by ``cron run``, by the worker
of an engine. A test begins none, because its simulation has no loop.
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
"""Seconds that what is still to be sent has at the end of a process."""

Whose = Callable[[], "Member | None"]


class Watcher(Protocol):
    """Hear events, and tell others."""

    def begin(self, declarations: Sequence[Declaration] | None, whose: Whose) -> None:
        """Hear events from now on, where the options want it; again with another set."""

    def end(self, seconds: float) -> None:
        """Send what waits, and hear no more."""


_watchers: list[Watcher] = []
_busy = threading.RLock()
_holders = 0


def register(watcher: Watcher) -> None:
    """Let a watcher be begun wherever runs are."""
    _watchers.append(watcher)


def begin(declarations: Sequence[Declaration] | None, whose: Whose = lambda: None) -> None:
    """Begin every watcher; none that fails disturbs the others, nor the caller.

    Where a scheduler of this process has begun them, they go on as it has them.
    """
    global _holders
    with _busy:
        _holders += 1
        if _holders == 1 or whose() is not None:
            _begin_each(declarations, whose)


def again(declarations: Sequence[Declaration], whose: Whose) -> None:
    """Let the watchers go on with another set."""
    with _busy:
        _begin_each(declarations, whose)


def end(seconds: float = FAREWELL) -> None:
    """End every watcher, unless somebody else in this process has begun them too."""
    global _holders
    with _busy:
        _holders = max(_holders - 1, 0)
        if _holders:
            return
        for watcher in _watchers:
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


class Watching:
    """The watchers of one scheduler, begun and ended with its loop.

    Args:
        declarations: gives its registration set.
        whose: gives its instance.
    """

    def __init__(self, declarations: Callable[[], Sequence[Declaration]], whose: Whose) -> None:
        self._declarations = declarations
        self._whose = whose
        self._has_begun = False

    def start(self) -> None:
        """Begin, or go on with another set."""
        go = again if self._has_begun else begin
        self._has_begun = True
        go(self._declarations(), self._whose)

    def stop(self) -> None:
        """Send what waits, and end."""
        if self._has_begun:
            self._has_begun = False
            end()
