"""APScheduler: a scheduler, one of its job stores, or the table of django-apscheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.apps import apps
from django.core.management.base import CommandError

from ..exceptions import words_of
from . import cron_fields
from .calls import add_call
from .result import NO_RETRY, Difference, ImportedTask, ImportResult, UntranslatableError
from .sources import Request, imported, zone_difference

GENERAL: Final = (
    Difference(
        "catch-up",
        '"catch_up_window" keeps how late a missed time may be, of a second unless '
        "misfire_grace_time said more; without it one run makes up for the latest, however late",
    ),
    Difference(
        "retry",
        "the policy of one attempt keeps that nothing is tried again; leave it out for three",
    ),
    Difference(
        "callback",
        "every process with a scheduler ran every job; here one of all schedulers does",
    ),
)

# Here Monday is 0, as the crontab of APScheduler forgets: its `0 0 * * 0` is a Monday.
_MONDAY_FIRST: Final = {
    name: n for n, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))
}
_WEEKDAY: Final = cron_fields.Grammar(0, 6, _MONDAY_FIRST, open_steps=True)
_DAY: Final = cron_fields.DAY._replace(open_steps=True)
_FIELDS: Final = {
    "second": cron_fields.MINUTE,
    "minute": cron_fields.MINUTE,
    "hour": cron_fields.HOUR,
    "month": cron_fields.MONTH,
}
_NTH: Final = re.compile(r"(1st|2nd|3rd|4th|5th|last) (mon|tue|wed|thu|fri|sat|sun)")
_WHICH: Final = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}


def read(request: Request) -> ImportResult:
    found, source = _source(request)
    defaults: Mapping[str, Any] = getattr(found, "_job_defaults", {})
    every = getattr(found, "get_all_jobs", None) or getattr(found, "get_jobs", None)
    if every is None:
        text = f"{request.source!r} has no jobs: name a scheduler or a job store"
        raise CommandError(text, returncode=2)
    zone = request.project_zone
    tasks = [convert(job, defaults, zone) for job in every()]
    return ImportResult("apscheduler", source, tasks, (zone_difference(zone), *GENERAL))


def _source(request: Request) -> tuple[Any, str]:
    path = request.source
    if path:
        found = imported(path)
        found = _instantiated(found, path) if callable(found) else found
        if hasattr(found, "get_all_jobs"):
            _require_unpickle(request)
        return found, path
    if not apps.is_installed("django_apscheduler"):
        text = "Name a scheduler by its dotted path, such as shop.jobs.scheduler."
        raise CommandError(text, returncode=2)
    _require_unpickle(request)
    store = imported("django_apscheduler.jobstores.DjangoJobStore")
    return store(), "the table of django-apscheduler"


def _require_unpickle(request: Request) -> None:
    if not request.unpickle:
        text = (
            "The rows of a job store are pickled, and unpickling runs the code that they name: "
            "add --unpickle if nobody else can write to them, or name a scheduler."
        )
        raise CommandError(text, returncode=2)


def _instantiated(found: Any, path: str) -> Any:
    if hasattr(found, "get_jobs") and not isinstance(found, type):
        return found
    try:
        return found()
    except Exception as error:
        text = f"{path!r} gives no scheduler: {type(error).__name__}: {words_of(error)}"
        raise CommandError(text, returncode=2) from error


def convert(job: Any, defaults: Mapping[str, Any], zone: str) -> ImportedTask:
    """Convert a job, whose options may be those of its scheduler."""

    def option(name: str, otherwise: Any) -> Any:
        return getattr(job, name, defaults.get(name, otherwise))

    task = ImportedTask(str(job.id))
    with task.refusing():
        trigger = job.trigger
        _add_schedule(task, trigger, zone)
        path = getattr(job, "func_ref", None)
        if not path:
            raise UntranslatableError("no dotted path leads to its function")
        add_call(task, str(path).replace(":", "."), tuple(job.args), dict(job.kwargs))
        most, grace = option("max_instances", 1), option("misfire_grace_time", 1)
        if most > 1:
            task.entry["overlap_policy"] = "allow"
            text = f"at most {most} of its runs overlapped; there is no such number here"
            task.differ("overlap", text)
        if grace is not None:
            task.entry["catch_up_window"] = grace
        task.entry["options"] = NO_RETRY
        if getattr(job, "next_run_time", trigger) is None:
            task.entry["enabled"] = False
            task.differ("enabled", "it was paused, and is switched off")
        if not option("coalesce", True):
            text = "each of several missed times had a run of its own; here the latest one has"
            task.differ("catch-up", text)
        _add_limits(task, trigger)
    return task


def _add_limits(task: ImportedTask, trigger: Any) -> None:
    if jitter := getattr(trigger, "jitter", None):
        text = (
            f"was put off by up to {jitter:g} s by chance; it begins at its time now "
            "(`spread` puts tasks apart)"
        )
        task.differ("schedule", text)
    start, end = (getattr(trigger, name, None) for name in ("start_date", "end_date"))
    # An interval begins at its `start_date` whether or not one was given.
    if start and type(trigger).__name__ == "CronTrigger":
        text = f"it was to begin at {start:%Y-%m-%d %H:%M}; it begins at once now"
        task.differ("ends", text)
    if end:
        task.differ("ends", f"it was to end at {end:%Y-%m-%d %H:%M}; it has no end now")


def _add_schedule(task: ImportedTask, trigger: Any, zone: str) -> None:
    kind = type(trigger).__name__
    if kind == "IntervalTrigger":
        task.entry["cron"] = cron_fields.every(trigger.interval)
        text = "counts from when the task is first registered, and from then on without a break"
        task.differ("schedule", text)
    elif kind == "CronTrigger":
        task.entry |= {"cron": _cron(task, trigger), "timezone": _zone(trigger, zone)}
    else:
        is_date = kind == "DateTrigger"
        words = (
            f"one date, {trigger.run_date:%Y-%m-%d %H:%M}," if is_date else f"the trigger {kind}"
        )
        raise UntranslatableError(f"{words} is not a schedule of a clock or calendar")


def _cron(task: ImportedTask, trigger: Any) -> str:
    texts = {each.name: str(each).lower() for each in trigger.fields}
    for name in ("year", "week"):
        if texts[name] != "*":
            raise UntranslatableError(f"`{name}={texts[name]}` cannot be said here")
    day, weekday = _days(task, texts["day"], texts["day_of_week"])
    second, minute, hour, month = (
        cron_fields.field(grammar._replace(open_steps=True).read(texts[name]), grammar)
        for name, grammar in _FIELDS.items()
    )
    front = "" if second == "0" else f"{second} "
    return f"{front}{minute} {hour} {day} {month} {weekday}"


def _days(task: ImportedTask, day: str, weekday: str) -> tuple[str, str]:
    if any(character.isdigit() for character in weekday.replace("*/", "")):
        task.differ("weekday", f"`{weekday}` counted from Monday as 0")
    if day == "last" and weekday == "*":
        return "L", "*"
    position = _NTH.fullmatch(day)
    if position is not None and weekday == "*":
        return "*", f"{position[2].upper()}{_WHICH[position[1]]}"
    names = cron_fields.from_monday(_WEEKDAY.read(weekday))
    if "*" not in (day, weekday):
        task.differ("days", "both day fields had to match; the entry says the same")
    return cron_fields.both_days(_DAY.read(day), names)


def _zone(trigger: Any, otherwise: str) -> str:
    zone = getattr(trigger, "timezone", None)
    return str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone or otherwise)
