"""Watching from within: metrics, check-ins with monitors, notifications for people.

Nothing that schedules imports this package. What is here hears events and looks at rows; it
never delays a run, and where it fails it says so and everything else goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..runtime.watchers import Watcher

_known: list[Watcher] = []


def register() -> None:
    """Let what watches be begun wherever runs are; start nothing."""
    from ..runtime import watchers
    from .monitors import Monitors
    from .notifications import Notifications

    if not _known:
        _known[:] = [Monitors(), Notifications()]
        for watcher in _known:
            watchers.register(watcher)
