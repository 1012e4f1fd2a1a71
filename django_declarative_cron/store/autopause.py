"""Pauses that failures bring about: written down as acts of the scheduler itself."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import events
from ..models import ScheduledTask, TaskOverride
from . import overrides
from .guard import Locked
from .overrides import Act

REASON = "failures"


def note(
    held: Locked, using: str, told: Iterable[events.Event], tasks: Iterable[ScheduledTask]
) -> None:
    """Write an act for each task that its failures paused.

    Args:
        held: the locked row of the deployment.
        using: database alias.
        told: events of this transaction.
        tasks: rows of the tasks they are about.
    """
    acts = {
        event.task_name: Act(author="", at=event.at, note=event.error, reason=REASON)
        for event in told
        if isinstance(event, events.TaskPausedByFailures)
    }
    if acts:
        paused = [task for task in tasks if task.name in acts]
        kind = TaskOverride.Kind.PAUSE
        overrides.audit(held, using, paused, lambda task: acts[str(task.name)], kind)
