"""django-q and django-q2: the table of schedules."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from .. import conf
from . import cron_fields
from .calls import add_call
from .result import NO_RETRY, OVERLAPS, Difference, ImportedTask, ImportResult, UntranslatableError
from .sources import Request, rows_of, zone_difference

GENERAL: Final = (
    Difference(
        "catch-up",
        "with catch_up every missed time was made up for, without it none before the last; here "
        "one run makes up for the latest missed one",
    ),
    OVERLAPS,
    Difference(
        "retry",
        "the cluster gave a task again after `retry` seconds without an answer, up to "
        "`max_attempts`; the policy of one attempt tries nothing again: leave it out for three",
    ),
    Difference(
        "callback", "runscheduler calls the function itself: no cluster, no hook, no result group"
    ),
)

_MONTHS: Final = {"M": 1, "BM": 2, "Q": 3}


def read(request: Request) -> ImportResult:
    zone = conf.project_zone()
    tasks = [convert(row, zone) for row in rows_of("django_q", "Schedule")]
    general = (zone_difference(zone.key), *GENERAL)
    return ImportResult("django-q", "the table of its schedules", tasks, general)


def convert(row: Any, zone: ZoneInfo) -> ImportedTask:
    """Convert a row of ``Schedule``, whose next run is read in a zone."""
    task = ImportedTask(row.name or row.func)
    with task.refusing():
        _add_schedule(task, row, zone)
        if row.repeats > 0:
            task.differ("ends", f"it was to run {row.repeats} times more; it goes on now")
        args, kwargs = arguments(row.args, row.kwargs)
        kwargs.pop("q_options", None)
        add_call(task, row.func, args, kwargs)
        task.entry |= {"overlap_policy": "allow", "options": NO_RETRY}
        if row.repeats == 0:
            task.entry["enabled"] = False
            task.differ("enabled", "it had run as often as it was to, so it is off")
        if row.hook:
            task.differ("callback", f"`{row.hook}` was given its result; nothing calls it")
        # Older releases have neither of these columns.
        if cluster := getattr(row, "cluster", None):
            task.differ("queue", f"only the cluster {cluster!r} ran it")
        if name := getattr(row, "intended_date_kwarg", None):
            text = f"{name!r} was the intended time; `run.scheduled_for` is it here"
            task.differ("arguments", text)
    return task


def _add_schedule(task: ImportedTask, row: Any, zone: ZoneInfo) -> None:
    kind, at = row.schedule_type, row.next_run
    if kind == "O":
        raise UntranslatableError("it runs once: run it by hand or by `cron run` when it is time")
    if kind == "C":
        cron = cron_fields.either_day(task, row.cron or "", star_is_and=False)
        task.entry |= {"cron": cron, "timezone": zone.key}
    elif kind == "I":
        task.entry["cron"] = cron_fields.every(timedelta(minutes=row.minutes or 1))
        task.differ("schedule", "counts from when the task is first registered")
    elif at is None:
        raise UntranslatableError("it has no next run to take its hour and day from")
    elif kind == "BW":
        task.entry["cron"] = cron_fields.every(timedelta(weeks=2))
        text = (
            "two weeks are counted from when the task is first registered, and from then in "
            "elapsed time: its hour moves with summer time"
        )
        task.differ("schedule", text)
    else:
        at = at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)
        task.entry |= {"cron": _of_calendar(at, kind), "timezone": zone.key}
        _add_calendar_differences(task, at, kind)


def _of_calendar(at: datetime, kind: str) -> str:
    time = f"{at.minute} {at.hour}"
    match kind:
        case "H":
            return f"{at.minute} * * * *"
        case "D":
            return f"{time} * * *"
        case "W":
            return f"{time} * * {cron_fields.weekdays(frozenset({at.isoweekday() % 7}))}"
        case "Y":
            return f"{time} {at.day} {at.month} *"
        case "M" | "BM" | "Q":
            every = _MONTHS[kind]
            months = frozenset((at.month - 1 + n * every) % 12 + 1 for n in range(12 // every))
            return f"{time} {at.day} {cron_fields.field(months, cron_fields.MONTH)} *"
    raise UntranslatableError(f"schedules of the type {kind!r} are not known")


def _add_calendar_differences(task: ImportedTask, at: datetime, kind: str) -> None:
    if at.second:
        text = f"it ran at second {at.second}; it runs at the full minute now"
        task.differ("schedule", text)
    if kind in _MONTHS and at.day > 28:
        text = (
            f"in a month without a day {at.day} it ran on the last one, and stayed there; it "
            "leaves that month out now (`L` is the last day of each)"
        )
        task.differ("days", text)
    if kind == "Y" and (at.month, at.day) == (2, 29):
        task.differ("days", "29 February runs in leap years only")


def arguments(args: str | None, kwargs: str | None) -> tuple[Sequence[Any], dict[str, Any]]:
    """Read arguments, which the table has as texts.

    Raises:
        UntranslatableError: they are not made of literals alone.
    """
    try:
        positional: Any = ast.literal_eval(args) if args else ()
        by_name: Any = _by_name(kwargs) if kwargs else {}
    except (RecursionError, MemoryError):
        raise UntranslatableError("its arguments are nested too deep to be read") from None
    except (SyntaxError, ValueError, TypeError, IndexError, AttributeError):
        raise UntranslatableError("its arguments are no literals") from None
    if not isinstance(by_name, Mapping):
        raise UntranslatableError("its arguments by name are no dict")
    return positional if isinstance(positional, tuple) else (positional,), dict(by_name)


def _by_name(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        call: Any = ast.parse(f"f({text})").body[0]
        return {each.arg: ast.literal_eval(each.value) for each in call.value.keywords}
