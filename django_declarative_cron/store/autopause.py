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
    paused = [event for event in told if isinstance(event, events.TaskPausedByFailures)]
    by_name = {task.name: task for task in tasks} if paused else {}
    for event in paused:
        act = Act(author="", at=event.at, note=event.error, reason=REASON)
        overrides.audit(held, using, [by_name[event.task_name]], act, TaskOverride.Kind.PAUSE)
