"""How many events wait for their receiver, above the list of schedulers."""

from __future__ import annotations

from typing import Any

from ..conf import options
from ..runtime.clock import system_clock
from ..store import database
from ..store.metrics_queries import undelivered
from . import formats


def shown() -> dict[str, Any] | None:
    """Return what is waiting, for the template; ``None`` where events are not posted."""
    found = undelivered(database.alias(), options().DEPLOYMENT, system_clock)
    if found is None:
        return None
    return {
        "waiting": found.waiting,
        "age": "" if found.age is None else formats.span(found.age),
        "is_held_up": bool(found.refused),
        "dead_lettered": found.dead_lettered,
        "error": found.error,
    }
