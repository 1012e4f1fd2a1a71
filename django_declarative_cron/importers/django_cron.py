"""django-cron: the classes of ``CRON_CLASSES``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from .. import conf
from . import cron_fields
from .calls import CALL_DO
from .result import NO_RETRY, Difference, ImportedTask, ImportResult, UntranslatableError
from .sources import Request, imported, zone_difference

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


def read(request: Request) -> ImportResult:
    zone = request.project_zone
    paths = conf.foreign("CRON_CLASSES", ())
    tasks = [task for path in paths for task in convert(str(path), zone)]
    general = (zone_difference(zone), *GENERAL)
    return ImportResult("django-cron", "CRON_CLASSES of the settings", tasks, general)


def convert(path: str, zone: str) -> list[ImportedTask]:
    """Return entries of a class: several if one expression cannot name all of its times."""
    task = ImportedTask(path.rpartition(".")[2])
    tasks = [task]
    with task.refusing():
        job = imported(path)
        task.was = str(getattr(job, "code", "")) or task.was
        tasks = [_task(task.was, path, job, *each) for each in _schedules(job.schedule, zone)]
    return tasks


def _task(
    was: str, path: str, job: Any, when: Mapping[str, str], differences: Sequence[Difference]
) -> ImportedTask:
    task = ImportedTask(was, {**when, "callback": CALL_DO, "args": [path]}, [*differences])
    if getattr(job, "ALLOW_PARALLEL_RUNS", False):
        task.entry["overlap_policy"] = "allow"
    if minutes := job.schedule.retry_after_failure_mins:
        task.entry["retry_delay"] = timedelta(minutes=minutes)
        task.differ("retry", "is tried again without an end, as before")
    else:
        task.entry["options"] = NO_RETRY
    return task


def _schedules(given: Any, zone: str) -> Iterator[tuple[dict[str, str], list[Difference]]]:
    on_days = _days(given, "run_on_days", "run_weekly_on_days")
    on_month_days = _days(given, "run_monthly_on_days")
    if given.run_every_mins:
        if on_days is not None or on_month_days is not None:
            reason = "an interval on certain days is two things here: name its hours and minutes"
            raise UntranslatableError(reason)
        about = Difference("schedule", "counts from when the task is first registered")
        yield {"cron": cron_fields.every(timedelta(minutes=given.run_every_mins))}, [about]
    elif not given.run_at_times:
        raise UntranslatableError("it names neither an interval nor a time of the day")
    differences = []
    if on_days is not None:
        text = "was counted from Monday as 0; weekdays have names here"
        differences.append(Difference("weekday", text))
        if on_month_days is not None:
            text = "the day of the month and the weekday had to match both"
            differences.append(Difference("days", text))
    month = cron_fields.DAY.all if on_month_days is None else on_month_days
    week = frozenset(range(7)) if on_days is None else cron_fields.from_monday(on_days)
    day, weekday = cron_fields.both_days(month, week)
    for minute, hours in _by_minute(given.run_at_times or ()).items():
        hour = cron_fields.field(frozenset(hours), cron_fields.HOUR)
        yield {"cron": f"{minute} {hour} {day} * {weekday}", "timezone": zone}, differences


def _days(given: Any, *names: str) -> cron_fields.Values | None:
    found = next((getattr(given, name) for name in names if hasattr(given, name)), None)
    if found is not None and not found:
        raise UntranslatableError("it names no day at all")
    return None if found is None else frozenset(found)


def _by_minute(times: Sequence[str]) -> dict[int, set[int]]:
    hours: dict[int, set[int]] = {}
    for text in times:
        match = _TIME.fullmatch(text)
        if match is None:
            raise UntranslatableError(f"{text!r} is not a time of day")
        hours.setdefault(int(match[2]), set()).add(int(match[1]))
    return hours
