"""Query the rows for notifications and metrics, in a few queries; nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from django.db import DatabaseError
from django.db.models import Avg, Count, DurationField, ExpressionWrapper, F, Max, Min, Q, QuerySet
from django.db.models.expressions import BaseExpression

from .. import conf
from ..core.declarations.problems import Problem
from ..core.lint import Pace, too_long
from ..core.status import Status
from ..models import OutboxEvent, Outcome, ScheduledTask, SchedulerState, TaskRun
from . import database, overview
from .queries import read_schedule
from .status import Attendance, attendance, next_start_at, status_query

MOST = 1000
"""How many failing or overdue tasks are looked at."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """Tasks that need attention.

    Args:
        failing: how often in a row the newest runs failed.
        overdue: since when a start has been due.
    """

    failing: dict[str, int] = field(default_factory=dict)
    overdue: dict[str, datetime | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers for the metrics.

    Args:
        lead: the schedulers, and which of them leads.
        by_status: tasks by their status word.
        by_outcome: runs that ended within an hour, by outcome.
        events: the backlog of the outbox, ``None`` without a sink.
        tasks: rows of tasks, with the state of each.
        gone: of the tasks that were asked for by name, those that are not there any more.
    """

    lead: Attendance
    by_status: dict[Status, int]
    by_outcome: dict[str, int]
    events: Backlog | None
    tasks: list[ScheduledTask]
    gone: frozenset[str] = frozenset()


def troubles_of(using: str, deployment: str, now: datetime) -> Troubles:
    """Return the failing and the overdue tasks, in two queries."""
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    failing = tasks.filter(failures__gt=0).order_by().values_list("name", "failures")[:MOST]
    late = tasks.filter(status_query(Status.OVERDUE, now)).order_by()
    return Troubles(dict(failing), dict(late.values_list("name", "next_run_at")[:MOST]))


def errors_of(using: str, deployment: str, names: Collection[str]) -> dict[str, str]:
    """Return the error of the newest failed run of tasks, in two queries."""
    runs = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment, task_name__in=list(names), outcome__in=overview.WENT_WRONG
    )
    newest = runs.order_by().values("task_name").annotate(newest=Max("id")).values("newest")
    found = TaskRun.objects.using(using).filter(
        pk__in=list(newest.values_list("newest", flat=True))
    )
    return dict(found.values_list("task_name", "error"))


def _with_next_start(tasks: QuerySet[ScheduledTask]) -> QuerySet[ScheduledTask]:
    """Ask for the next start too, and not for the long columns."""
    return tasks.annotate(next_start_at=next_start_at()).defer("declaration", "description")


def counts_of(
    using: str,
    deployment: str,
    now: datetime,
    clock: Clock,
    most: int,
    asked: Collection[str] = (),
) -> Counts | None:
    """Return the numbers, in about six queries; ``None`` if no scheduler ever registered."""
    lead = attendance(using, deployment, clock.database_time())
    if lead is None:
        return None
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    ended = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment,
        outcome__in=[each for each in Outcome.values if each not in ("running", "waiting")],
        finished_at__gte=lead.now - overview.DAY / 24,
    )
    by_outcome = dict(ended.order_by().values_list("outcome").annotate(found=Count("pk")))
    there = tasks.filter(name__in=asked).values_list("name", flat=True)
    return Counts(
        lead=lead,
        by_status=overview.tally(tasks, now),
        by_outcome={each: by_outcome.get(each, 0) for each in Outcome.values},
        events=undelivered(using, deployment, clock),
        tasks=list(_with_next_start(tasks).order_by("name")[:most]),
        gone=frozenset(asked).difference(there),
    )


RECENT: Final = 20_000
"""How many of a database's newest runs are looked at, so that the effort is bounded."""

_ENDED: Final = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT)
_TOOK: Final = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())


def paces(using: str, deployment: str) -> dict[str, Pace]:
    """Return how long the newest runs of each task took on average, in two queries."""
    runs = TaskRun.objects.using(using)
    newest = runs.aggregate(newest=Max("pk"))["newest"]
    if newest is None:
        return {}
    recent = runs.filter(pk__gt=newest - RECENT, scheduler__deployment=deployment)
    ended = recent.filter(outcome__in=_ENDED, started_at__isnull=False).order_by()
    found = ended.values_list("task_name").annotate(number=Count("pk"), took=Avg(_TOOK))
    return {name: Pace(took, number) for name, number, took in found if took is not None}


def too_slow(using: str, deployment: str, now: datetime) -> list[Problem]:
    """Return a warning for each task with runs longer than its interval.

    Return no warnings if the tables do not exist or do not match the code.
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
    """Yield a warning if the runs of a task take longer than its interval."""
    pace = found.get(task.name or "")
    schedule = read_schedule(task)[0] if pace is not None and task.enabled else None
    if schedule is not None and pace is not None:
        yield from too_long(task.name or "", schedule, pace, now)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The undelivered events of a deployment.

    Args:
        waiting: events that are still to be delivered.
        refused: those of them that were refused at least once.
        dead_lettered: events that were refused for too long.
        oldest: when the oldest of the waiting ones happened.
        now: the database's time.
        error: the newest refusal there is, in one line.
    """

    waiting: int
    refused: int
    dead_lettered: int
    oldest: datetime | None
    now: datetime
    error: str

    @property
    def age(self) -> timedelta | None:
        """Return for how long the oldest has been waiting."""
        return None if self.oldest is None else max(self.now - self.oldest, timedelta(0))


class Clock(Protocol):
    """An object with the expression of the database's time."""

    def database_time(self) -> BaseExpression:
        """Return the expression."""


def undelivered(using: str, deployment: str, clock: Clock) -> Backlog | None:
    """Count the waiting events, in two or three queries; in none without a sink.

    Returns:
        the backlog, ``None`` if events are not posted or no scheduler ever registered.
    """
    if not conf.posts_events():
        return None
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    state = states.annotate(database_now=clock.database_time()).first()
    if state is None:
        return None
    rows = OutboxEvent.objects.using(using).filter(scheduler=state)
    waits = Q(dead_lettered_at=None)
    found = rows.aggregate(
        waiting=Count("id", filter=waits),
        refused=Count("id", filter=waits & Q(attempts__gt=0)),
        dead_lettered=Count("id", filter=~waits),
        oldest=Min("created_at", filter=waits),
        newest_refused=Max("id", filter=~Q(error="")),
    )
    newest = found.pop("newest_refused")
    error = "" if newest is None else rows.values_list("error", flat=True).get(pk=newest)
    return Backlog(**found, now=state.database_now, error=error)
