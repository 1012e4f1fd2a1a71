"""The stored history of a deployment as a trace of the theory (004), read a little at a time.

``trace_values`` says when the deployment had a scheduler: to the theory all its instances are
one, which starts with the first and ends with the last of them. ``trace_builder`` puts the
values in order and words the event records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeGuard
from uuid import UUID

from django.db import connections
from django.db.models import F, Max, Q, QuerySet
from django.db.models.expressions import BaseExpression
from django.db.models.lookups import Exact

from ..exceptions import DeclarativeCronError
from ..models import (
    Origin,
    Outcome,
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from . import registration_sets, rows
from .database import DatabaseNow, chunks
from .guard import LONG_AGO
from .trace_builder import History, Sources
from .trace_values import Act, Entry, Life, Ran, Registered, Span, presences

CHUNK = 2000
"""The most rows in memory at once."""


def read(
    using: str,
    deployment: str,
    *,
    lease: timedelta,
    until: datetime,
    since: datetime | None = None,
    database_time: BaseExpression | None = None,
) -> History | None:
    """Read the history of a deployment.

    Nothing is locked, and no transaction stays open: later writes are left out.

    Returns:
        the history, ``None`` where the deployment has no row.
    """
    state = _state(using, deployment, database_time or DatabaseNow())
    if state is None:
        return None
    begins = max(filter(None, (since, state.history_from)), default=None)
    newest = _runs(using, state).aggregate(newest=Max("pk"))["newest"] or 0
    instances = list(SchedulerInstance.objects.using(using).filter(scheduler=state))
    scheduling = [row for row in instances if row.initialized_at is not None]
    present = presences(_lives(using, state, scheduling, state.database_now - lease))
    earliest = present[0].began if present else LONG_AGO
    sources = Sources(
        presences=present,
        sets=_sets(using, state, begins),
        acts=[
            *_acts(using, state, begins),
            *_days_recorded(using, state, begins),
            *_days_ahead(using, state, until),
        ],
        runs=ran(_told(using, state, begins, newest), earliest, until + lease),
        begun=_begun(using, state),
        # Workers and runs by hand never schedule.
        workers={row.pk for row in instances if row.initialized_at is None},
    )
    return History(sources, since=begins, until=until)


def _state(using: str, deployment: str, database_time: BaseExpression) -> Any:
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    read = states.only("deployment", "history_from")
    return read.annotate(database_now=database_time).first()


# --- runs ---


def _runs(using: str, state: SchedulerState) -> QuerySet[TaskRun]:
    # The pending occurrences of tasks of other origins are in no registration set.
    return TaskRun.objects.using(using).filter(
        _of(using, state), started_at__isnull=False, origin=Origin.SETTINGS
    )


def _told(
    using: str, state: SchedulerState, begins: datetime | None, newest: int
) -> Iterator[tuple[Any, ...]]:
    runs = _runs(using, state).filter(pk__lte=newest)
    if begins is not None:
        open_then = Q(finished_at__gte=begins) | Q(finished_at=None)
        runs = runs.filter(Q(started_at__gte=begins) | open_then)
    return _pages(runs, *COLUMNS)


def _pages(runs: QuerySet[TaskRun], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Read runs in pages by key: poolers refuse the transaction that a cursor would need."""
    last = 0
    while True:
        page = list(runs.filter(pk__gt=last).order_by("pk").values_list("pk", *columns)[:CHUNK])
        yield from page
        if len(page) < CHUNK:
            return
        last = page[-1][0]


def _of(using: str, state: SchedulerState) -> Q:
    """Choose the rows of a deployment in the order of their keys.

    SQLite, where an index offers itself, would follow that and sort everything for each page.
    """
    if connections[using].vendor == "sqlite":
        return Q(Exact(F("scheduler_id") + 0, state.pk))
    return Q(scheduler=state)


# --- instances ---


def _lives(
    using: str, state: SchedulerState, rows: list[SchedulerInstance], silent: datetime
) -> Iterator[Life]:
    dead = [row.pk for row in rows if not _lives_still(row, silent) and not _is_orderly(row)]
    acted = _last_acts(using, state, dead)
    for row in rows:
        yield _life(row, silent, acted.get(row.pk, []))


def _lives_still(row: SchedulerInstance, silent: datetime) -> bool:
    return row.stopped_at is None and row.heartbeat_at > silent


def _is_orderly(row: SchedulerInstance) -> bool:
    """Distinguish a complete stop from the end of a process that was found silent."""
    return row.stopped_at is not None and row.heartbeat_at >= row.stopped_at


def _life(row: SchedulerInstance, silent: datetime, acted: list[datetime]) -> Life:
    assert row.initialized_at is not None
    is_orderly = _is_orderly(row)
    if _lives_still(row, silent):
        ended = None
    elif is_orderly:
        ended = row.stopped_at
    else:
        heard = [] if row.heartbeat_at <= LONG_AGO else [row.heartbeat_at]
        asked = [] if row.stop_requested_at is None else [row.stop_requested_at]
        ended = max(row.initialized_at, *heard, *asked, *acted)
    return Life(
        instance=row.pk,
        began=row.initialized_at,
        ended=ended,
        is_orderly=is_orderly,
        asked=row.stop_requested_at,
        lapses=lapses(row.lapses),
    )


def _last_acts(
    using: str, state: SchedulerState, dead: list[UUID]
) -> dict[UUID | None, list[datetime]]:
    """Return the newest start and the newest end that each dead instance lived to see."""
    found: dict[UUID | None, list[datetime]] = {}
    for chunk in chunks(dead):
        runs = _runs(using, state).filter(instance__in=chunk)
        seen = ~Q(outcome=Outcome.INTERRUPTED)
        newest = (
            runs.order_by()
            .values_list("instance")
            .annotate(start=Max("started_at"), end=Max("finished_at", filter=seen))
        )
        for instance, start, end in newest:
            found[instance] = [each for each in (start, end) if each is not None]
    return found


# --- registrations and acts ---


def _sets(using: str, state: SchedulerState, begins: datetime | None) -> Iterator[Registered]:
    sets = RegistrationSet.objects.using(using).filter(scheduler=state).order_by("generation")
    if begins is not None:
        before = sets.filter(registered_at__lt=begins).aggregate(newest=Max("generation"))
        sets = sets.filter(generation__gte=before["newest"] or 0)
    generations = list(sets.values_list("generation", flat=True))
    rows = (row for each in generations for row in sets.filter(generation=each))
    return registered((row, registration_sets.of_set(using, row)) for row in rows)


def _acts(using: str, state: SchedulerState, begins: datetime | None) -> Iterator[Act]:
    acts = TaskOverride.objects.using(using).filter(scheduler=state).order_by("id")
    if begins is not None:
        pauses = Q(kind=TaskOverride.Kind.PAUSE) & (Q(ended_at=None) | Q(ended_at__gte=begins))
        acts = acts.filter(Q(created_at__gte=begins) | pauses)
    yield from map(Act._make, acts.values_list("created_at", "task_name", "kind", "until"))


def _begun(using: str, state: SchedulerState) -> dict[str, datetime]:
    """Return the start of the complete history, of tasks with pruned runs."""
    tasks: Any = ScheduledTask.objects.using(using).filter(scheduler=state)
    return dict(tasks.exclude(history_from=None).values_list("name", "history_from"))


# --- rows as values ---


COLUMNS = (
    *("task_name", "started_at", "finished_at", "outcome", "reason"),
    *("scheduled_for", "instance"),
)
"""The columns of a run that ``ran`` gets after the key."""


def ran(rows: Iterable[tuple[Any, ...]], earliest: datetime, latest: datetime) -> Iterator[Ran]:
    """Return the runs; those without a start are dated by occurrence and neighbours."""
    before = earliest
    for *read, scheduled_for, instance in rows:
        run = Ran._make([*read, instance, False])
        if _is_whole(run, latest):
            before = run.started_at
            yield run
            continue
        known = (run.started_at, run.finished_at, scheduled_for)
        at = max([before, *(each for each in known if each is not None and each <= latest)])
        yield run._replace(started_at=at, finished_at=at, is_torn=True)


def _is_whole(run: Ran, latest: datetime) -> bool:
    has_ended = run.finished_at is not None or run.outcome == TaskRun.Outcome.RUNNING
    return has_ended and run.started_at <= latest


def registered(rows: Iterable[tuple[RegistrationSet, list[Any]]]) -> Iterator[Registered]:
    """Return the registration sets, each with the entries that can be read."""
    for row, tasks in rows:
        entries = {entry.name: entry for entry in map(Entry, filter(_has_name, tasks))}
        is_torn = len(entries) < len(tasks)
        yield Registered(row.registered_at, row.after_run, row.instance_id, entries, is_torn)


def _has_name(data: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(data, Mapping) and isinstance(data.get("name"), str)


def lapses(value: object) -> tuple[Span, ...]:
    """Return the times that an instance did not live through, none where they cannot be read."""
    try:
        return tuple(map(_span, value))  # type: ignore[call-overload]
    except (ValueError, TypeError):
        return ()


def _span(lapse: Iterable[str]) -> Span:
    since, until = map(datetime.fromisoformat, lapse)
    return since, until


REASONS = ("excluded", "skip_next", "too_late")

_BEFORE = timedelta(microseconds=2)
"""A task that comes back for an occurrence does so a microsecond before it."""


def _days_recorded(using: str, state: SchedulerState, begins: datetime | None) -> Iterator[Act]:
    runs = TaskRun.objects.using(using).filter(
        scheduler=state, reason__in=REASONS, origin=Origin.SETTINGS
    )
    if begins is not None:
        runs = runs.filter(Q(finished_at__gte=begins) | Q(scheduled_for__gte=begins))
    columns = ("task_name", "scheduled_from", "scheduled_for", "reason", "finished_at")
    for _, name, first, last, reason, told in _pages(runs, *columns):
        ends = max(last, told) if reason == "too_late" and told is not None else last
        yield _day_off(name, first or last, ends)


def _days_ahead(using: str, state: SchedulerState, until: datetime) -> Iterator[Act]:
    """Yield the skips of days that are not over and have no row yet."""
    tasks: Any = ScheduledTask.objects.using(using).filter(scheduler=state, origin=Origin.SETTINGS)
    for task in tasks.filter(declaration__has_key="exclude_calendars"):
        try:
            schedule, mark = rows.terms_of(task).schedule, rows.state_of(task).mark
            for day in schedule.excluded_between(mark, until):
                yield _day_off(task.name, day.first, day.last)
        except DeclarativeCronError:
            continue


def _day_off(name: str, first: datetime, last: datetime) -> Act:
    return Act(first - _BEFORE, name, "left_out", last)
