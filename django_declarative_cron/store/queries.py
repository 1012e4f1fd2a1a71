"""Read tasks' rows for pages and commands, damaged rows included."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from django.db import connections
from django.db.models import BooleanField, Case, Count, F, Func, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from ..conf import calendars
from ..core.declarations.declaration import Declaration
from ..core.decoding import StoredTerms, decode_schedule
from ..core.explain import Answer, Facts, Pause, Row, Skip, explain_facts
from ..core.next_run import NextStart, next_start
from ..core.overlap import POLICIES, POLICY_OF_SHORT_FORM, Policy
from ..core.retry import RetryPolicy
from ..core.schedule import Schedule
from ..core.status import Status, status_of
from ..exceptions import TaskTryDeserializeError
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from . import rows
from .status import end_of, gone_since, is_gone, is_interrupted, waits_for_a_worker

_URGENT = (Status.BROKEN, Status.OVERDUE)
_WAITS = "ddc_waits"
_GONE = "ddc_gone"
_RESTS = (Status.DISABLED, Status.PAUSED, Status.PAUSED_UNTIL)


@dataclass(frozen=True, slots=True)
class Reading:
    """A task's row, understood as far as it can be.

    Args:
        terms: when and how it runs, ``None`` where the row is damaged.
        problem: why the task is broken, or empty.
        next_start: ``None`` where none comes by itself.
    """

    task: ScheduledTask
    terms: Declaration | StoredTerms | None
    problem: str
    status: Status
    next_start: NextStart | None

    @property
    def schedule(self) -> Schedule | None:
        return None if self.terms is None else self.terms.schedule

    @property
    def retry(self) -> RetryPolicy | None:
        """Return the retry policy, ``None`` where the task has a delay or is damaged."""
        retry = None if self.terms is None else self.terms.retry
        return retry if isinstance(retry, RetryPolicy) else None

    @property
    def is_paused(self) -> bool:
        """Return whether nothing starts by itself."""
        return self.status in _RESTS

    @property
    def order(self) -> tuple[bool, float, str]:
        """Return the sort key of a list: tasks that need attention, then by next start."""
        instants = [] if self.next_start is None else [self.next_start.at]
        if self.task.run_requested_at is not None and not self.is_paused:
            instants.append(self.task.run_requested_at)
        due = min((each.timestamp() for each in instants), default=float("inf"))
        return (self.status not in _URGENT, due, self.task.name)


def tagged(tasks: QuerySet[ScheduledTask], tag: str) -> QuerySet[ScheduledTask]:
    if connections[tasks.db].features.supports_json_field_contains:
        return tasks.filter(declaration__contains={"tags": [tag]})
    # Django has no containment of JSON with SQLite, so its own function goes through the list.
    has_tag = Func(
        F("declaration"),
        Value(tag),
        template="EXISTS (SELECT 1 FROM json_each(%(expressions)s)",
        arg_joiner=", '$.tags') WHERE value = ",
        output_field=BooleanField(),
    )
    return tasks.filter(has_tag)


def tags_of(task: ScheduledTask) -> tuple[str, ...]:
    """Return the tags that a task is declared with."""
    declared = task.declaration if isinstance(task.declaration, dict) else {}
    return texts(declared.get("tags"))


def texts(tags: Any) -> tuple[str, ...]:
    """Return the tags of a stored declaration, which may be damaged."""
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def ran_before_change(task: ScheduledTask) -> bool:
    """Return whether a task ran, but not since its state began afresh."""
    return task.last_attempt_at is None and task.run_count > 0


def skips_at(task: ScheduledTask, now: datetime) -> datetime | None:
    """Return the occurrence that a person lets pass, as long as it is still to come."""
    accounted = max(task.registered_at, task.discharged_at or task.registered_at, now)
    return task.skip_at if task.skip_at is not None and task.skip_at > accounted else None


def read(task: ScheduledTask, now: datetime) -> Reading:
    """Read a row, even if it is damaged."""
    terms, damage = _read_terms(task)
    problem, state = task.broken_reason or damage, rows.state_of(task)
    waits, gone = _run_of(task, now)
    status = status_of(
        state,
        now,
        next_run_at=task.next_run_at,
        broken=bool(problem),
        enabled=task.enabled,
        waits=waits,
        is_gone=gone,
    )
    return Reading(task, terms, problem, status, None if problem else next_start_of(task))


def next_start_of(task: ScheduledTask) -> NextStart | None:
    """Return the next start of a task, ``None`` where none comes by itself."""
    if task.broken_reason or not task.enabled:
        return None
    return next_start(rows.state_of(task), task.next_run_at, _policy_of(task))


def _policy_of(task: ScheduledTask) -> Policy:
    policy = rows.options_of(task).get("overlap_policy")
    return cast(Policy, policy) if policy in POLICIES else POLICY_OF_SHORT_FORM


def with_runs(tasks: QuerySet[ScheduledTask], now: datetime) -> QuerySet[ScheduledTask]:
    """Add to a query on tasks the values that ``read`` would query for each of them."""
    return tasks.annotate(**{_WAITS: waits_for_a_worker(), _GONE: is_interrupted(now)})


def _run_of(task: ScheduledTask, now: datetime) -> tuple[bool, bool]:
    """Return whether the run in progress waits for a worker, and whether its process is gone."""
    if task.running_run is None:
        return False, False
    if hasattr(task, _WAITS):
        return getattr(task, _WAITS), getattr(task, _GONE)
    runs = TaskRun.objects.using(task._state.db).filter(pk=task.running_run)
    run = runs.annotate(is_gone=Q(is_gone(now))).values_list("outcome", "is_gone").first()
    return (False, False) if run is None else (run[0] == Outcome.WAITING, bool(run[1]))


def read_schedule(task: ScheduledTask) -> tuple[Schedule | None, str]:
    """Return the schedule of a row, or its error."""
    terms, damage = _read_terms(task)
    return None if terms is None else terms.schedule, damage


def _read_terms(task: ScheduledTask) -> tuple[Declaration | StoredTerms | None, str]:
    """Return when and how a row's task runs, or its error."""
    try:
        return rows.terms_of(task), ""
    except TaskTryDeserializeError as damage:
        return None, rows.reason_of(damage)


_OPTIONS = ("dialect", "gap", "fold", "exclude_calendars", "spread")
_READ = (
    *("cron", "timezone", "registered_at", "skip_at"),
    *(f"declaration__{key}" for key in _OPTIONS),
    "own",
)


class Shape(NamedTuple):
    """A schedule that several tasks may have, and since when they are registered."""

    schedule: Schedule
    since: datetime
    number: int


def shapes(tasks: QuerySet[ScheduledTask]) -> Iterator[Shape]:
    """Return the schedules of tasks that can be read, in one query."""
    columns = _with_own_name(tasks.order_by()).values_list(*_READ)
    for schedule, since, (number,) in _schedules(columns.annotate(number=Count("pk"))):
        yield Shape(schedule, since, number)


class Named(NamedTuple):
    """A task as a page of many tasks needs it.

    Tasks with equal schedules share one. ``pk`` is the key of its row, ``scheduler`` that of its
    deployment, ``since`` its registration.
    """

    pk: int
    scheduler: int
    name: str
    schedule: Schedule
    since: datetime


def named(tasks: QuerySet[ScheduledTask]) -> Iterator[Named]:
    """Return each task with a readable schedule, in one query."""
    columns = _with_own_name(tasks).values_list(*_READ, "pk", "scheduler", "name")
    for schedule, since, (pk, scheduler, name) in _schedules(columns):
        yield Named(pk, scheduler, name, schedule, since)


def _with_own_name(tasks: QuerySet[ScheduledTask]) -> QuerySet[ScheduledTask]:
    """Add the name of a task if it decides on the occurrences."""
    is_spread = When(declaration__has_key="spread", then=F("name"))
    return tasks.annotate(own=Case(is_spread, default=Value("")))


def _schedules(
    rows: Iterable[tuple[Any, ...]],
) -> Iterator[tuple[Schedule, datetime, tuple[Any, ...]]]:
    """Yield readable schedules, the registration of each, and the further columns of its row."""
    shared: dict[tuple[str, ...], Schedule | None] = {}
    for row in rows:
        cron, zone, since, skipped, *values, own = row[: len(_READ)]
        same = (own, cron, zone, repr(values))
        if same not in shared:
            shared[same] = _readable(own, cron, zone, values)
        schedule = shared[same]
        if schedule is not None:
            yield schedule.anchored(since).omitting(skipped), since, row[len(_READ) :]


def _readable(name: str, cron: str, zone: str, values: Iterable[Any]) -> Schedule | None:
    keys = zip(_OPTIONS, values, strict=True)
    options = {key: value for key, value in keys if value is not None}
    try:
        return decode_schedule(name, cron, zone, options, calendars())
    except TaskTryDeserializeError:
        return None


_MOST = 50
_MINUTE = timedelta(minutes=1)


def explain(
    task: ScheduledTask,
    now: datetime,
    at: datetime | None = None,
    *,
    is_attended: bool,
) -> Answer:
    """Return why a task does or does not run, or did or did not at an instant."""
    schedule, damage = read_schedule(task)
    runs = TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    before = runs.filter(scheduled_for__lt=task.registered_at)
    facts = Facts(
        now=now,
        state=rows.state_of(task),
        schedule=schedule,
        problem=task.broken_reason or damage,
        enabled=task.enabled,
        is_attended=is_attended,
        rows=_present(runs, now) if at is None else _around(runs, at, now),
        pauses=_pauses(task, at or now),
        known_before=at is not None and at < task.registered_at and before.exists(),
        history_from=task.history_from,
        policy=_policy_of(task),
        skip=_skip(task, now),
    )
    return explain_facts(facts, at)


def _skip(task: ScheduledTask, now: datetime) -> Skip | None:
    """Return the pending skip of an occurrence; one query, where there is one."""
    at = skips_at(task, now)
    if at is None:
        return None
    acts = TaskOverride.objects.filter(
        scheduler=task.scheduler_id,
        task_name=task.name,
        kind=TaskOverride.Kind.SKIP,
        ended_at=None,
    )
    act = acts.order_by("-id").first()
    return Skip(at, "" if act is None else act.author, "" if act is None else act.note)


def _present(runs: QuerySet[TaskRun], now: datetime) -> tuple[Row, ...]:
    ended = runs.filter(started_at__isnull=False, finished_at__isnull=False).order_by("-id")
    last = Q(pk=Subquery(ended.values("pk")[:1]))
    told = runs.filter(Q(outcome=Outcome.RUNNING) | Q(waits_in__isnull=False) | last)
    # The run in progress is among those that are read, even if many wait.
    return _rows(told.order_by("outcome", "-id"), now)


def _around(runs: QuerySet[TaskRun], at: datetime, now: datetime) -> tuple[Row, ...]:
    minute = at.replace(second=0, microsecond=0)
    first = Coalesce("scheduled_from", "scheduled_for")
    near = runs.annotate(first=first).filter(
        Q(scheduled_for__gte=minute, first__lt=minute + _MINUTE)
        | Q(started_at__gte=minute, started_at__lt=minute + _MINUTE)
        | (Q(started_at__lte=at) & (Q(finished_at=None) | Q(finished_at__gte=minute)))
    )
    started = runs.filter(started_at__isnull=False)
    earlier = started.filter(finished_at__lte=at).order_by("-id")[:1]
    later = started.filter(started_at__gte=minute + _MINUTE).order_by("id")[:1]
    queries = (near.order_by("-id"), earlier, later)
    found = {row.key: row for query in queries for row in _rows(query, now)}
    return tuple(found[key] for key in sorted(found))


def _rows(runs: QuerySet[TaskRun], now: datetime) -> tuple[Row, ...]:
    long = ("traceback", "log", "result", "instance__lapses")
    found = runs.select_related("instance").defer(*long)[:_MOST]
    return tuple(_row(run, now) for run in found)


def _row(run: TaskRun, now: datetime) -> Row:
    detail: Any = run.detail if isinstance(run.detail, dict) else {}
    blocking = detail.get("blocked_by")
    return Row(
        key=run.pk,
        scheduled_for=run.scheduled_for,
        scheduled_from=run.scheduled_from,
        started_at=run.started_at,
        finished_at=end_of(run.outcome, run.finished_at, run.detail),
        outcome=run.outcome,
        reason=run.reason,
        attempt=run.attempt,
        error=str(detail.get("local_time", "")) or run.error.strip().partition("\n")[0],
        blocked_by=blocking if isinstance(blocking, int) else None,
        is_offered=run.waits_in is not None,
        gone_since=gone_since(run, now),
        **{key: str(detail.get(key, "")) for key in ("calendar", "author", "note")},
    )


def _pauses(task: ScheduledTask, at: datetime) -> tuple[Pause, ...]:
    acts = TaskOverride.objects.filter(
        scheduler=task.scheduler_id,
        task_name=task.name,
        kind=TaskOverride.Kind.PAUSE,
        created_at__lte=at,
    )
    return tuple(_pause(act) for act in acts.order_by("-id")[:_MOST])


def _pause(act: TaskOverride) -> Pause:
    ends = [end for end in (act.until, act.ended_at) if end is not None]
    return Pause(act.created_at, min(ends, default=None), act.author, act.note, act.reason)


def newest_runs(
    using: str, deployment: str, name: str, number: int, at: datetime | None = None
) -> list[TaskRun]:
    runs = TaskRun.objects.using(using).filter(scheduler__deployment=deployment, task_name=name)
    if at is not None:
        minute = at.replace(second=0, microsecond=0)
        runs = runs.filter(scheduled_for__lt=minute + timedelta(minutes=1))
    shown = runs.select_related("instance").defer("traceback", "instance__lapses")
    return list(shown.order_by("-id")[:number])
