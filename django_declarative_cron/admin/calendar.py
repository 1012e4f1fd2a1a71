"""The numbers of the calendar: occurrences planned on each day, and runs that ended on it."""

from __future__ import annotations

import calendar
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from ..core.schedule import Schedule
from ..store.overview import MOST_IN_DAY, Ended
from ..store.queries import Named, Shape
from . import badges

_TICK = timedelta(microseconds=1)
_NONE = timedelta(0)
_FIRST, _LAST = 1970, 2100


@dataclass(frozen=True, slots=True)
class Day:
    """One day of the calendar; numbers are texts, empty for zero."""

    date: date
    is_inside: bool
    is_today: bool
    planned: str
    exactly: str
    failed: str
    ran: str


@dataclass(frozen=True, slots=True)
class DayLine:
    """The occurrences of one task on one day."""

    task: Named
    number: int
    first: datetime
    last: datetime


def month_of(text: str, today: date) -> date:
    """Return the first day of a month, of the present one if the text names none."""
    return day_of(f"{text}-01") or today.replace(day=1)


def day_of(text: str) -> date | None:
    """Return a day, ``None`` if the text names none."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if _FIRST <= found.year <= _LAST else None


def neighbours(month: date) -> tuple[str, str]:
    """Return the previous and the next month, as ``month_of`` reads them."""
    before, after = month - timedelta(days=1), month + timedelta(days=32)
    return f"{before:%Y-%m}", f"{after:%Y-%m}"


def bounds(day: date, zone: tzinfo) -> tuple[datetime, datetime]:
    """Return the instants at which a day begins and ends."""
    following = day + timedelta(days=1)
    begin = datetime.combine(day, time.min, zone).astimezone(UTC)
    return begin, datetime.combine(following, time.min, zone).astimezone(UTC)


def days_of(month: date) -> list[date]:
    """Return the days that a calendar of a month shows: whole weeks."""
    return list(calendar.Calendar().itermonthdates(month.year, month.month))


def weeks(
    month: date,
    today: date,
    zone: tzinfo,
    declared: Sequence[Shape],
    ended: dict[date, Ended],
) -> list[list[Day]]:
    days = days_of(month)
    planned = _planned(days, zone, declared)
    shown = [
        Day(
            date=day,
            is_inside=day.month == month.month,
            is_today=day == today,
            planned=badges.about(planned[day]),
            exactly=badges.count(planned[day]),
            failed=badges.count(ended.get(day, Ended()).failed, MOST_IN_DAY),
            ran=badges.count(ended.get(day, Ended()).succeeded, MOST_IN_DAY),
        )
        for day in days
    ]
    return [shown[index : index + 7] for index in range(0, len(shown), 7)]


def _planned(days: Sequence[date], zone: tzinfo, declared: Sequence[Shape]) -> Counter[date]:
    planned: Counter[date] = Counter()
    spans = [(day, *bounds(day, zone)) for day in days]
    edges = [spans[0][1], *(end for _, _, end in spans)]
    for shape in _merged(declared, edges):
        for day, begin, end in spans:
            found = _named(shape.schedule, max(begin, shape.since), end)
            planned[day] += found * shape.number
    return planned


def _merged(declared: Sequence[Shape], edges: Sequence[datetime]) -> Iterator[Shape]:
    """Merge shapes that differ in their spread only: thousands of tasks share a few schedules."""
    groups: defaultdict[object, dict[timedelta, Shape]] = defaultdict(dict)
    for shape in declared:
        schedule = shape.schedule
        if not schedule.offset or schedule.exclusion is not None or schedule.omitted is not None:
            yield shape
            continue
        group = groups[shape.since, replace(schedule, offset=_NONE), schedule.anchor]
        same = group.get(schedule.offset, shape._replace(number=0))
        group[schedule.offset] = same._replace(number=same.number + shape.number)
    for group in groups.values():
        number, first = sum(each.number for each in group.values()), next(iter(group.values()))
        if _is_moved_over(first, max(group), edges):
            yield from group.values()
        else:
            yield first._replace(number=number)


def _is_moved_over(shape: Shape, offset: timedelta, edges: Sequence[datetime]) -> bool:
    """Return whether a spread moves an occurrence to another day, or before its registration."""
    plain = replace(shape.schedule, offset=_NONE)
    return any(
        _named(plain, edge - offset, edge) for edge in (*edges, shape.since) if edge >= shape.since
    )


def _named(schedule: Schedule, begin: datetime, end: datetime) -> int:
    return schedule.count_between(begin - _TICK, end - _TICK) if begin < end else 0


def lines_of(day: date, zone: tzinfo, tasks: Iterable[Named]) -> list[DayLine]:
    """Return the tasks that run on one day, in the order of their first occurrences."""
    dawn, end = bounds(day, zone)
    # By identity, because equal schedules may exclude different days.
    known: dict[tuple[int, datetime], tuple[int, datetime, datetime] | None] = {}
    found = []
    for task in list(tasks):
        # A task has no occurrences before its registration.
        begin = max(dawn, task.since)
        same = (id(task.schedule), begin)
        if same not in known:
            known[same] = _course(task.schedule, begin, end)
        course = known[same]
        if course is not None:
            found.append(DayLine(task, *course))
    return sorted(found, key=lambda line: (line.first, line.task.name))


def _course(
    schedule: Schedule, begin: datetime, end: datetime
) -> tuple[int, datetime, datetime] | None:
    number = _named(schedule, begin, end)
    first, last = schedule.next_after(begin - _TICK), schedule.latest_at_or_before(end - _TICK)
    return (number, first, last) if number and first is not None and last is not None else None
