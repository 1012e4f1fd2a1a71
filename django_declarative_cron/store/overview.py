"""Query an overview for pages, notifications and metrics, in few queries for any number of rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from django.db import DatabaseError
from django.db.models import (
    Avg,
    BooleanField,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.expressions import BaseExpression
from django.db.models.functions import Coalesce

from ..core.declarations.problems import Problem
from ..core.lint import Pace, too_long
from ..core.schedule import Schedule
from ..core.status import Status
from ..cron.zones import in_zone
from ..models import Outcome, ScheduledTask, SchedulerState, TaskRun
from . import database
from .outbox import Backlog, undelivered
from .queries import read_schedule, shapes
from .status import (
    Attendance,
    attendance,
    end_of,
    gone_since,
    is_gone,
    next_start_at,
    overdue_tasks,
    status_word,
)

WENT_WRONG = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED)

RECENT = 20
"""How many of a task's newest runs a list looks at."""

MOST_BARS = 15_000
"""The most runs in the chart of a day, however many took place."""

DAY = timedelta(hours=24)

_SIGNS = ("instance__stopped_at", "instance__heartbeat_at", "instance__mute_since")
_BEGAN = Coalesce(F("started_at"), F("scheduled_for"))


class Ran(NamedTuple):
    """The values of one run for a chart; one chart may need thousands of runs.

    Args:
        start: when it began, or its occurrence where nothing ran.
        end: when it ended, ``None`` while it runs.
    """

    outcome: str
    start: datetime
    end: datetime | None


def failed_lately(deployment: str, now: datetime) -> Q:
    """Return the query expression for tasks with a failed run within a day."""
    wrong = TaskRun.objects.filter(
        scheduler__deployment=deployment, outcome__in=WENT_WRONG, finished_at__gte=now - DAY
    )
    return Q(name__in=Subquery(wrong.order_by().values("task_name")))


def last_outcome(tasks: QuerySet[ScheduledTask], outcome: str) -> QuerySet[ScheduledTask]:
    """Filter tasks by the outcome of their newest run."""
    newest = tasks.order_by().annotate(newest=Subquery(_newest_runs().values("outcome")[:1]))
    # A list counts its rows, and then shows some: each task's history is asked once for both.
    alike: dict[bool, list[int]] = {True: [], False: []}
    for key, ended in newest.values_list("pk", "newest"):
        alike[ended == outcome].append(key)
    if len(alike[True]) > len(alike[False]):
        return tasks.exclude(pk__in=alike[False])
    return tasks.filter(pk__in=alike[True])


class Kind(NamedTuple):
    """Tasks with equal values in all columns that a list counts and filters by.

    The first three are as stored, and may be of any type.
    """

    callback: Any
    timezone: Any
    tags: Any
    status: str
    is_failing: bool
    number: int


def kinds(tasks: QuerySet[ScheduledTask], now: datetime) -> list[Kind]:
    """Return the kinds of tasks, in one query."""
    failing = ExpressionWrapper(Q(failures__gt=0), BooleanField())
    named = tasks.order_by().annotate(word=status_word(now), failing=failing)
    columns = ("callback", "timezone", "declaration__tags", "word", "failing")
    counted = named.values(*columns).annotate(number=Count("pk"))
    return [Kind(*each) for each in counted.values_list(*columns, "number")]


def tally(tasks: QuerySet[ScheduledTask], now: datetime) -> dict[Status, int]:
    """Count tasks by their status word, in one query."""
    counted = tasks.order_by().values(word=status_word(now)).annotate(number=Count("pk"))
    found = dict(counted.values_list("word", "number"))
    return {status: found.get(str(status), 0) for status in Status}


def coming_up(tasks: QuerySet[ScheduledTask], until: datetime) -> Iterator[tuple[Schedule, int]]:
    """Return the schedules of the tasks that run before an instant, and how many have each."""
    for shape in shapes(tasks.filter(next_run_at__lte=until)):
        yield shape.schedule, shape.number


def _newest_runs() -> QuerySet[TaskRun]:
    runs = TaskRun.objects.filter(scheduler=OuterRef("scheduler"), task_name=OuterRef("name"))
    return runs.order_by("-id")


def oldest_recent() -> Subquery:
    """Return the subquery of the key of the oldest of a task's newest runs."""
    return Subquery(_newest_runs().values("id")[RECENT - 1 : RECENT])


def recent_runs(
    tasks: Iterable[ScheduledTask], oldest: dict[str, int | None], now: datetime
) -> dict[str, list[Ran]]:
    """Return the newest runs of tasks, oldest first, in one query; one more where any runs."""
    # The deployment stands in each alternative, or SQLite reads all of its runs.
    named = Q()
    for task in tasks:
        since = oldest.get(task.name or "") or 0
        named |= Q(scheduler=task.scheduler_id, task_name=task.name, id__gte=since)
    if not named:
        return {}
    runs = TaskRun.objects.filter(named)
    return _by_name(runs.order_by("id"), now)


def day_of(
    scheduler: int, names: Collection[str], since: datetime, until: datetime, now: datetime
) -> dict[str, list[Ran]]:
    """Return the runs in a span of time, oldest first, in one query; one more where any runs."""
    runs = TaskRun.objects.filter(scheduler=scheduler, task_name__in=names)
    inside = Q(finished_at=None) | Q(finished_at__gte=since)
    newest = runs.alias(began=_BEGAN).filter(inside, began__lt=until).order_by("-id")
    return _by_name(newest[:MOST_BARS], now, is_reversed=True)


def _by_name(
    runs: QuerySet[TaskRun], now: datetime, *, is_reversed: bool = False
) -> dict[str, list[Ran]]:
    found: dict[str, list[Ran]] = defaultdict(list)
    shown = runs.annotate(began=_BEGAN, started=Q(started_at__isnull=False))
    columns = ("pk", "task_name", "outcome", "began", "started", "finished_at", "detail")
    rows = list(shown.values_list(*columns))
    gone = _gone([key for key, _, outcome, *_ in rows if outcome == Outcome.RUNNING], now)
    for key, name, outcome, began, started, finished, detail in rows:
        if key in gone:
            found[name].append(Ran(Outcome.INTERRUPTED, began, gone[key]))
            continue
        # A row that did not run is as short as its occurrence.
        end = end_of(outcome, finished, detail) if started else began
        found[name].append(Ran(outcome, began, end))
    if is_reversed:
        for each in found.values():
            each.reverse()
    return dict(found)


def _gone(running: Collection[int], now: datetime) -> dict[int, datetime | None]:
    """Return the last sign of life of runs with a dead process."""
    runs = TaskRun.objects.filter(is_gone(now), pk__in=running).select_related("instance")
    needed = runs.only("outcome", "started_at", "reservation", "reserved_until", *_SIGNS)
    return {run.pk: gone_since(run, now) for run in needed}


SPAN = timedelta(days=30)
MOST_IN_DAY = 5000
"""How far the runs of one day of a calendar are counted."""

MOST_RUNS = 3000
"""How many runs the days are counted from; a task that runs more often shows fewer days."""


@dataclass(frozen=True, slots=True)
class Unserved:
    """Occurrences that did not run, for one reason: how many, the first and the last."""

    outcome: str
    reason: str
    number: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Coverage:
    """The results of the occurrences since an instant.

    Args:
        named: how many the schedule names.
        ran: how many have a run.
        unserved: occurrences that did not run, the newest reason first.
    """

    since: datetime
    named: int
    ran: int
    unserved: tuple[Unserved, ...]


def coverage(task: ScheduledTask, schedule: Schedule, now: datetime) -> Coverage:
    """Account for a task's occurrences, in two queries."""
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
    """Count how the runs of each of the last days ended, in one query."""
    today = now.astimezone(zone).date()
    days = {
        (today - timedelta(days=back)).isoformat(): Counter[str]()
        for back in range(SPAN.days - 1, -1, -1)
    }
    rows = _history(task).filter(scheduled_for__gt=now - SPAN)
    newest = rows.order_by("-id").values_list("scheduled_for", "outcome", "count")[:MOST_RUNS]
    for at, outcome, number in newest:
        day = in_zone(at, zone).date().isoformat()
        if day in days:
            days[day][outcome] += number
    return days


def _history(task: ScheduledTask) -> QuerySet[TaskRun]:
    return TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)


class Ended(NamedTuple):
    """How the runs of one day ended, counted up to ``MOST_IN_DAY`` of each kind."""

    succeeded: int = 0
    failed: int = 0


class _CountOf(Subquery):
    """Count the rows of a query that has a limit, and read no more of them than that."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) ddc_counted)"
    output_field = IntegerField()


def ended_by_day(
    deployment: str, days: Mapping[date, tuple[datetime, datetime]]
) -> dict[date, Ended]:
    """Count how runs ended on each day, in two queries for any number of runs."""
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


MOST_TROUBLES = 1000
"""How many failing or overdue tasks are looked at."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers for the metrics.

    Args:
        by_outcome: runs that ended within an hour.
        events: the backlog of the outbox, ``None`` without a sink.
        gone: of the tasks that were asked for by name, those that are not there any more.
    """

    lead: Attendance
    by_status: dict[Status, int]
    by_outcome: dict[str, int]
    events: Backlog | None
    tasks: list[ScheduledTask]
    gone: frozenset[str] = frozenset()


def failing_tasks(using: str, deployment: str) -> dict[str, int]:
    """Return how often in a row the newest runs of tasks failed."""
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    failing = tasks.filter(failures__gt=0).order_by()
    return dict(failing.values_list("name", "failures")[:MOST_TROUBLES])


def overdue_since(using: str, deployment: str, now: datetime) -> dict[str, datetime | None]:
    """Return since when the starts of overdue tasks have been due."""
    late = overdue_tasks(using, deployment, now)
    return dict(late.values_list("name", "next_run_at")[:MOST_TROUBLES])


def errors_of(using: str, deployment: str, names: Collection[str]) -> dict[str, str]:
    """Return the error of the newest failed run of tasks, in two queries."""
    runs = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment, task_name__in=list(names), outcome__in=WENT_WRONG
    )
    newest = runs.order_by().values("task_name").annotate(newest=Max("id")).values("newest")
    found = TaskRun.objects.using(using).filter(
        pk__in=list(newest.values_list("newest", flat=True))
    )
    return dict(found.values_list("task_name", "error"))


def _with_next_start(tasks: QuerySet[ScheduledTask], *, has_tags: bool) -> QuerySet[ScheduledTask]:
    """Ask for the next start too, and for the long columns only if they are needed."""
    long = ("description",) if has_tags else ("declaration", "description")
    return tasks.annotate(next_start_at=next_start_at()).defer(*long)


def counts_of(
    using: str,
    deployment: str,
    now: datetime,
    database_time: BaseExpression,
    most: int,
    asked: Collection[str] = (),
    *,
    has_tags: bool = False,
) -> Counts | None:
    """Return the numbers, in about six queries; ``None`` if no scheduler ever registered."""
    lead = attendance(using, deployment, database_time)
    if lead is None:
        return None
    tasks = ScheduledTask.objects.using(using).filter(scheduler__deployment=deployment)
    ended = TaskRun.objects.using(using).filter(
        scheduler__deployment=deployment,
        outcome__in=[each for each in Outcome.values if each not in ("running", "waiting")],
        finished_at__gte=lead.now - DAY / 24,
    )
    by_outcome = dict(ended.order_by().values_list("outcome").annotate(found=Count("pk")))
    there = tasks.filter(name__in=asked).values_list("name", flat=True)
    return Counts(
        lead=lead,
        by_status=tally(tasks, now),
        by_outcome={each: by_outcome.get(each, 0) for each in Outcome.values},
        events=undelivered(using, deployment, database_time),
        tasks=list(_with_next_start(tasks, has_tags=has_tags).order_by("name")[:most]),
        gone=frozenset(asked).difference(there),
    )


_PACED: Final = 20_000
"""How many of a database's newest runs are looked at, so that the effort is bounded."""

_ENDED: Final = (Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT)
_TOOK: Final = ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField())


def paces(using: str, deployment: str) -> dict[str, Pace]:
    """Return how long the newest runs of each task took on average, in two queries."""
    runs = TaskRun.objects.using(using)
    newest = runs.aggregate(newest=Max("pk"))["newest"]
    if newest is None:
        return {}
    recent = runs.filter(pk__gt=newest - _PACED, scheduler__deployment=deployment)
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
