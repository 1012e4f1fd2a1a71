"""Celery's beat: the schedule of an app or of the settings, and django-celery-beat's tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from operator import attrgetter, itemgetter
from typing import Any

from django.core.management.base import CommandError

from ... import conf
from ...core.moving import celery
from ...core.moving.celery import Beat, Crontab
from ...core.moving.moved import Moving
from ...fields import as_utc
from .asked import Asked, bind, imported, readable, rows_of, zone_told

RIVAL = "celery-beat"

_OWN = "celery.backend_cleanup"
_SETTINGS = ("CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE", "beat_schedule")
_OPTIONS = ("queue", "exchange", "routing_key", "priority")


def read(asked: Asked) -> Moving:
    """Read beat's schedule.

    Raises:
        CommandError: that is none, with exit code 2.
    """
    app, schedule, zone, source = _schedule(asked)
    rows = {row.name: row for row in _rows()}
    beats, torn = readable(rows.values(), lambda row: _of_row(row, app), attrgetter("name"))
    entries = [each for each in schedule if each[0] not in rows]
    declared, broken = readable(
        entries, lambda each: _of_entry(each[0], each[1], zone, app), itemgetter(0)
    )
    beats = [beat for beat in (*beats, *declared) if beat.task != _OWN]
    if rows:
        source = f"{source} and the tables of django-celery-beat"
    told = celery.STILL_SENT if asked.keep_workers else celery.IN_PROCESS
    tasks = celery.moved(beats, bind, keep_workers=asked.keep_workers)
    return Moving(RIVAL, source, (*tasks, *torn, *broken), (zone_told(zone), *celery.GENERAL, told))


def _schedule(asked: Asked) -> tuple[Any, list[tuple[str, Any]], str, str]:
    if asked.source:
        named = imported(asked.source)
        if not hasattr(named, "loader"):
            raise CommandError(f"{asked.source!r} is no app of Celery", returncode=2)
        return named, _of_app(named), str(named.timezone), f"the app {asked.source}"
    found: Mapping[str, Any] = next(filter(None, map(conf.foreign, _SETTINGS)), {})
    # Celery takes the zone of Django where it has none of its own.
    zone = str(conf.foreign("CELERY_TIMEZONE") or asked.project_zone)
    app = None if find_spec("celery") is None else imported("celery.current_app")
    own = [] if app is None else _of_app(app)
    if app is not None and own:
        return app, own, str(app.timezone), f"the app {app.main or 'of the project'}"
    return app, list(found.items()), zone, "CELERY_BEAT_SCHEDULE of the settings"


def _of_app(app: Any) -> list[tuple[str, Any]]:
    app.loader.import_default_modules()
    app.finalize()
    return list((app.conf.beat_schedule or {}).items())


def _rows() -> Iterable[Any]:
    related = ("interval", "crontab", "solar", "clocked")
    return rows_of("django_celery_beat", "PeriodicTask", *related)


def _of_entry(name: str, entry: Mapping[str, Any], zone: str, app: Any) -> Beat:
    return Beat(
        name=str(name),
        task=_path(str(entry.get("task", "")), app),
        when=_when(entry.get("schedule")),
        zone=_zone(entry.get("schedule"), zone),
        args=entry.get("args") or (),
        kwargs=entry.get("kwargs") or {},
        options={**(entry.get("options") or {})},
    )


def _of_row(row: Any, app: Any) -> Beat:
    options = {key: getattr(row, key) for key in _OPTIONS if getattr(row, key)}
    if row.expire_seconds:
        options["expires"] = row.expire_seconds
    return Beat(
        name=row.name,
        task=_path(row.task, app),
        when=_when_of_row(row),
        zone=str(row.crontab.timezone) if row.crontab else "UTC",
        args=json.loads(row.args or "[]"),
        kwargs=json.loads(row.kwargs or "{}"),
        options=options,
        enabled=row.enabled,
        description=" ".join((row.description or "").split()),
        one_off=row.one_off,
        starts=_utc(row.start_time),
        ends=_utc(row.expires),
    )


def _when_of_row(row: Any) -> Crontab | timedelta | str:
    if row.crontab:
        return Crontab(**{name: getattr(row.crontab, name) for name in Crontab._fields})
    if row.interval:
        return timedelta(**{row.interval.period: row.interval.every})
    if row.solar:
        return f"{row.solar.event} at {row.solar.latitude}, {row.solar.longitude}"
    if row.clocked:
        return f"once, at {_utc(row.clocked.clocked_time)},"
    return "nothing"


def _utc(at: datetime | None) -> str:
    # Without USE_TZ the rows of others have local times.
    return "" if at is None else f"{as_utc(at):%Y-%m-%d %H:%M} UTC"


def _when(schedule: Any) -> Crontab | timedelta | str:
    if isinstance(schedule, timedelta):
        return schedule
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        return timedelta(seconds=schedule)
    if hasattr(schedule, "_orig_minute"):
        return Crontab(*(_field(getattr(schedule, f"_orig_{name}")) for name in Crontab._fields))
    if isinstance(getattr(schedule, "run_every", None), timedelta):
        length: timedelta = schedule.run_every
        return length
    if hasattr(schedule, "event"):
        return f"{schedule.event} at {schedule.lat}, {schedule.lon}"
    return f"a schedule of the kind {type(schedule).__name__}"


def _zone(schedule: Any, otherwise: str) -> str:
    # Every crontab has an attribute `tz`; only of these it is not the one of some app.
    own = type(schedule).__name__ == "TzAwareCrontab"
    return str(schedule.tz) if own else otherwise


def _field(given: Any) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, Iterable):
        return ",".join(str(each) for each in _sorted(given))
    return str(given)


def _sorted(given: Iterable[Any]) -> Iterator[Any]:
    yield from sorted(given, key=str)


def _path(name: str, app: Any) -> str:
    """Return the dotted path of a task whose name may be another."""
    task = None if app is None else app.tasks.get(name)
    if task is None or f"{task.__module__}.{task.__name__}" == name:
        return name
    return f"{task.__module__}.{task.__name__}"
