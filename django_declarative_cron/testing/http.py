"""Tasks of a simulation that are registered over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import conf
from ..core.http_api import entry_of
from ..exceptions import InvalidRegistrationError
from ..store import posted_tasks
from .simulation import Simulation


def post_task(sim: Simulation, task: Mapping[str, Any]) -> None:
    """Register a task as a caller over HTTP does, with the same validation.

    Args:
        sim: an initialised simulation.
        task: the object in the request body.

    Raises:
        InvalidRegistrationError: the object is invalid.
        OwnedError: settings declare a task of that name.
    """
    entry, flaws = entry_of(task)
    if flaws:
        raise InvalidRegistrationError(flaws[0].field, task.get(flaws[0].field), flaws[0].reason)
    declaration, problems = conf.posted(entry)
    if declaration is None:
        raise next(each.error for each in problems if each.error is not None)
    posted_tasks.post(declaration, sim.now)
