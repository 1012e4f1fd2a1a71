"""From APScheduler: the jobs of a scheduler or of one of its stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from . import fields
from .called import Binder, called, unbound
from .moved import NO_RETRY, Difference, Moved, UntranslatableError, named

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
_WEEKDAY: Final = fields.Grammar(0, 6, _MONDAY_FIRST, open_steps=True)
_NTH: Final = re.compile(r"(1st|2nd|3rd|4th|5th|last) (mon|tue|wed|thu|fri|sat|sun)")
_WHICH: Final = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}


@dataclass(frozen=True, slots=True)
class Job:
    """One job.

    Args:
        name: its id, or its name where that says more.
        func: ``module:function`` or a dotted path, empty where nothing leads to it.
        trigger: ``cron``, ``interval``, or what else it is in words.
        cron: the texts of its fields by their names.
        length: of its interval.
        zone: IANA name of the zone of its trigger.
        args: positional arguments.
        kwargs: arguments by name.
        paused: it has no next run.
        misfire_grace: how late it may begin, ``None`` for ever.
        max_instances: how many of its runs may overlap.
        coalesce: several missed runs become one.
        jitter: seconds that a run may be put off by chance.
        starts: when it begins, in words, empty for at once.
        ends: when it ends, in words, empty for never.
    """

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


def moved(jobs: Iterable[Job], bind: Binder = unbound) -> tuple[Moved, ...]:
    """Return entries for jobs."""
    return named(_moved(job, bind) for job in jobs)


def _moved(job: Job, bind: Binder) -> Moved:
    try:
        when, told = _when(job)
        if not job.func:
            raise UntranslatableError("no dotted path leads to its function")
        keys, also = called(job.func.replace(":", "."), job.args, job.kwargs, bind)
    except UntranslatableError as error:
        return Moved(job.name, None).refused(str(error))
    entry: dict[str, Any] = {**when, **keys}
    if job.max_instances > 1:
        entry["overlap_policy"] = "allow"
        also.append(Difference("overlap", _overlap(job.max_instances)))
    if job.misfire_grace is not None:
        entry["catch_up_window"] = job.misfire_grace
    entry["options"] = {"retry": dict(NO_RETRY)}
    if job.paused:
        entry["enabled"] = False
        also.append(Difference("enabled", "it was paused, and is switched off"))
    return Moved(job.name, entry, (*told, *also, *_lateness(job), *_limits(job)))


def _overlap(most: int) -> str:
    return f"at most {most} of its runs overlapped; there is no such number here"


def _lateness(job: Job) -> list[Difference]:
    if job.coalesce:
        return []
    told = "each of several missed times had a run of its own; here the latest one has"
    return [Difference("catch-up", told)]


def _limits(job: Job) -> list[Difference]:
    found = []
    if job.jitter:
        told = (
            f"was put off by up to {job.jitter:g} s by chance; it begins at its time now "
            "(`spread` puts tasks apart)"
        )
        found.append(Difference("schedule", told))
    if job.starts:
        found.append(Difference("ends", f"it was to begin at {job.starts}; it begins at once now"))
    if job.ends:
        found.append(Difference("ends", f"it was to end at {job.ends}; it has no end now"))
    return found


def _when(job: Job) -> tuple[dict[str, Any], list[Difference]]:
    if job.trigger == "interval" and job.length is not None:
        counts = "counts from when the task is first registered, and from then on without a break"
        return {"cron": fields.every(job.length)}, [Difference("schedule", counts)]
    if job.trigger != "cron":
        raise UntranslatableError(f"{job.trigger} is no schedule of a clock or calendar")
    texts = {name: job.cron.get(name, "*").lower() for name in _FIELDS}
    for name in ("year", "week"):
        if texts[name] != "*":
            raise UntranslatableError(f"`{name}={texts[name]}` cannot be said here")
    days, told = _days(texts["day"], texts["day_of_week"])
    second, minute, hour, month = (
        fields.field(grammar.read(texts[name]), grammar._replace(open_steps=False))
        for name, grammar in _FIELDS.items()
        if grammar is not None and name not in ("day", "day_of_week")
    )
    front = [] if second == "0" else [second]
    cron = " ".join([*front, minute, hour, days[0], month, days[1]])
    return {"cron": cron, "timezone": job.zone}, told


_FIELDS: Final[Mapping[str, fields.Grammar | None]] = {
    "second": fields.SECOND._replace(open_steps=True),
    "minute": fields.MINUTE._replace(open_steps=True),
    "hour": fields.HOUR._replace(open_steps=True),
    "month": fields.MONTH._replace(open_steps=True),
    "day": fields.DAY._replace(open_steps=True),
    "day_of_week": _WEEKDAY,
    "year": None,
    "week": None,
}


def _days(day: str, weekday: str) -> tuple[tuple[str, str], list[Difference]]:
    told = []
    if any(character.isdigit() for character in weekday.replace("*/", "")):
        told.append(Difference("weekday", f"`{weekday}` counted from Monday as 0"))
    if day == "last" and weekday == "*":
        return ("L", "*"), told
    position = _NTH.fullmatch(day)
    if position is not None and weekday == "*":
        return ("*", f"{position[2].upper()}{_WHICH[position[1]]}"), told
    named_days = fields.from_monday(_WEEKDAY.read(weekday))
    found = fields.both_days(fields.DAY._replace(open_steps=True).read(day), named_days)
    if "*" not in (day, weekday):
        told.append(Difference("days", "both day fields had to match; the entry says the same"))
    return found, told
