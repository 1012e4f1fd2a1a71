"""How long the runs of tasks take, set against how often they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from django.db import DatabaseError
from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Max

from ..core.linter import Pace, too_long
from ..core.problem import Problem
from ..models import Outcome, ScheduledTask, TaskRun
from . import database
from .reading import read_schedule

RECENT: Final = 20_000
"""How many of a database's newest runs are looked at, so that the effort is bounded."""

_ENDED: Final = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT)
_TOOK: Final = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())


def paces(using: str, deployment: str) -> dict[str, Pace]:
    """Give how long the newest runs of each task took on average, in two queries.

    Args:
        using: database alias.
        deployment: whose tasks.
    """
    runs = TaskRun.objects.using(using)
    newest = runs.aggregate(newest=Max("pk"))["newest"]
    if newest is None:
        return {}
    recent = runs.filter(pk__gt=newest - RECENT, scheduler__deployment=deployment)
    ended = recent.filter(outcome__in=_ENDED, started_at__isnull=False).order_by()
    found = ended.values_list("task_name").annotate(number=Count("pk"), took=Avg(_TOOK))
    return {name: Pace(took, number) for name, number, took in found if took is not None}


def too_slow(using: str, deployment: str, now: datetime) -> list[Problem]:
    """Give a warning for each task whose runs take longer than its occurrences are apart.

    Nothing is said where the tables are not there yet, or not as the code has them.

    Args:
        using: database alias.
        deployment: whose tasks.
        now: occurrences after it are looked at.
    """
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    try:
        with database.atomic(using):
            found = paces(using, deployment)
            known = list(tasks.filter(name__in=list(found)).order_by("name"))
    except DatabaseError:
        return []
    return [problem for task in known for problem in judged(task, found, now)]


def judged(task: ScheduledTask, found: Mapping[str, Pace], now: datetime) -> Iterator[Problem]:
    """Yield a warning where the runs of a task take longer than its occurrences are apart.

    Args:
        task: its row.
        found: what ``paces`` gives.
        now: occurrences after it are looked at.
    """
    pace = found.get(task.name or "")
    schedule = read_schedule(task)[0] if pace is not None and task.enabled else None
    if schedule is not None and pace is not None:
        yield from too_long(task.name or "", schedule, pace, now)
