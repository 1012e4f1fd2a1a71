"""Celery beat: the schedule of an app or of the settings, and django-celery-beat's tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from django.core.management.base import CommandError

from .. import conf
from ..fields import as_utc
from ..formatting import format_instant
from . import cron_fields
from .calls import CALL, Keys, call_keys, keys_by_name
from .result import (
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    named,
)
from .sources import Request, imported, readable, rows_of, zone_difference

GENERAL: Final = (
    Difference(
        "catch-up",
        "beat made up for a time that it missed if it remembered its last run; here one run "
        "always makes up for the latest missed one",
    ),
    Difference(
        "overlap",
        '"allow" keeps that runs may overlap; leave it out to skip a time during a run',
    ),
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
_MINUTE: Final = cron_fields.MINUTE._replace(wraps=True)
_HOUR: Final = cron_fields.HOUR._replace(wraps=True)
_DAY: Final = cron_fields.DAY._replace(wraps=True)
_MONTH: Final = cron_fields.MONTH._replace(wraps=True)
_WEEKDAY: Final = cron_fields.Grammar(0, 6, cron_fields.SUNDAY_FIRST, wraps=True)
_OF_SENDING: Final = ("queue", "exchange", "routing_key", "priority", "headers", "expires")


class Crontab(NamedTuple):
    """The fields of a crontab of Celery, as texts."""

    minute: str = "*"
    hour: str = "*"
    day_of_month: str = "*"
    month_of_year: str = "*"
    day_of_week: str = "*"


@dataclass(frozen=True, slots=True)
class Beat:
    """One entry; a schedule that is no crontab and no interval is in words."""

    name: str
    task: str
    when: Crontab | timedelta | str
    zone: str = "UTC"
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    enabled: bool = True
    description: str = ""
    one_off: bool = False
    starts: str = ""
    ends: str = ""


def convert(beat: Beat, *, keep_workers: bool = False) -> ImportedTask:
    try:
        when, schedule = _schedule(beat)
        keys, calls = _sent(beat) if keep_workers else _called(beat)
    except UntranslatableError as error:
        return ImportedTask(beat.name, None).refused(str(error))
    entry: dict[str, Any] = {**when, **keys, "overlap_policy": "allow"}
    entry["options"] = {"retry": dict(NO_RETRY)}
    if beat.description:
        entry["description"] = beat.description
    if not beat.enabled:
        entry["enabled"] = False
        schedule.append(Difference("enabled", "it was switched off, and is"))
    return ImportedTask(beat.name, entry, (*schedule, *calls, *_limits(beat)))


def _limits(beat: Beat) -> list[Difference]:
    found = []
    if beat.starts:
        found.append(Difference("ends", f"it was to begin at {beat.starts}; it begins at once now"))
    if beat.ends:
        found.append(Difference("ends", f"it was to expire at {beat.ends}; it has no end now"))
    return found


def _schedule(beat: Beat) -> tuple[dict[str, Any], list[Difference]]:
    if beat.one_off:
        raise UntranslatableError("it runs once: run it by hand or by `cron run` when it is time")
    if isinstance(beat.when, str):
        raise UntranslatableError(f"{beat.when} is no time of a clock or calendar")
    if isinstance(beat.when, timedelta):
        text = "counts from when the task is first registered, not from its last run"
        return {"cron": cron_fields.every(beat.when)}, [Difference("schedule", text)]
    return {"cron": cron_of(beat.when), "timezone": beat.zone}, _days(beat.when)


def _days(when: Crontab) -> list[Difference]:
    if "*" in (when.day_of_month, when.day_of_week):
        return []
    text = "both day fields had to match in Celery; the entry says the same by `weekday#week`"
    return [Difference("days", text)]


def cron_of(when: Crontab) -> str:
    """Return the expression that names the same minutes.

    Raises:
        UntranslatableError: there is none.
    """
    named_days = _WEEKDAY.read(when.day_of_week)
    day, weekday = cron_fields.both_days(_DAY.read(when.day_of_month), named_days)
    minute = cron_fields.field(_MINUTE.read(when.minute), cron_fields.MINUTE)
    hour = cron_fields.field(_HOUR.read(when.hour), cron_fields.HOUR)
    month = cron_fields.field(_MONTH.read(when.month_of_year), cron_fields.MONTH)
    return f"{minute} {hour} {day} {month} {weekday}"


def _called(beat: Beat) -> Keys:
    keys, differences = call_keys(beat.task, beat.args, beat.kwargs)
    queue = beat.options.get("queue")
    if queue:
        differences.append(Difference("queue", f"was sent to the queue {queue!r} of Celery"))
    for key in _OF_SENDING[1:]:
        if beat.options.get(key) not in (None, "", {}):
            differences.append(Difference("queue", f"`{key}` says nothing where nothing is sent"))
    return keys, differences


def _sent(beat: Beat) -> Keys:
    options = {key: value for key, value in beat.options.items() if value not in (None, "", {})}
    if not options and not beat.kwargs:
        return call_keys(f"{beat.task}.delay", beat.args, {})
    path, args = f"{beat.task}.apply_async", [list(beat.args), dict(beat.kwargs)]
    if not options:
        return call_keys(path, args, {})
    keys, _ = keys_by_name(path, args, options)
    return keys, [Difference("arguments", f"`{CALL}` hands its options on to `{path}`")]


_OWN = "celery.backend_cleanup"
_SETTINGS = ("CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE", "beat_schedule")
_OPTIONS = ("queue", "exchange", "routing_key", "priority")


def read(request: Request) -> ImportResult:
    """Read beat's schedule.

    Raises:
        CommandError: the source is no app of Celery, with exit code 2.
    """
    app, entries, zone, source = _source(request)
    rows = {row.name: row for row in _rows()}
    beats, unread_rows = readable(rows.values(), lambda row: _of_row(row, app), attrgetter("name"))
    # A row replaces the entry of its name, as in django-celery-beat.
    others = [each for each in entries if each[0] not in rows]
    declared, unread = readable(
        others, lambda each: _of_entry(each[0], each[1], zone, app), itemgetter(0)
    )
    if rows:
        source = f"{source} and the tables of django-celery-beat"
    kept = request.keep_workers
    tasks = named(
        convert(beat, keep_workers=kept) for beat in (*beats, *declared) if beat.task != _OWN
    )
    general = (zone_difference(zone), *GENERAL, STILL_SENT if kept else IN_PROCESS)
    return ImportResult("celery-beat", source, (*tasks, *unread_rows, *unread), general)


def _source(request: Request) -> tuple[Any, list[tuple[str, Any]], str, str]:
    if request.source:
        named = imported(request.source)
        if not hasattr(named, "loader"):
            raise CommandError(f"{request.source!r} is no app of Celery", returncode=2)
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
    return "" if at is None else format_instant(as_utc(at), UTC)


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
        return ",".join(sorted(map(str, given)))
    return str(given)


def _path(name: str, app: Any) -> str:
    """Return the dotted path of a task whose name may be another."""
    task = None if app is None else app.tasks.get(name)
    if task is None or f"{task.__module__}.{task.__name__}" == name:
        return name
    return f"{task.__module__}.{task.__name__}"
