"""django-cron: the classes of ``CRON_CLASSES``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError

from .. import conf
from . import cron_fields
from .calls import CALL_DO
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
        "schedule",
        "a job ran at the next `runcrons` after its time, as often as the crontab calls that; here "
        "it runs at its time",
    ),
    Difference(
        "catch-up",
        "an interval that was over made a job run at the next `runcrons`, a missed time of the day "
        "did so on the same day; here one run makes up for the latest missed time whenever",
    ),
    Difference(
        "callback",
        f"`{CALL_DO}` makes an object of the class and calls its `do`; write a function that does "
        "the same, and django-cron may go",
    ),
)

_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})")


@dataclass(frozen=True, slots=True)
class Job:
    """One class; intervals are in minutes, times ``HH:MM``, weekdays 0 for Monday."""

    path: str
    code: str
    zone: str
    every: float | None = None
    at_times: Sequence[str] = ()
    on_days: Sequence[int] | None = None
    on_month_days: Sequence[int] | None = None
    retry_after: float | None = None
    in_parallel: bool = False


def read(request: Request) -> ImportResult:
    """Read the classes."""
    paths = conf.foreign("CRON_CLASSES", ())
    found, unread = readable(paths, lambda path: _read(str(path), request), _class_name)
    tasks = named(task for tasks in found for task in tasks)
    general = (zone_difference(request.project_zone), *GENERAL)
    return ImportResult("django-cron", "CRON_CLASSES of the settings", (*tasks, *unread), general)


def _class_name(path: object) -> str:
    return str(path).rpartition(".")[2]


def _read(path: str, request: Request) -> list[ImportedTask]:
    try:
        return convert(_job(path, imported(path), request.project_zone))
    except CommandError as error:
        return [ImportedTask(_class_name(path), None).refused(str(error))]


def _job(path: str, found: Any, zone: str) -> Job:
    schedule = found.schedule
    return Job(
        path=path,
        code=str(getattr(found, "code", "")),
        zone=zone,
        every=schedule.run_every_mins,
        at_times=tuple(schedule.run_at_times or ()),
        on_days=_attribute(schedule, "run_on_days", "run_weekly_on_days"),
        on_month_days=_attribute(schedule, "run_monthly_on_days"),
        retry_after=schedule.retry_after_failure_mins,
        in_parallel=bool(getattr(found, "ALLOW_PARALLEL_RUNS", False)),
    )


def _attribute(schedule: Any, *names: str) -> tuple[int, ...] | None:
    found = next((getattr(schedule, name, None) for name in names if hasattr(schedule, name)), None)
    return None if found is None else tuple(found)


def convert(job: Job) -> list[ImportedTask]:
    """Return entries of a class: several if one expression cannot name all of its times."""
    was = job.code or _class_name(job.path)
    try:
        found = list(_schedules(job))
    except UntranslatableError as error:
        return [ImportedTask(was, None).refused(str(error))]
    return [_task(job, was, when, differences) for when, differences in found]


def _task(job: Job, was: str, when: dict[str, Any], differences: list[Difference]) -> ImportedTask:
    entry: dict[str, Any] = {**when, "callback": CALL_DO, "args": [job.path]}
    if job.in_parallel:
        entry["overlap_policy"] = "allow"
    if job.retry_after:
        entry["retry_delay"] = timedelta(minutes=job.retry_after)
        endless = Difference("retry", "is tried again without an end, as before")
        differences = [*differences, endless]
    else:
        entry["options"] = {"retry": dict(NO_RETRY)}
    return ImportedTask(was, entry, tuple(differences))


def _schedules(job: Job) -> Iterator[tuple[dict[str, Any], list[Difference]]]:
    if job.every:
        if job.on_days is not None or job.on_month_days is not None:
            reason = "an interval on certain days is two things here: name its hours and minutes"
            raise UntranslatableError(reason)
        about = Difference("schedule", "counts from when the task is first registered")
        yield {"cron": cron_fields.every(timedelta(minutes=job.every))}, [about]
    days, differences = _days(job)
    for minute, hours in _by_minute(job.at_times):
        cron = f"{minute} {cron_fields.field(hours, cron_fields.HOUR)} {days[0]} * {days[1]}"
        yield {"cron": cron, "timezone": job.zone}, differences
    if not job.every and not job.at_times:
        raise UntranslatableError("it names neither an interval nor a time of the day")


def _days(job: Job) -> tuple[tuple[str, str], list[Difference]]:
    month = cron_fields.DAY.all if job.on_month_days is None else frozenset(job.on_month_days)
    week = frozenset(range(7)) if job.on_days is None else frozenset(job.on_days)
    if not month or not week:
        raise UntranslatableError("it names no day at all")
    differences = []
    if job.on_days is not None:
        text = "was counted from Monday as 0; weekdays have names here"
        differences.append(Difference("weekday", text))
    if job.on_days is not None and job.on_month_days is not None:
        text = "the day of the month and the weekday had to match both"
        differences.append(Difference("days", text))
    return cron_fields.both_days(month, cron_fields.from_monday(week)), differences


def _by_minute(times: Sequence[str]) -> Iterable[tuple[int, frozenset[int]]]:
    """Group the times that one expression can name."""
    hours: dict[int, set[int]] = {}
    for text in times:
        match = _TIME.fullmatch(text)
        if match is None:
            raise UntranslatableError(f"{text!r} is no time of the day")
        hours.setdefault(int(match[2]), set()).add(int(match[1]))
    return [(minute, frozenset(found)) for minute, found in hours.items()]
