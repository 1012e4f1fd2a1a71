"""A year of declared tasks as text: for review, and for a test that compares it.

It contains its own first day, so that it stays the same until the declarations, or the rules
of the time zone database, change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from difflib import unified_diff
from typing import Final
from zoneinfo import ZoneInfo

from ..formatting import EARLIEST, LATEST
from .declarations.declaration import Declaration
from .schedule import Schedule

LISTED_AT_MOST: Final = 3000
"""Starts in a year up to which each is looked at; of more, each day's number is."""

_TIMES_SHOWN = 8
_DAYS_NAMED = 5
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
_TITLE = "# A year of scheduled tasks, each in its own time zone; `cron snapshot` writes it anew."
_FIRST_DAY = re.compile(r"^# From (\d{4}-\d\d-\d\d) up to \d{4}-\d\d-\d\d\.$", re.MULTILINE)


def yearbook(declarations: Iterable[Declaration], first: date) -> str:
    """Return the times at which every task runs in a year.

    Raises:
        CalendarError: a calendar function fails.
    """
    ordered = sorted(declarations, key=lambda declaration: declaration.name)
    head = f"{_TITLE}\n# From {first} up to {_year_later(first)}.\n"
    return head + "".join(f"\n{line}\n" for each in ordered for line in _text(each, first))


def first_day(text: str) -> date | None:
    """Return the first day of a snapshot, or ``None`` if a text is none."""
    found = _FIRST_DAY.search(text)
    try:
        day = None if found is None else date.fromisoformat(found[1])
    except ValueError:
        return None
    return day if day is not None and EARLIEST.year <= day.year < LATEST.year else None


def difference(kept: str, present: str, name: str) -> list[str]:
    """Return the changes as lines of a unified diff, or no lines without changes."""
    # The reader needs the task and day of each changed line.
    before, now = list(_with_task(kept)), list(_with_task(present))
    lines = unified_diff(before, now, name, "what is declared now", lineterm="", n=0)
    return [line for line in lines if not line.startswith("@@")]


def _with_task(text: str) -> Iterator[str]:
    task = ""
    for line in filter(None, text.splitlines()):
        if line.startswith((" ", "#")):
            yield f"{task}: {line.strip()}" if task and line.startswith(" ") else line
        else:
            task = line
            yield line


def _text(declaration: Declaration, first: date) -> Iterator[str]:
    yield "\n".join([declaration.name, *(f"    {line}" for line in _lines(declaration, first))])


def _lines(declaration: Declaration, first: date) -> Iterator[str]:
    schedule = declaration.schedule
    said = [declaration.cron, declaration.timezone, declaration.target.text]
    said += ["gap: shift"] if schedule.gap == "shift" else []
    said += ["fold: both"] if schedule.fold == "both" else []
    said += [f"later by {schedule.offset}"] if schedule.offset else []
    yield "  ".join(said)
    if not declaration.enabled:
        yield "disabled"
    elif schedule.expression.every is not None:
        yield "counts from its registration on"
    else:
        yield from _year(schedule, first)


def _year(schedule: Schedule, first: date) -> Iterator[str]:
    begin, end = (_midnight(day, schedule.zone) for day in (first, _year_later(first)))
    total = schedule.count_between(begin - _INSTANT, end - _INSTANT)
    days = _listed(schedule, begin, end) if total <= LISTED_AT_MOST else _counted(schedule, first)
    months: dict[tuple[int, int], dict[str, list[date]]] = defaultdict(lambda: defaultdict(list))
    for day, said in [*days, *_excluded(schedule, begin - _INSTANT, end - _INSTANT)]:
        if schedule.exclusion is not None:
            # The scheduler ignores a failing calendar; in a snapshot it is an error.
            schedule.exclusion.calendar_of(day)
        months[day.year, day.month][said].append(day)
    for (year, month), groups in sorted(months.items()):
        for said, of_month in groups.items():
            yield f"{year}-{month:02}  {_days(of_month)}  {said}"
    for lost in schedule.lost_between(begin - _INSTANT, end - _INSTANT):
        number = "" if lost.count == 1 else f" and {lost.count - 1} more"
        yield f"{lost.civil:%Y-%m-%d %H:%M}{number} does not exist: no run"
    yield f"{total:,} run{'' if total == 1 else 's'}"


def _listed(schedule: Schedule, begin: datetime, end: datetime) -> Iterator[tuple[date, str]]:
    days: dict[date, list[str]] = defaultdict(list)
    for instant in schedule.upcoming(begin - _INSTANT):
        if instant >= end:
            break
        local = instant.astimezone(schedule.zone)
        days[local.date()].append(_time(local))
    for day, times in days.items():
        yield day, ", ".join(times) if len(times) <= _TIMES_SHOWN else _many(len(times), times)


def _counted(schedule: Schedule, first: date) -> Iterator[tuple[date, str]]:
    day, last = first, _year_later(first)
    while day < last:
        begin = _midnight(day, schedule.zone) - _INSTANT
        end = _midnight(day + _DAY, schedule.zone) - _INSTANT
        if number := schedule.count_between(begin, end):
            ends = schedule.next_after(begin), schedule.latest_at_or_before(end)
            times = [_time(each.astimezone(schedule.zone)) for each in ends if each is not None]
            yield day, _many(number, times)
        day += _DAY


def _excluded(schedule: Schedule, after: datetime, until: datetime) -> Iterator[tuple[date, str]]:
    for each in schedule.excluded_between(after, until):
        yield schedule.day_of(each.first), f"no run: {each.calendar}"


def _many(number: int, times: list[str]) -> str:
    return f"{number:,} times from {times[0]} to {times[-1]}"


def _time(local: datetime) -> str:
    said = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{said} again" if local.fold else said


def _days(days: list[date]) -> str:
    if len(days) <= _DAYS_NAMED:
        return ", ".join(f"{_WEEKDAYS[day.weekday()]} {day.day}" for day in days)
    spans: list[list[date]] = []
    for day in days:
        if spans and day - spans[-1][-1] == _DAY:
            spans[-1].append(day)
        else:
            spans.append([day])
    return " ".join(
        f"{span[0].day}-{span[-1].day}" if len(span) > 1 else str(span[0].day) for span in spans
    )


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(0), zone).astimezone(UTC)


def _year_later(day: date) -> date:
    try:
        return day.replace(year=day.year + 1)
    except ValueError:
        return date(day.year + 1, 3, 1)
