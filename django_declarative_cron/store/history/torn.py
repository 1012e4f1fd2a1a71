"""Rows that somebody damaged, read as far as they go: none may keep the others from being judged.

SQLite takes any text for a number or an instant. What cannot be read is left out; where that may
look like somebody's fault, the value says that it is torn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeGuard

from django.db.models import QuerySet

from ...models import RegistrationSet, TaskRun
from ..guard import LONG_AGO
from .presence import Span
from .values import Entry, Ran, Registered

_UNREADABLE = (ValueError, TypeError, OverflowError)
_FIELDS = ("pk", "task_name", "started_at", "finished_at", "outcome", "reason", "scheduled_for")
_INSTANCE = "instance"


def page(runs: QuerySet[TaskRun], size: int) -> list[tuple[Any, ...]]:
    """Read some runs; one by one where they cannot be read together.

    Args:
        runs: those to read, in their order.
        size: the most of them.
    """
    try:
        return list(runs.values_list(*_FIELDS, _INSTANCE)[:size])
    except _UNREADABLE:
        keys = list(runs.values_list("pk", flat=True)[:size])
        return [_one(runs.filter(pk=key)) for key in keys]


def _one(run: QuerySet[TaskRun]) -> tuple[Any, ...]:
    try:
        return tuple(run.values_list(*_FIELDS, _INSTANCE).get())
    except _UNREADABLE:
        return (*run.values_list(*_FIELDS).get(), None)


def ran(rows: Iterable[tuple[Any, ...]], earliest: datetime, latest: datetime) -> Iterator[Ran]:
    """Give what ran; what has no place in time is dated by its occurrence and its neighbours.

    Args:
        rows: as ``page`` gives them.
        earliest: where the history begins.
        latest: no run can have started after it.
    """
    before = earliest
    for *read, scheduled_for, instance in rows:
        run = Ran._make([*read, instance, False])
        if _is_whole(run, latest):
            before = run.started_at
            yield run
            continue
        known: tuple[Any, ...] = (run.started_at, run.finished_at, scheduled_for)
        instants = [each for each in known if isinstance(each, datetime) and each <= latest]
        at = max([before, *instants])
        yield run._replace(started_at=at, finished_at=at, is_torn=True)


def _is_whole(run: Ran, latest: datetime) -> bool:
    started: Any = run.started_at
    has_ended = run.finished_at is not None or run.outcome == TaskRun.Outcome.RUNNING
    return has_ended and isinstance(started, datetime) and started <= latest


def registered(rows: Iterable[tuple[RegistrationSet, list[Any]]]) -> Iterator[Registered]:
    """Give the registration sets, each with the entries that can be read.

    Args:
        rows: in their order, each with its registrations as they are stored.
    """
    at, after_run = LONG_AGO, 0
    for row, tasks in rows:
        named = [Entry(data) for data in tasks if _has_name(data)]
        is_dated = isinstance(row.registered_at, datetime) and isinstance(row.after_run, int)
        if is_dated:
            at, after_run = row.registered_at, row.after_run
        is_torn = not is_dated or len(named) < len(tasks)
        entries = {entry.name: entry for entry in named}
        yield Registered(at, after_run, row.instance_id, entries, is_torn)


def _has_name(data: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(data, Mapping) and isinstance(data.get("name"), str)


def lapses(value: object) -> tuple[Span, ...]:
    """Give the times that an instance did not live through, none where they cannot be read.

    Args:
        value: as it is stored.
    """
    try:
        return tuple(map(_span, value))  # type: ignore[call-overload]
    except _UNREADABLE:
        return ()


def _span(lapse: Iterable[str]) -> Span:
    since, until = map(datetime.fromisoformat, lapse)
    return since, until
