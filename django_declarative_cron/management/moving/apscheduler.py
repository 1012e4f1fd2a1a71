"""APScheduler: a scheduler, one of its stores, or the table of django-apscheduler."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError

from ...core.moving import apscheduler
from ...core.moving.apscheduler import Job
from ...core.moving.moved import Moving
from ...exceptions import words_of
from .asked import Asked, bind, imported, readable, zone_told

RIVAL = "apscheduler"


def read(asked: Asked) -> Moving:
    """Read the jobs.

    Raises:
        CommandError: there is neither, with exit code 2.
    """
    found, source = _source(asked)
    defaults: Mapping[str, Any] = getattr(found, "_job_defaults", {})
    every = getattr(found, "get_jobs", None) or getattr(found, "get_all_jobs", None)
    if every is None:
        text = f"{asked.source!r} has no jobs: name a scheduler or a job store"
        raise CommandError(text, returncode=2)
    if hasattr(found, "get_all_jobs"):
        every = found.get_all_jobs
    jobs, unread = readable(
        every(), lambda each: _job(each, defaults, asked.project_zone), attrgetter("id")
    )
    tasks = (*apscheduler.moved(jobs, bind), *unread)
    return Moving(RIVAL, source, tasks, (zone_told(asked.project_zone), *apscheduler.GENERAL))


def _source(asked: Asked) -> tuple[Any, str]:
    path = asked.source
    if path:
        found = imported(path)
        found = _made(found, path) if callable(found) else found
        if hasattr(found, "get_all_jobs"):
            _require_unpickle(asked)
        return found, path
    if not apps.is_installed("django_apscheduler"):
        text = "Name a scheduler by its dotted path, such as shop.jobs.scheduler."
        raise CommandError(text, returncode=2)
    _require_unpickle(asked)
    store = imported("django_apscheduler.jobstores.DjangoJobStore")
    return store(), "the table of django-apscheduler"


def _require_unpickle(asked: Asked) -> None:
    if not asked.unpickle:
        text = (
            "The rows of a job store are pickled, and unpickling runs the code that they name: "
            "add --unpickle if nobody else can write to them, or name a scheduler."
        )
        raise CommandError(text, returncode=2)


def _made(found: Any, path: str) -> Any:
    if hasattr(found, "get_jobs") and not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        text = f"{path!r} gives no scheduler: {type(error).__name__}: {words_of(error)}"
        raise CommandError(text, returncode=2) from error


def _job(found: Any, defaults: Mapping[str, Any], zone: str) -> Job:
    def said(name: str, otherwise: Any) -> Any:
        return getattr(found, name, defaults.get(name, otherwise))

    trigger, kind = found.trigger, type(found.trigger).__name__
    known = {"CronTrigger": "cron", "IntervalTrigger": "interval"}
    return Job(
        name=str(found.id),
        func=str(getattr(found, "func_ref", None) or ""),
        trigger=known.get(kind, _words(trigger, kind)),
        cron={each.name: str(each) for each in getattr(trigger, "fields", ())},
        length=getattr(trigger, "interval", None),
        zone=_zone(trigger, zone),
        args=tuple(found.args),
        kwargs=dict(found.kwargs),
        paused=getattr(found, "next_run_time", trigger) is None,
        misfire_grace=said("misfire_grace_time", 1),
        max_instances=said("max_instances", 1),
        coalesce=said("coalesce", True),
        jitter=getattr(trigger, "jitter", None),
        starts=_instant(trigger, "start_date") if kind == "CronTrigger" else "",
        ends=_instant(trigger, "end_date"),
    )


def _words(trigger: Any, kind: str) -> str:
    if kind == "DateTrigger":
        return f"one date, {trigger.run_date:%Y-%m-%d %H:%M},"
    return f"the trigger {kind}"


def _zone(trigger: Any, otherwise: str) -> str:
    zone = getattr(trigger, "timezone", None)
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone or otherwise)


def _instant(trigger: Any, name: str) -> str:
    at = getattr(trigger, name, None)
    return "" if at is None else f"{at:%Y-%m-%d %H:%M}"
