"""What the admin reads of a task's row, damaged rows included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ..core.schedule import Schedule
from ..core.status import Status, status_of
from ..models import ScheduledTask
from ..store import rows


@dataclass(frozen=True, slots=True)
class Reading:
    """A task's row, understood as far as it can be.

    Args:
        schedule: ``None`` where the row is damaged.
        problem: why the task is broken, or empty.
        status: the one word.
    """

    schedule: Schedule | None
    problem: str
    status: Status


def read(task: ScheduledTask, now: datetime) -> Reading:
    """Read a row; whatever stands in it, the page is shown.

    Args:
        task: as stored.
        now: the instant it is looked at.
    """
    schedule, damage = _schedule(task)
    problem = task.broken_reason or damage
    status = status_of(
        rows.state_of(task),
        now,
        next_run_at=task.next_run_at,
        broken=bool(problem),
        enabled=task.enabled,
    )
    return Reading(schedule, problem, status)


def _schedule(task: ScheduledTask) -> tuple[Schedule | None, str]:
    try:
        return rows.schedule_of(task), ""
    except (*rows.DAMAGE, AttributeError) as damage:
        return None, str(damage)
