"""What became of a task's occurrences over some time, from its history; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import NamedTuple

from django.db.models import Count, IntegerField, Max, Min, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from ..core.schedule import Schedule
from ..models import Outcome, ScheduledTask, SchedulerState, TaskRun
from .overview import WENT_WRONG

SPAN = timedelta(days=30)
MOST_IN_DAY = 5000
"""How far the runs of one day of a calendar are counted."""

MOST = 3000
"""How many runs the days are counted from; a task that runs more often shows fewer days."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """Occurrences that did not run, for one reason.

    Args:
        outcome: ``skipped`` or ``missed``.
        reason: why.
        number: how many.
        first: the first of them.
        last: the last of them.
    """

    outcome: str
    reason: str
    number: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the occurrences since an instant.

    Args:
        since: the instant.
        named: how many the schedule names.
        ran: how many have a run.
        unserved: what did not run, the newest reason first.
    """

    since: datetime
    named: int
    ran: int
    unserved: tuple[Unserved, ...]


def coverage(task: ScheduledTask, schedule: Schedule, now: datetime) -> Coverage:
    """Account for a task's occurrences, in two queries.

    Args:
        task: its row.
        schedule: of the task.
        now: the instant of looking.
    """
    known = [now - SPAN, task.registered_at]
    since = max([*known, task.history_from] if task.history_from else known)
    rows = _history(task).filter(scheduled_for__gt=since)
    ran = rows.filter(started_at__isnull=False).exclude(reason="manual")
    told = (
        rows.filter(started_at=None, finished_at__isnull=False)
        .order_by()
        .values("outcome", "reason")
        .annotate(
            number=Sum("count"),
            first=Min(Coalesce("scheduled_from", "scheduled_for")),
            last=Max("scheduled_for"),
        )
        .order_by("-last")
    )
    return Coverage(
        since=since,
        named=schedule.count_between(since, now),
        ran=ran.aggregate(found=Count("scheduled_for", distinct=True))["found"],
        unserved=tuple(Unserved(**each) for each in told),
    )


def days_of(task: ScheduledTask, now: datetime, zone: tzinfo) -> dict[str, Counter[str]]:
    """Count how the runs of each of the last days ended, in one query.

    Args:
        task: its row.
        now: the instant of looking.
        zone: whose days.
    """
    today = now.astimezone(zone).date()
    days = {
        (today - timedelta(days=back)).isoformat(): Counter[str]()
        for back in range(SPAN.days - 1, -1, -1)
    }
    rows = _history(task).filter(scheduled_for__gt=now - SPAN)
    newest = rows.order_by("-id").values_list("scheduled_for", "outcome", "count")[:MOST]
    for at, outcome, number in newest:
        day = at.astimezone(zone).date().isoformat()
        if day in days:
            days[day][outcome] += number
    return days


def _history(task: ScheduledTask) -> QuerySet[TaskRun]:
    return TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)


class Ended(NamedTuple):
    """How the runs of one day ended, counted up to ``MOST_IN_DAY`` of each kind.

    Args:
        succeeded: number of runs.
        failed: number of runs that went wrong.
    """

    succeeded: int = 0
    failed: int = 0


class _CountOf(Subquery):
    """Count the rows of a query that has a limit, and read no more of them than that."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) ddc_counted)"
    output_field = IntegerField()


def ended_by_day(
    deployment: str, days: Mapping[date, tuple[datetime, datetime]]
) -> dict[date, Ended]:
    """Count how runs ended on each day, in two queries whatever their number.

    Args:
        deployment: its name.
        days: the instants at which each begins and ends.
    """
    states = SchedulerState.objects.filter(deployment=deployment)
    scheduler = states.values_list("pk", flat=True).first()
    if scheduler is None or not days:
        return {}
    kinds = {"succeeded": (Outcome.SUCCEEDED,), "failed": WENT_WRONG}
    counts = {
        f"{kind}_{day:%Y%m%d}": _ended(scheduler, outcomes, *days[day])
        for kind, outcomes in kinds.items()
        for day in days
    }
    found = states.annotate(**counts).values(*counts)[0]
    return {day: Ended(*(found[f"{kind}_{day:%Y%m%d}"] for kind in kinds)) for day in days}


def _ended(scheduler: int, outcomes: Collection[str], begin: datetime, end: datetime) -> _CountOf:
    runs = TaskRun.objects.filter(
        scheduler=scheduler, outcome__in=outcomes, finished_at__gte=begin, finished_at__lt=end
    )
    return _CountOf(runs.order_by().values("finished_at")[:MOST_IN_DAY])
