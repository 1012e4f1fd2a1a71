"""The schedules of many tasks at once: ten thousand tasks have a few hundred of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

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


def shapes(tasks: QuerySet[ScheduledTask], *, apart: bool) -> Iterator[Shape]:
    """Give the schedules of tasks that can be read, in one query.

    Args:
        tasks: to be looked at.
        apart: each task that is spread has a shape of its own. Without it, it counts by its
            expression: a spread is shorter than a day, and moves few into the next one.
    """
    known = tasks.order_by().exclude(digest__startswith=UNREADABLE)
    keys = (*_DECLARED, "spread") if apart else _DECLARED
    columns = [*_COLUMNS, *(f"declaration__{key}" for key in keys)]
    if apart:
        is_spread = When(declaration__has_key="spread", then=F("name"))
        known = known.annotate(own=Case(is_spread, default=Value("")))
        columns.append("own")
    for row in known.values_list(*columns).annotate(number=Count("pk")):
        cron, zone, since, skipped, *said, number = row
        name = said.pop() if apart else ""
        options = {key: each for key, each in zip(keys, said, strict=True) if each is not None}
        try:
            schedule = declared_schedule(name, cron, zone, options)
            yield Shape(schedule.anchored(since).omitting(skipped), since, number)
        except DAMAGE:
            continue
