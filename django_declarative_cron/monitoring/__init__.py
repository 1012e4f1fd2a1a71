"""Metrics, check-ins with external monitors, and notifications for operators.

The scheduler does not import this package. It receives events by signals and reads the database.
It never delays a run; a failure here is logged and has no further effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..runtime.watchers import Watcher

_registered: list[Watcher] = []


def register() -> None:
    """Register check-ins and notifications with the runtime, which starts them with a scheduler."""
    from ..runtime import watchers
    from .monitors import Monitors
    from .notifications import Notifications

    if not _registered:
        _registered[:] = [Monitors(), Notifications()]
        for watcher in _registered:
            watchers.register(watcher)
