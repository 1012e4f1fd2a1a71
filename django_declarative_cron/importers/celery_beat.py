"""Celery beat: the schedule of an app or of the settings, and django-celery-beat's tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import Any, Final

from django.core.management.base import CommandError

from .. import conf
from ..fields import as_utc
from ..formatting import format_instant
from . import cron_fields
from .calls import add_call
from .result import NO_RETRY, OVERLAPS, Difference, ImportedTask, ImportResult, UntranslatableError
from .sources import Request, imported, rows_of, zone_difference

GENERAL: Final = (
    Difference(
        "catch-up",
        "beat made up for a time that it missed if it remembered its last run; here one run "
        "always makes up for the latest missed one",
    ),
    OVERLAPS,
    Difference(
        "retry", "the policy of one attempt keeps that beat retries nothing; leave it out for three"
    ),
)
IN_PROCESS: Final = Difference(
    "callback",
    "beat sent tasks to Celery's workers; here runscheduler calls them itself, so that bind, "
    "autoretry_for, time limits and rate limits of Celery do not count (--keep-workers goes on "
    "sending them)",
)
STILL_SENT: Final = Difference(
    "callback", "a run ends when the task was sent: whether it succeeded is Celery's to tell"
)

# Celery numbers weekdays as cron does, goes over the end of a range, and has no 7.
_GRAMMARS: Final = {
    "minute": cron_fields.MINUTE._replace(wraps=True),
    "hour": cron_fields.HOUR._replace(wraps=True),
    "day_of_month": cron_fields.DAY._replace(wraps=True),
    "month_of_year": cron_fields.MONTH._replace(wraps=True),
    "day_of_week": cron_fields.Grammar(0, 6, cron_fields.SUNDAY_FIRST, wraps=True),
}
_OF_SENDING: Final = ("exchange", "routing_key", "priority", "headers", "expires")
_OWN: Final = "celery.backend_cleanup"
_SETTINGS: Final = ("CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE", "beat_schedule")


def read(request: Request) -> ImportResult:
    app, entries, zone, source = _source(request)
    kept = request.keep_workers
    related = ("interval", "crontab", "solar", "clocked")
    rows = rows_of("django_celery_beat", "PeriodicTask", *related)
    tasks = [of_row(row, app, keep_workers=kept) for row in rows if row.task != _OWN]
    # A row replaces the entry of its name, as in django-celery-beat.
    replaced = {row.name for row in rows}
    tasks += [
        of_entry(name, entry, zone, app, keep_workers=kept)
        for name, entry in entries
        if name not in replaced and name != _OWN
    ]
    if rows:
        source = f"{source} and the tables of django-celery-beat"
    general = (zone_difference(zone), *GENERAL, STILL_SENT if kept else IN_PROCESS)
    return ImportResult("celery-beat", source, tasks, general)


def _source(request: Request) -> tuple[Any, list[tuple[str, Any]], str, str]:
    if request.source:
        named = imported(request.source)
        if not hasattr(named, "loader"):
            raise CommandError(f"{request.source!r} is not a Celery app", returncode=2)
        return named, _of_app(named), str(named.timezone), f"the app {request.source}"
    found: Mapping[str, Any] = next(filter(None, map(conf.foreign, _SETTINGS)), {})
    # Celery takes the zone of Django where it has none of its own.
    zone = str(conf.foreign("CELERY_TIMEZONE") or request.project_zone)
    app = None if find_spec("celery") is None else imported("celery.current_app")
    own = [] if app is None else _of_app(app)
    if app is not None and own:
        return app, own, str(app.timezone), f"the app {app.main or 'of the project'}"
    return app, list(found.items()), zone, "CELERY_BEAT_SCHEDULE of the settings"


def _of_app(app: Any) -> list[tuple[str, Any]]:
    app.loader.import_default_modules()
    app.finalize()
    return list((app.conf.beat_schedule or {}).items())


def of_entry(
    name: str, entry: Mapping[str, Any], zone: str, app: Any, *, keep_workers: bool = False
) -> ImportedTask:
    task = ImportedTask(str(name))
    with task.refusing():
        _add_schedule(task, entry.get("schedule"), zone)
        path = _path(str(entry.get("task", "")), app)
        call = (path, entry.get("args") or (), entry.get("kwargs") or {})
        _add_call(task, *call, entry.get("options") or {}, keep_workers)
    return task


def of_row(row: Any, app: Any, *, keep_workers: bool = False) -> ImportedTask:
    task = ImportedTask(row.name)
    with task.refusing():
        _add_schedule_of_row(task, row)
        options = {key: getattr(row, key) for key in ("queue", *_OF_SENDING[:3])}
        options["expires"] = row.expire_seconds
        call = (_path(row.task, app), json.loads(row.args or "[]"), json.loads(row.kwargs or "{}"))
        _add_call(task, *call, options, keep_workers)
        if row.description:
            task.entry["description"] = " ".join(row.description.split())
        if not row.enabled:
            task.entry["enabled"] = False
            task.differ("enabled", "it was switched off, and is")
        if row.start_time:
            task.differ("ends", f"it was to begin at {_utc(row.start_time)}; it begins at once now")
        if row.expires:
            task.differ("ends", f"it was to expire at {_utc(row.expires)}; it has no end now")
    return task


def _add_schedule(task: ImportedTask, schedule: Any, zone: str) -> None:
    if isinstance(schedule, int | float) and not isinstance(schedule, bool):
        schedule = timedelta(seconds=schedule)
    length = getattr(schedule, "run_every", schedule)
    if hasattr(schedule, "_orig_minute"):
        # Every crontab has an attribute `tz`; only of these it is not the one of some app.
        own = type(schedule).__name__ == "TzAwareCrontab"
        texts = [_text(getattr(schedule, f"_orig_{name}")) for name in _GRAMMARS]
        _add_crontab(task, texts, str(schedule.tz) if own else zone)
    elif isinstance(length, timedelta):
        _add_interval(task, length)
    elif hasattr(schedule, "event"):
        _refuse(f"{schedule.event} at {schedule.lat}, {schedule.lon}")
    else:
        _refuse(f"a schedule of the kind {type(schedule).__name__}")


def _add_schedule_of_row(task: ImportedTask, row: Any) -> None:
    if row.one_off:
        raise UntranslatableError("it runs once: run it by hand or by `cron run` when it is time")
    if row.clocked:
        _refuse(f"once, at {_utc(row.clocked.clocked_time)},")
    elif row.crontab:
        texts = [getattr(row.crontab, name) for name in _GRAMMARS]
        _add_crontab(task, texts, str(row.crontab.timezone))
    elif row.interval:
        _add_interval(task, timedelta(**{row.interval.period: row.interval.every}))
    elif row.solar:
        _refuse(f"{row.solar.event} at {row.solar.latitude}, {row.solar.longitude}")
    else:
        _refuse("nothing")


def _refuse(words: str) -> None:
    raise UntranslatableError(f"{words} is not a time of a clock or calendar")


def _add_interval(task: ImportedTask, length: timedelta) -> None:
    task.entry["cron"] = cron_fields.every(length)
    task.differ("schedule", "counts from when the task is first registered, not from its last run")


def _add_crontab(task: ImportedTask, texts: Sequence[str], zone: str) -> None:
    task.entry |= {"cron": cron_of(texts), "timezone": zone}
    if "*" not in (texts[2], texts[4]):
        text = "both day fields had to match in Celery; the entry says the same by `weekday#week`"
        task.differ("days", text)


def cron_of(texts: Sequence[str]) -> str:
    """Return the expression of a crontab's fields, which are in the order of cron.

    Raises:
        UntranslatableError: there is none.
    """
    grammars = _GRAMMARS.values()
    values = [grammar.read(text) for grammar, text in zip(grammars, texts, strict=True)]
    minute, hour, _, month, _ = map(cron_fields.field, values, grammars)
    day, weekday = cron_fields.both_days(values[2], values[4])
    return f"{minute} {hour} {day} {month} {weekday}"


def _text(given: Any) -> str:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return ",".join(sorted(map(str, given)))
    return str(given)


def _add_call(
    task: ImportedTask,
    path: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Mapping[str, Any],
    keep_workers: bool,
) -> None:
    options = {key: value for key, value in options.items() if value not in (None, "", {})}
    if not keep_workers:
        add_call(task, path, args, kwargs)
        if "queue" in options:
            task.differ("queue", f"was sent to the queue {options['queue']!r} of Celery")
        for key in _OF_SENDING:
            if key in options:
                task.differ("queue", f"`{key}` says nothing where nothing is sent")
    elif options or kwargs:
        add_call(task, f"{path}.apply_async", [list(args), dict(kwargs)], options)
    else:
        add_call(task, f"{path}.delay", args, {})
    task.entry |= {"overlap_policy": "allow", "options": NO_RETRY}


def _utc(at: datetime) -> str:
    # Without USE_TZ the rows of others have local times.
    return format_instant(as_utc(at), UTC)


def _path(name: str, app: Any) -> str:
    """Return the dotted path of a task whose name may be another."""
    task = None if app is None else app.tasks.get(name)
    if task is None or f"{task.__module__}.{task.__name__}" == name:
        return name
    return f"{task.__module__}.{task.__name__}"
