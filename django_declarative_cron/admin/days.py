"""One day of the calendar: a lane for each task that does something on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from django.db.models import QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext

from ..models import ScheduledTask
from ..store import overview
from ..store.overview import Ran
from ..store.queries import named
from . import calendar, formats
from .calendar import DayLine
from .overview import changes_of, ticks_of
from .pictures import timeline
from .pictures.timeline import Bar, Window
from .readonly import ReadOnlyAdmin

LINES = 40
"""How many tasks a day shows; who has more finds them in the list."""


def of(
    page: ReadOnlyAdmin, tasks: QuerySet[ScheduledTask], day: date, zone: tzinfo, now: datetime
) -> dict[str, Any]:
    """Collect what the template shows of a day."""
    found = calendar.lines_of(day, zone, named(tasks.order_by()))
    shown = found[:LINES]
    window = Window(*calendar.bounds(day, zone))
    ran, ahead = _ran(shown, window, now), _ahead(shown, window, now)
    return {
        "date": date_format(day, "DATE_FORMAT"),
        "hours": [f"{hour.astimezone(zone):%H:%M}" for hour in timeline.hours(window)],
        "lines": [
            _line(page, line, ran.get(line.task.name, []), ticks, window, now)
            for line, ticks in zip(shown, ahead, strict=True)
        ],
        "more": len(found) - len(shown),
    }


def _ran(lines: Sequence[DayLine], window: Window, now: datetime) -> dict[str, list[Ran]]:
    if not lines:
        return {}
    names = [line.task.name for line in lines]
    return overview.day_of(lines[0].task.scheduler, names, window.start, window.end, now)


def _ahead(lines: Sequence[DayLine], window: Window, now: datetime) -> Iterator[list[datetime]]:
    """Return for each line what is ahead of it; those that begin alike share it."""
    known: dict[tuple[int, datetime], list[datetime]] = {}
    for line in lines:
        since = max(now, line.first - timedelta(microseconds=1))
        same = (id(line.task.schedule), since)
        if same not in known:
            known[same] = ticks_of(line.task.schedule, since, window)
        yield known[same]


def _line(
    page: ReadOnlyAdmin,
    line: DayLine,
    runs: Sequence[Ran],
    ticks: list[datetime],
    window: Window,
    now: datetime,
) -> dict[str, Any]:
    ended = Counter(run.outcome for run in runs)
    wrong = sum(ended[kind] for kind in overview.WENT_WRONG)
    numbers = {"name": line.task.name, "number": line.number, "wrong": wrong}
    numbers["succeeded"] = ended["succeeded"]
    label = gettext("%(name)s: %(number)d planned, %(succeeded)d succeeded, %(wrong)d failed")
    return {
        "name": line.task.name,
        "url": page.address(ScheduledTask, "change", line.task.pk),
        "number": line.number,
        "succeeded": ended["succeeded"],
        "wrong": wrong,
        "first": formats.moment(line.first),
        "last": formats.moment(line.last) if line.number > 1 else "",
        "words": formats.words(line.task.schedule.expression),
        "picture": timeline.lane(
            window,
            (Bar(run.start, run.end or now, run.outcome) for run in runs),
            ticks,
            changes_of(line.task.schedule, window),
            now,
            label % numbers,
        ),
    }
