"""From django-cron: the classes of ``CRON_CLASSES``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from . import fields
from .called import DO
from .moved import NO_RETRY, Difference, Moved, UntranslatableError, named

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
        f"`{DO}` makes an object of the class and calls its `do`; write a function that does the "
        "same, and django-cron may go",
    ),
)

_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})")


@dataclass(frozen=True, slots=True)
class Job:
    """One class.

    Args:
        path: of the class.
        code: that its log was kept under.
        zone: the project's.
        every: interval in minutes.
        at_times: times of the day, ``HH:MM``.
        on_days: weekdays, 0 for Monday.
        on_month_days: days of the month.
        retry_after: minutes after a failure.
        in_parallel: its runs may overlap.
    """

    path: str
    code: str
    zone: str
    every: float | None = None
    at_times: Sequence[str] = ()
    on_days: Sequence[int] | None = None
    on_month_days: Sequence[int] | None = None
    retry_after: float | None = None
    in_parallel: bool = False


def moved(jobs: Iterable[Job]) -> tuple[Moved, ...]:
    """Return entries for classes; several where no single expression names all times of one."""
    return named(each for job in jobs for each in _moved(job))


def _moved(job: Job) -> list[Moved]:
    was = job.code or job.path.rpartition(".")[2]
    try:
        found = list(_when(job))
    except UntranslatableError as error:
        return [Moved(was, None).refused(str(error))]
    return [_one(job, was, when, told) for when, told in found]


def _one(job: Job, was: str, when: dict[str, Any], told: list[Difference]) -> Moved:
    entry: dict[str, Any] = {**when, "callback": DO, "args": [job.path]}
    if job.in_parallel:
        entry["overlap_policy"] = "allow"
    if job.retry_after:
        entry["retry_delay"] = timedelta(minutes=job.retry_after)
        told = [*told, Difference("retry", "is tried again without an end, as before")]
    else:
        entry["options"] = {"retry": dict(NO_RETRY)}
    return Moved(was, entry, tuple(told))


def _when(job: Job) -> Iterable[tuple[dict[str, Any], list[Difference]]]:
    restricted = job.on_days is not None or job.on_month_days is not None
    if job.every:
        if restricted:
            reason = "an interval on certain days is two things here: name its hours and minutes"
            raise UntranslatableError(reason)
        about = Difference("schedule", "counts from when the task is first registered")
        yield {"cron": fields.every(timedelta(minutes=job.every))}, [about]
    days, told = _days(job)
    for minute, hours in _by_minute(job.at_times):
        cron = f"{minute} {fields.field(hours, fields.HOUR)} {days[0]} * {days[1]}"
        yield {"cron": cron, "timezone": job.zone}, told
    if not job.every and not job.at_times:
        raise UntranslatableError("it names neither an interval nor a time of the day")


def _days(job: Job) -> tuple[tuple[str, str], list[Difference]]:
    month = fields.DAY.all if job.on_month_days is None else frozenset(job.on_month_days)
    week = frozenset(range(7)) if job.on_days is None else frozenset(job.on_days)
    if not month or not week:
        raise UntranslatableError("it names no day at all")
    told = []
    if job.on_days is not None:
        told.append(Difference("weekday", "was counted from Monday as 0; weekdays have names here"))
    if job.on_days is not None and job.on_month_days is not None:
        told.append(Difference("days", "the day of the month and the weekday had to match both"))
    return fields.both_days(month, fields.from_monday(week)), told


def _by_minute(times: Sequence[str]) -> Iterable[tuple[int, frozenset[int]]]:
    """Put together the times that one expression can name."""
    hours: dict[int, set[int]] = {}
    for text in times:
        match = _TIME.fullmatch(text)
        if match is None:
            raise UntranslatableError(f"{text!r} is no time of the day")
        hours.setdefault(int(match[2]), set()).add(int(match[1]))
    return [(minute, frozenset(named)) for minute, named in hours.items()]
