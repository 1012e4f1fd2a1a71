"""One day of the calendar: a lane for each task that does something on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.translation import gettext

from ..models import ScheduledTask
from ..store import overview
from ..store.overview import Ran
from ..store.reading import read_schedule
from . import calendar, formats
from .calendar import DayLine
from .overview import changes_of, ticks_of
from .pictures import timeline
from .pictures.timeline import Bar, Window
from .readonly import ReadOnlyAdmin

LINES = 100
"""How many tasks a day shows; who has more finds them in the list."""

_NEEDED = ("scheduler", "name", "cron", "timezone", "declaration", "registered_at", "digest")


def of(
    page: ReadOnlyAdmin,
    request: HttpRequest,
    tasks: QuerySet[ScheduledTask],
    day: date,
    zone: tzinfo,
    now: datetime,
) -> dict[str, Any]:
    """Collect what the template shows of a day.

    Args:
        page: knows the addresses on its site.
        request: of the user.
        tasks: that are switched on.
        day: which.
        zone: whose.
        now: the instant of looking.
    """
    readable = ((task, read_schedule(task)[0]) for task in tasks.only(*_NEEDED).order_by("name"))
    known = [(task, schedule) for task, schedule in readable if schedule is not None]
    found = calendar.lines_of(day, zone, known)
    shown = found[:LINES]
    window = Window(*calendar.bounds(day, zone))
    ran = _ran(shown, window)
    return {
        "date": date_format(day, "DATE_FORMAT"),
        "hours": [f"{hour.astimezone(zone):%H:%M}" for hour in timeline.hours(window)],
        "lines": [
            _line(page, request, line, ran.get(line.task.name or "", []), window, now)
            for line in shown
        ],
        "more": len(found) - len(shown),
    }


def _ran(lines: Sequence[DayLine], window: Window) -> dict[str, list[Ran]]:
    if not lines:
        return {}
    names = [line.task.name or "" for line in lines]
    return overview.day_of(lines[0].task.scheduler_id, names, window.start, window.end)


def _line(
    page: ReadOnlyAdmin,
    request: HttpRequest,
    line: DayLine,
    runs: Sequence[Ran],
    window: Window,
    now: datetime,
) -> dict[str, Any]:
    ended = Counter(run.outcome for run in runs)
    wrong = sum(ended[kind] for kind in overview.WENT_WRONG)
    numbers = {"name": line.task.name, "number": line.number, "wrong": wrong}
    numbers["succeeded"] = ended["succeeded"]
    label = gettext("%(name)s: %(number)d planned, %(succeeded)d succeeded, %(wrong)d failed")
    since = max(now, line.first - timedelta(microseconds=1))
    return {
        "name": line.task.name,
        "url": page.page_of(request, line.task),
        "number": line.number,
        "succeeded": ended["succeeded"],
        "wrong": wrong,
        "first": formats.moment(line.first),
        "last": formats.moment(line.last) if line.number > 1 else "",
        "words": formats.words(line.schedule.expression),
        "picture": timeline.lane(
            window,
            (Bar(run.start, run.end or now, run.outcome) for run in runs),
            ticks_of(line.schedule, since, window),
            changes_of(line.schedule, window),
            now,
            label % numbers,
        ),
    }
