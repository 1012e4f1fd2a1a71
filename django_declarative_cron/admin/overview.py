"""What stands above the list of tasks: who is at work, how it goes, the day, the hour ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..core.schedule import Schedule, load
from ..core.status import Status
from ..cron import next_transitions
from ..models import ScheduledTask, SchedulerInstance
from ..runtime.clock import system_clock
from ..store import database, overview
from ..store.overview import Ran
from ..store.queries import next_start_of, read_schedule
from ..store.status import patience, spoke_at
from . import formats, marks
from .filters import kinds_of
from .pictures import charts, timeline
from .pictures.timeline import Bar, Mark, Window
from .readonly import ReadOnlyAdmin

LANES = 12
"""How many tasks have a lane; the list is paged through for the others."""

_BEFORE, _AFTER = timedelta(hours=17), timedelta(hours=7)
_PLANNED = 400
_MINUTE = timedelta(minutes=1)

_TILES = (
    (Status.ACTIVE, _("Active")),
    (Status.RUNNING, _("Running")),
    (Status.INTERRUPTED, _("Interrupted")),
    (Status.WAITS_FOR_A_WORKER, _("Waits for a worker")),
    (Status.RETRYING, _("Retrying")),
    (Status.OVERDUE, _("Overdue")),
    (Status.BROKEN, _("Broken")),
    (Status.PAUSED, _("Paused")),
    (Status.DISABLED, _("Disabled in its declaration")),
)
_ALWAYS = (Status.ACTIVE, Status.RUNNING, Status.RETRYING)
_QUIET = ("skipped", "missed", "cancelled", "waiting")


@dataclass(frozen=True, slots=True)
class Tile:
    """A number that leads to the tasks it counts.

    Args:
        key: of its class.
        symbol: its shape.
        label: what is counted.
        number: how many.
        query: of the list.
    """

    key: str
    symbol: str
    label: str
    number: str
    query: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One task's day.

    Args:
        name: of the task.
        url: of its page.
        picture: its lane.
        succeeded: number of runs.
        wrong: number of runs that went wrong.
        others: what did not run, or was cancelled.
        following: its next occurrence in words.
        kinds: the outcomes that are drawn.
    """

    name: str
    url: str
    picture: SafeString
    succeeded: int
    wrong: int
    others: int
    following: str
    kinds: frozenset[str]


def of(page: ReadOnlyAdmin, request: HttpRequest, tasks: Sequence[ScheduledTask]) -> dict[str, Any]:
    """Collect what the template shows."""
    now = system_clock.now()
    found = health_of(request)
    mine, counts = page.get_queryset(request), Counter[str]()
    for kind in kinds_of(request, page):
        counts[kind.status] += kind.number
    lanes = _lanes(page, request, tasks[:LANES], now)
    return {
        "health": None if found is None else _health(page, request, found),
        "tiles": list(_tiles(counts, 0 if found is None else found.failed)),
        "lanes": lanes,
        "more": max(len(tasks) - LANES, 0),
        "hours": _hours(now),
        "zone": timezone.get_current_timezone_name(),
        "load": _load(overview.coming_up(mine, now + timedelta(minutes=61)), now),
        "legend": [each for each in marks.legend() if any(each[0] in lane.kinds for lane in lanes)],
    }


def health_of(request: HttpRequest) -> overview.Health | None:
    """Look who is at work, once for one page."""
    if not hasattr(request, "_ddc_health"):
        ours, clock = options(), system_clock
        found = overview.health(
            database.alias(),
            ours.DEPLOYMENT,
            patience(ours.LEASE),
            clock.now(),
            clock.database_time(),
        )
        request._ddc_health = found  # type: ignore[attr-defined]
    known: overview.Health | None = request._ddc_health  # type: ignore[attr-defined]
    return known


def _health(page: ReadOnlyAdmin, request: HttpRequest, found: overview.Health) -> dict[str, Any]:
    shows = page.shows(request, SchedulerInstance)
    leader, heard = found.leader, ""
    if leader is not None:
        silence = max(found.now - spoke_at(leader), timedelta(0))
        seconds = timedelta(seconds=round(silence.total_seconds()))
        heard = gettext("%(age)s ago") % {"age": formats.span(seconds)}
    standbys = ngettext("%(number)d stands by", "%(number)d stand by", found.standbys)
    return {
        "leads": leader is not None,
        # Where schedulers run is for those who may see schedulers.
        "leader": str(leader) if leader is not None and shows else "",
        "heard": heard,
        "standbys": standbys % {"number": found.standbys},
        "url": page.address(SchedulerInstance, "changelist") if shows else "",
    }


def _tiles(counts: Counter[str], failed: int) -> Iterator[Tile]:
    for status, label in _TILES:
        number = counts[status]
        if status is Status.PAUSED:
            number += counts[Status.PAUSED_UNTIL]
        if number or status in _ALWAYS:
            query = "?paused=yes" if status is Status.PAUSED else f"?status={status}"
            yield Tile(str(status), status.symbol, str(label), _count(number), query)
    yield Tile("failed", "✖", gettext("Failed in 24 h"), _count(failed), "?failed=day")


def _count(number: int) -> str:
    return formats.count(number) or "0"


def _lanes(
    page: ReadOnlyAdmin, request: HttpRequest, tasks: Sequence[ScheduledTask], now: datetime
) -> list[Lane]:
    window = timeline.window_around(now, _BEFORE, _AFTER)
    names = [task.name or "" for task in tasks]
    scheduler = tasks[0].scheduler_id if tasks else 0
    day = overview.day_of(scheduler, names, window.start, window.end, now)
    return [_lane(page, request, task, day.get(task.name or "", []), window, now) for task in tasks]


def _lane(
    page: ReadOnlyAdmin,
    request: HttpRequest,
    task: ScheduledTask,
    runs: Sequence[Ran],
    window: Window,
    now: datetime,
) -> Lane:
    schedule = read_schedule(task)[0]
    ended = Counter(run.outcome for run in runs)
    succeeded, wrong = ended["succeeded"], sum(ended[kind] for kind in overview.WENT_WRONG)
    others = sum(ended[kind] for kind in _QUIET)
    numbers = {"name": task.name, "succeeded": succeeded, "wrong": wrong, "others": others}
    label = gettext("%(name)s: %(succeeded)d succeeded, %(wrong)d failed, %(others)d did not run")
    start = next_start_of(task)
    following = "" if start is None else formats.relative(start.at, now)
    picture = timeline.lane(
        window,
        (Bar(run.start, run.end or now, run.outcome) for run in runs),
        _planned(task, schedule, window, now),
        changes_of(schedule, window),
        now,
        label % numbers,
    )
    return Lane(
        task.name or "",
        page.page_of(request, task),
        picture,
        succeeded,
        wrong,
        others,
        following,
        frozenset(ended),
    )


def _planned(
    task: ScheduledTask, schedule: Schedule | None, window: Window, now: datetime
) -> Iterable[datetime]:
    """Return the occurrences ahead, as many as a lane can show."""
    if schedule is None or task.next_run_at is None:
        return []
    # Where a pause ends, the next run lies behind it.
    since = max(now, task.next_run_at - timedelta(microseconds=1))
    return ticks_of(schedule, since, window)


def ticks_of(schedule: Schedule, since: datetime, window: Window) -> list[datetime]:
    """Return the occurrences after an instant, as many as a lane can show."""
    ahead = islice(_stepping(schedule, since), _PLANNED)
    return list(takewhile(lambda instant: instant < window.end, ahead))


def _stepping(schedule: Schedule, since: datetime) -> Iterator[datetime]:
    # What follows within a few minutes falls on the same tick of the picture.
    step = timedelta(minutes=4)
    found = schedule.next_after(since)
    while found is not None:
        yield found
        found = schedule.next_after(found + step - _MINUTE)


def changes_of(schedule: Schedule | None, window: Window) -> Iterator[Mark]:
    """Return the changes of the clock in the zone of a schedule."""
    if schedule is None:
        return
    for change in next_transitions(schedule.zone, window.start, window.end):
        yield Mark(change.instant, clock_change(schedule.zone.key, change.before, change.after))


def clock_change(zone: str, before: timedelta, after: timedelta) -> str:
    """Word a change of the clock."""
    kind = gettext("clocks go forward") if after > before else gettext("clocks go back")
    return f"{zone}: {kind}, {_offset(before)} → {_offset(after)}"


def _offset(offset: timedelta) -> str:
    minutes = int(offset.total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _hours(now: datetime) -> list[str]:
    window = timeline.window_around(now, _BEFORE, _AFTER)
    zone = timezone.get_current_timezone()
    return [f"{hour.astimezone(zone):%H:%M}" for hour in timeline.hours(window)]


def _load(schedules: Iterable[tuple[Schedule, int]], now: datetime) -> dict[str, Any]:
    numbers = load(schedules, now)
    start = now.replace(second=0, microsecond=0) + _MINUTE
    zone = timezone.get_current_timezone()
    minutes = [f"{(start + _MINUTE * index).astimezone(zone):%H:%M}" for index in range(60)]
    total, most = sum(numbers), max(numbers)
    text = ngettext(
        "%(number)s start in the coming hour", "%(number)s starts in the coming hour", total
    )
    label = text % {"number": _count(total)}
    peak = ""
    if most > 1:
        peak = gettext("most at %(minute)s: %(number)s") % {
            "minute": minutes[numbers.index(most)],
            "number": _count(most),
        }
    columns = [
        charts.Column(number, "load", f"{minute}: {number}" if number else "")
        for minute, number in zip(minutes, numbers, strict=True)
    ]
    return {
        "picture": charts.columns(columns, label),
        "label": label,
        "peak": peak,
        "from": minutes[0],
        "to": minutes[-1],
        "rows": [(m, n) for m, n in zip(minutes, numbers, strict=True) if n],
    }
