"""django-q and django-q2: the table of schedules."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from .. import conf
from . import cron_fields
from .calls import call_keys
from .cron_fields import either_day
from .result import (
    NO_RETRY,
    Difference,
    ImportedTask,
    ImportResult,
    UntranslatableError,
    named,
)
from .sources import Request, readable, rows_of, zone_difference

GENERAL: Final = (
    Difference(
        "catch-up",
        "with catch_up every missed time was made up for, without it none before the last; here "
        "one run makes up for the latest missed one",
    ),
    Difference(
        "overlap",
        '"allow" keeps that runs may overlap; leave it out to skip a time during a run',
    ),
    Difference(
        "retry",
        "the cluster gave a task again after `retry` seconds without an answer, up to "
        "`max_attempts`; the policy of one attempt tries nothing again: leave it out for three",
    ),
    Difference(
        "callback", "runscheduler calls the function itself: no cluster, no hook, no result group"
    ),
)

_COLUMNS = ("func", "schedule_type", "minutes", "cron", "repeats", "args", "kwargs", "hook")
_MONTHS: Final = {"M": 1, "BM": 2, "Q": 3}


@dataclass(frozen=True, slots=True)
class Row:
    """One schedule; the next run is in the project's zone, arguments are texts."""

    name: str
    func: str
    schedule_type: str
    next_run: datetime | None
    zone: str
    minutes: int | None = None
    cron: str | None = None
    repeats: int = -1
    args: str | None = None
    kwargs: str | None = None
    hook: str | None = None
    cluster: str | None = None
    intended_date_kwarg: str | None = None


def read(request: Request) -> ImportResult:
    """Read the schedules."""
    rows, unread = readable(rows_of("django_q", "Schedule"), row_of, attrgetter("name"))
    general = (zone_difference(request.project_zone), *GENERAL)
    tasks = (*named(map(convert, rows)), *unread)
    return ImportResult("django-q", "the table of its schedules", tasks, general)


def row_of(found: Any) -> Row:
    zone = conf.project_zone()
    at = found.next_run
    if at is not None:
        at = at.replace(tzinfo=zone) if at.tzinfo is None else at.astimezone(zone)
    return Row(
        name=found.name or "",
        next_run=at,
        zone=zone.key,
        # Older releases have no such columns.
        cluster=getattr(found, "cluster", None),
        intended_date_kwarg=getattr(found, "intended_date_kwarg", None),
        **{name: getattr(found, name) for name in _COLUMNS},
    )


def convert(row: Row) -> ImportedTask:
    was = row.name or row.func
    try:
        when, schedule = _schedule(row)
        args, kwargs = arguments(row.args, row.kwargs)
        kwargs.pop("q_options", None)
        keys, calls = call_keys(row.func, args, kwargs)
    except UntranslatableError as error:
        return ImportedTask(was, None).refused(str(error))
    entry: dict[str, Any] = {**when, **keys, "overlap_policy": "allow"}
    entry["options"] = {"retry": dict(NO_RETRY)}
    if row.repeats == 0:
        entry["enabled"] = False
        schedule.append(Difference("enabled", "it had run as often as it was to, so it is off"))
    elif row.repeats > 0:
        text = f"it was to run {row.repeats} times more; it goes on now"
        schedule.append(Difference("ends", text))
    return ImportedTask(was, entry, (*schedule, *calls, *_lost(row)))


def _lost(row: Row) -> list[Difference]:
    found = []
    if row.hook:
        found.append(Difference("callback", f"`{row.hook}` was given its result; nothing calls it"))
    if row.cluster:
        found.append(Difference("queue", f"only the cluster {row.cluster!r} ran it"))
    if row.intended_date_kwarg:
        text = f"{row.intended_date_kwarg!r} was the intended time; `run.scheduled_for` is it here"
        found.append(Difference("arguments", text))
    return found


def _schedule(row: Row) -> tuple[dict[str, Any], list[Difference]]:
    kind = row.schedule_type
    if kind == "O":
        raise UntranslatableError("it runs once: run it by hand or by `cron run` when it is time")
    if kind == "C":
        cron, days = either_day(row.cron or "", star_is_and=False)
        return {"cron": cron, "timezone": row.zone}, days
    if kind == "I":
        about = Difference("schedule", "counts from when the task is first registered")
        return {"cron": cron_fields.every(timedelta(minutes=row.minutes or 1))}, [about]
    if row.next_run is None:
        raise UntranslatableError("it has no next run to take its hour and day from")
    if kind == "BW":
        about = Difference(
            "schedule",
            "two weeks are counted from when the task is first registered, and from then in "
            "elapsed time: its hour moves with summer time",
        )
        return {"cron": cron_fields.every(timedelta(weeks=2))}, [about]
    cron = _of_calendar(row.next_run, kind)
    return {"cron": cron, "timezone": row.zone}, list(_calendar_differences(row.next_run, kind))


def _of_calendar(at: datetime, kind: str) -> str:
    weekday = cron_fields.weekdays(frozenset({at.isoweekday() % 7}))
    match kind:
        case "H":
            return f"{at.minute} * * * *"
        case "D":
            return f"{at.minute} {at.hour} * * *"
        case "W":
            return f"{at.minute} {at.hour} * * {weekday}"
        case "Y":
            return f"{at.minute} {at.hour} {at.day} {at.month} *"
        case "M" | "BM" | "Q":
            every = _MONTHS[kind]
            months = frozenset((at.month - 1 + n * every) % 12 + 1 for n in range(12 // every))
            field = cron_fields.field(months, cron_fields.MONTH)
            return f"{at.minute} {at.hour} {at.day} {field} *"
    raise UntranslatableError(f"schedules of the type {kind!r} are not known")


def _calendar_differences(at: datetime, kind: str) -> list[Difference]:
    found: list[Difference] = []
    if at.second:
        text = f"it ran at second {at.second}; it runs at the full minute now"
        found.append(Difference("schedule", text))
    if kind in _MONTHS and at.day > 28:
        text = (
            f"in a month without a day {at.day} it ran on the last one, and stayed there; it "
            "leaves that month out now (`L` is the last day of each)"
        )
        found.append(Difference("days", text))
    if kind == "Y" and (at.month, at.day) == (2, 29):
        found.append(Difference("days", "29 February runs in leap years only"))
    return found


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
