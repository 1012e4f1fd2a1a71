"""Tasks whose spread changed: what they have run already does not run a second time."""

from __future__ import annotations

from datetime import datetime

from ..core import events
from ..core.declaration import Declaration
from ..core.spread import offset_of
from ..models import ScheduledTask
from . import rows


def events_of(
    row: ScheduledTask, declaration: Declaration, now: datetime
) -> list[events.TaskMoved]:
    """Tell by how much the occurrences of a task move, in an event or none.

    Args:
        row: as stored, before the declaration is written into it.
        declaration: what is declared now.
        now: the instant of the change.
    """
    try:
        before = offset_of(row.name, rows.operating_of(row).spread)
    except rows.DAMAGE:
        return []
    later = declaration.schedule.offset - before
    if not later:
        return []
    seconds = later.total_seconds()
    return [events.TaskMoved(at=now, task_name=row.name, seconds=seconds)]
