"""django-cron: the classes of ``CRON_CLASSES``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from ... import conf
from ...core.moving import django_cron
from ...core.moving.django_cron import Job
from ...core.moving.moved import Moved, Moving, named
from .asked import Asked, imported, readable, zone_told

RIVAL = "django-cron"


def read(asked: Asked) -> Moving:
    """Read the classes."""
    paths = conf.foreign("CRON_CLASSES", ())
    found, unread = readable(paths, lambda path: _moved(str(path), asked), _last)
    tasks = named(_nameless(each) for tasks in found for each in tasks)
    general = (zone_told(asked.project_zone), *django_cron.GENERAL)
    return Moving(RIVAL, "CRON_CLASSES of the settings", (*tasks, *unread), general)


def _last(path: object) -> str:
    return str(path).rpartition(".")[2]


def _moved(path: str, asked: Asked) -> tuple[Moved, ...]:
    try:
        return django_cron.moved([_job(path, imported(path), asked.project_zone)])
    except CommandError as error:
        return (Moved(_last(path), None).refused(str(error)),)


def _nameless(task: Moved) -> Moved:
    """Take a name away that was given without knowing the others."""
    if task.entry is None:
        return task
    kept = {key: value for key, value in task.entry.items() if key != "name"}
    return Moved(task.was, kept, tuple(each for each in task.differences if each.about != "name"))


def _job(path: str, found: Any, zone: str) -> Job:
    schedule = found.schedule
    return Job(
        path=path,
        code=str(getattr(found, "code", "")),
        zone=zone,
        every=schedule.run_every_mins,
        at_times=tuple(schedule.run_at_times or ()),
        on_days=_days(schedule, "run_on_days", "run_weekly_on_days"),
        on_month_days=_days(schedule, "run_monthly_on_days"),
        retry_after=schedule.retry_after_failure_mins,
        in_parallel=bool(getattr(found, "ALLOW_PARALLEL_RUNS", False)),
    )


def _days(schedule: Any, *names: str) -> tuple[int, ...] | None:
    found = next((getattr(schedule, name, None) for name in names if hasattr(schedule, name)), None)
    return None if found is None else tuple(found)
