"""The schedules of many tasks at once: ten thousand tasks have a few hundred of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Case, Count, F, QuerySet, Value, When

from ..core.damage import UNREADABLE
from ..core.schedule import Schedule
from ..models import ScheduledTask
from .rows import DAMAGE, declared_schedule

_COLUMNS = ("cron", "timezone", "registered_at", "skip_at")
_DECLARED = ("dialect", "gap", "fold", "exclude")


class Shape(NamedTuple):
    """A schedule that several tasks may have.

    Args:
        schedule: expression and zone.
        since: the registration of its tasks.
        number: how many they are.
    """

    schedule: Schedule
    since: datetime
    number: int


def shapes(tasks: QuerySet[ScheduledTask]) -> Iterator[Shape]:
    """Give the schedules of tasks that can be read, in one query.

    Args:
        tasks: to be looked at; each that is spread has a shape of its own.
    """
    known = tasks.order_by().exclude(digest__startswith=UNREADABLE)
    keys = (*_DECLARED, "spread")
    is_spread = When(declaration__has_key="spread", then=F("name"))
    known = known.annotate(own=Case(is_spread, default=Value("")))
    columns = [*_COLUMNS, *(f"declaration__{key}" for key in keys), "own"]
    for row in known.values_list(*columns).annotate(number=Count("pk")):
        cron, zone, since, skipped, *said, name, number = row
        options = {key: each for key, each in zip(keys, said, strict=True) if each is not None}
        schedule = _readable(name, cron, zone, options)
        if schedule is not None:
            yield Shape(schedule.anchored(since).omitting(skipped), since, number)


class Named(NamedTuple):
    """A task as a page of many tasks needs it.

    Args:
        pk: key of its row.
        scheduler: key of its deployment.
        name: of the task.
        schedule: tasks that say the same share one.
        since: its registration.
    """

    pk: int
    scheduler: int
    name: str
    schedule: Schedule
    since: datetime


def named(tasks: QuerySet[ScheduledTask]) -> Iterator[Named]:
    """Give each task whose schedule can be read, in one query.

    Args:
        tasks: to be looked at.
    """
    keys = (*_DECLARED, "spread")
    known = tasks.exclude(digest__startswith=UNREADABLE)
    columns = ("pk", "scheduler", "name", *_COLUMNS, *(f"declaration__{key}" for key in keys))
    shared: dict[tuple[str, ...], Schedule | None] = {}
    for pk, scheduler, name, cron, zone, since, skipped, *said in known.values_list(*columns):
        options = {key: each for key, each in zip(keys, said, strict=True) if each is not None}
        own = name if "spread" in options else ""
        same = (own, cron, zone, repr(said))
        if same not in shared:
            shared[same] = _readable(own, cron, zone, options)
        schedule = shared[same]
        if schedule is not None:
            counted = schedule.anchored(since).omitting(skipped)
            yield Named(pk, scheduler, name, counted, since)


def _readable(name: str, cron: str, zone: str, options: dict[str, Any]) -> Schedule | None:
    try:
        return declared_schedule(name, cron, zone, options)
    except DAMAGE:
        return None
