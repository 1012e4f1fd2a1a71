"""When a task was removed, of which only its history is left; nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ..models import Origin, RegistrationSet, ScheduledTask, TaskRun
from .registration_sets import of_set

_SETS = 50
"""How many of the newest registration sets are searched for the name."""


@dataclass(frozen=True, slots=True)
class Removal:
    """The removal of a task.

    Args:
        at: when it was removed; ``None`` where no registration set that is kept says so, as for
            tasks that came over HTTP.
        last: its newest run.
    """

    at: datetime | None
    last: TaskRun


def removal_of(using: str, deployment: str, name: str) -> Removal | None:
    """Return the removal of a task, ``None`` for a task that is registered or never ran."""
    tasks = ScheduledTask.objects.using(using)
    if tasks.filter(scheduler__deployment=deployment, name=name).exists():
        return None
    runs = TaskRun.objects.using(using).filter(scheduler__deployment=deployment, task_name=name)
    last = runs.defer("traceback", "log", "output", "result").order_by("-id").first()
    if last is None:
        return None
    at = None if last.origin == Origin.HTTP else _removed_at(using, deployment, name)
    return Removal(at, last)


def newest_runs(
    using: str, deployment: str, name: str, number: int, at: datetime | None = None
) -> list[TaskRun]:
    """Return the newest runs of a name, the newest first."""
    runs = TaskRun.objects.using(using).filter(scheduler__deployment=deployment, task_name=name)
    if at is not None:
        minute = at.replace(second=0, microsecond=0)
        runs = runs.filter(scheduled_for__lt=minute + timedelta(minutes=1))
    shown = runs.select_related("instance").defer("traceback", "instance__lapses")
    return list(shown.order_by("-id")[:number])


def _removed_at(using: str, deployment: str, name: str) -> datetime | None:
    """Return when the first set without the name was registered."""
    ours = RegistrationSet.objects.using(using).filter(scheduler__deployment=deployment)
    found: datetime | None = None
    for row in ours.order_by("-generation")[:_SETS]:
        names = {each.get("name") for each in of_set(using, row) if isinstance(each, dict)}
        if name in names:
            return found
        found = row.registered_at
    return None
