"""django-q and django-q2: the table of schedules."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from ... import conf
from ...core.moving import django_q
from ...core.moving.django_q import Row
from ...core.moving.moved import Moving
from .asked import Asked, bind, readable, rows_of, zone_told

RIVAL = "django-q"

_SAME = ("func", "schedule_type", "minutes", "cron", "repeats", "args", "kwargs", "hook")


def read(asked: Asked) -> Moving:
    """Read the schedules."""
    rows, unread = readable(rows_of("django_q", "Schedule"), _row, attrgetter("name"))
    tasks = (*django_q.moved(rows, bind), *unread)
    general = (zone_told(asked.project_zone), *django_q.GENERAL)
    return Moving(RIVAL, "the table of its schedules", tasks, general)


def _row(found: Any) -> Row:
    zone = conf.project_zone()
    at = found.next_run
    if at is not None:
        at = at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)
    return Row(
        name=found.name or "",
        next_run=at,
        zone=zone.key,
        # Older releases have no such columns.
        cluster=getattr(found, "cluster", None),
        intended_date_kwarg=getattr(found, "intended_date_kwarg", None),
        **{name: getattr(found, name) for name in _SAME},
    )
