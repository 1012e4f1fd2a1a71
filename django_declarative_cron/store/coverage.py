"""What became of a task's occurrences over some time, from its history; nothing is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from django.db.models import Count, Max, Min, QuerySet, Sum
from django.db.models.functions import Coalesce

from ..core.schedule import Schedule
from ..models import Outcome, ScheduledTask, TaskRun
from .overview import WENT_WRONG

SPAN = timedelta(days=30)
MOST_IN_MONTH = 20_000
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


def ended_by_day(
    deployment: str, begin: datetime, end: datetime, zone: tzinfo
) -> dict[date, Counter[str]]:
    """Count what went wrong on each day, and what did not, as far as the newest runs tell.

    Args:
        deployment: its name.
        begin: of the time looked at.
        end: of the time looked at.
        zone: whose days.
    """
    days: dict[date, Counter[str]] = {}
    runs = TaskRun.objects.filter(
        scheduler__deployment=deployment, finished_at__gte=begin, finished_at__lt=end
    )
    for outcomes, word in ((WENT_WRONG, "failed"), ((Outcome.SUCCEEDED,), "succeeded")):
        newest = runs.filter(outcome__in=outcomes).order_by("-finished_at")
        for at in newest.values_list("finished_at", flat=True)[:MOST_IN_MONTH]:
            if at is not None:
                days.setdefault(at.astimezone(zone).date(), Counter())[word] += 1
    return days
