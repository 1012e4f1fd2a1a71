"""The schedules of many tasks at once: ten thousand tasks have a few hundred of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from django.db.models import Count, QuerySet

from ..core.damage import UNREADABLE
from ..core.schedule import Schedule
from ..cron import parse
from ..models import ScheduledTask
from .rows import DAMAGE

_COLUMNS = ("cron", "timezone", "registered_at")
_DECLARED = ("declaration__dialect", "declaration__gap", "declaration__fold")


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
        tasks: to be looked at.
    """
    known = tasks.order_by().exclude(digest__startswith=UNREADABLE)
    found = known.values_list(*_COLUMNS, *_DECLARED).annotate(number=Count("pk"))
    for cron, zone, since, dialect, gap, fold, number in found:
        try:
            expression = parse(cron, dialect or "posix")
            schedule = Schedule(expression, ZoneInfo(zone), gap or "skip", fold or "first")
            yield Shape(schedule.anchored(since), since, number)
        except DAMAGE:
            continue
