"""APScheduler: a scheduler, one of its job stores, or the table of django-apscheduler."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any, Final

from django.apps import apps
from django.core.management.base import CommandError

from ..exceptions import words_of
from . import cron_fields
from .calls import call_keys
from .result import (
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    named,
)
from .sources import Request, imported, readable, zone_difference

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
_NTH: Final = re.compile(r"(1st|2nd|3rd|4th|5th|last) (mon|tue|wed|thu|fri|sat|sun)")
_WHICH: Final = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}


@dataclass(frozen=True, slots=True)
class Job:
    """One job; a trigger that is neither ``cron`` nor ``interval`` is in words."""

    name: str
    func: str
    trigger: str
    cron: Mapping[str, str] = field(default_factory=dict)
    length: timedelta | None = None
    zone: str = "UTC"
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    paused: bool = False
    misfire_grace: float | None = 1
    max_instances: int = 1
    coalesce: bool = True
    jitter: float | None = None
    starts: str = ""
    ends: str = ""


def convert(job: Job) -> ImportedTask:
    try:
        when, schedule = _schedule(job)
        if not job.func:
            raise UntranslatableError("no dotted path leads to its function")
        keys, calls = call_keys(job.func.replace(":", "."), job.args, job.kwargs)
    except UntranslatableError as error:
        return ImportedTask(job.name, None).refused(str(error))
    entry: dict[str, Any] = {**when, **keys}
    if job.max_instances > 1:
        entry["overlap_policy"] = "allow"
        calls.append(Difference("overlap", _overlap(job.max_instances)))
    if job.misfire_grace is not None:
        entry["catch_up_window"] = job.misfire_grace
    entry["options"] = {"retry": dict(NO_RETRY)}
    if job.paused:
        entry["enabled"] = False
        calls.append(Difference("enabled", "it was paused, and is switched off"))
    return ImportedTask(job.name, entry, (*schedule, *calls, *_lateness(job), *_limits(job)))


def _overlap(most: int) -> str:
    return f"at most {most} of its runs overlapped; there is no such number here"


def _lateness(job: Job) -> list[Difference]:
    if job.coalesce:
        return []
    text = "each of several missed times had a run of its own; here the latest one has"
    return [Difference("catch-up", text)]


def _limits(job: Job) -> list[Difference]:
    found = []
    if job.jitter:
        text = (
            f"was put off by up to {job.jitter:g} s by chance; it begins at its time now "
            "(`spread` puts tasks apart)"
        )
        found.append(Difference("schedule", text))
    if job.starts:
        found.append(Difference("ends", f"it was to begin at {job.starts}; it begins at once now"))
    if job.ends:
        found.append(Difference("ends", f"it was to end at {job.ends}; it has no end now"))
    return found


def _schedule(job: Job) -> tuple[dict[str, Any], list[Difference]]:
    if job.trigger == "interval" and job.length is not None:
        counts = "counts from when the task is first registered, and from then on without a break"
        return {"cron": cron_fields.every(job.length)}, [Difference("schedule", counts)]
    if job.trigger != "cron":
        raise UntranslatableError(f"{job.trigger} is no schedule of a clock or calendar")
    texts = {name: job.cron.get(name, "*").lower() for name in _FIELDS}
    for name in ("year", "week"):
        if texts[name] != "*":
            raise UntranslatableError(f"`{name}={texts[name]}` cannot be said here")
    days, differences = _days(texts["day"], texts["day_of_week"])
    second, minute, hour, month = (
        cron_fields.field(grammar.read(texts[name]), grammar._replace(open_steps=False))
        for name, grammar in _FIELDS.items()
        if grammar is not None and name not in ("day", "day_of_week")
    )
    front = [] if second == "0" else [second]
    cron = " ".join([*front, minute, hour, days[0], month, days[1]])
    return {"cron": cron, "timezone": job.zone}, differences


_FIELDS: Final[Mapping[str, cron_fields.Grammar | None]] = {
    "second": cron_fields.SECOND._replace(open_steps=True),
    "minute": cron_fields.MINUTE._replace(open_steps=True),
    "hour": cron_fields.HOUR._replace(open_steps=True),
    "month": cron_fields.MONTH._replace(open_steps=True),
    "day": cron_fields.DAY._replace(open_steps=True),
    "day_of_week": _WEEKDAY,
    "year": None,
    "week": None,
}


def _days(day: str, weekday: str) -> tuple[tuple[str, str], list[Difference]]:
    differences = []
    if any(character.isdigit() for character in weekday.replace("*/", "")):
        differences.append(Difference("weekday", f"`{weekday}` counted from Monday as 0"))
    if day == "last" and weekday == "*":
        return ("L", "*"), differences
    position = _NTH.fullmatch(day)
    if position is not None and weekday == "*":
        return ("*", f"{position[2].upper()}{_WHICH[position[1]]}"), differences
    named_days = cron_fields.from_monday(_WEEKDAY.read(weekday))
    found = cron_fields.both_days(cron_fields.DAY._replace(open_steps=True).read(day), named_days)
    if "*" not in (day, weekday):
        differences.append(
            Difference("days", "both day fields had to match; the entry says the same")
        )
    return found, differences


def read(request: Request) -> ImportResult:
    """Read the jobs.

    Raises:
        CommandError: the source is neither a scheduler nor a job store, with exit code 2.
    """
    found, source = _source(request)
    defaults: Mapping[str, Any] = getattr(found, "_job_defaults", {})
    every = getattr(found, "get_all_jobs", None) or getattr(found, "get_jobs", None)
    if every is None:
        text = f"{request.source!r} has no jobs: name a scheduler or a job store"
        raise CommandError(text, returncode=2)
    zone = request.project_zone
    jobs, unread = readable(every(), lambda each: _job(each, defaults, zone), attrgetter("id"))
    tasks = (*named(map(convert, jobs)), *unread)
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


def _job(found: Any, defaults: Mapping[str, Any], zone: str) -> Job:
    def option(name: str, otherwise: Any) -> Any:
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
        misfire_grace=option("misfire_grace_time", 1),
        max_instances=option("max_instances", 1),
        coalesce=option("coalesce", True),
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
