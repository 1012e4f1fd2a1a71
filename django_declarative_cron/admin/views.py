"""Pages beside the list of tasks: calendar, timeline and expression helper, as plain views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from datetime import timezone as fixed_zone
from typing import Any

from django import forms
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils import timezone
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from ..conf import options
from ..core.schedule import Schedule, load
from ..cron import (
    DIALECTS,
    UnknownZoneError,
    fires_only_in_some_years,
    next_transitions,
    parse,
    remarks_on,
    validate_zone,
)
from ..exceptions import InvalidCronExpressionError
from ..models import ScheduledTask
from ..runtime.clock import system_clock
from ..store import overview
from ..store.overview import WENT_WRONG, Ran
from ..store.queries import named, next_start_of, read_schedule, shapes
from . import badges, calendar, charts
from .base import TEMPLATES, ReadOnlyModelAdmin
from .calendar import DayLine
from .charts import Bar, Mark, Window
from .summary import numbers_by_status
from .task_detail import Table, upcoming

LANES = 40
"""Number of tasks that the timeline and a day of the calendar show."""

_BEFORE, _AFTER = timedelta(hours=17), timedelta(hours=7)
_TICKS = 400
_MINUTE = timedelta(minutes=1)
_DID_NOT_RUN = ("skipped", "missed", "cancelled", "waiting")


def _page(
    page: ReadOnlyModelAdmin, request: HttpRequest, name: str, title: Any, context: dict[str, Any]
) -> HttpResponse:
    context["expression_url"] = page.url(ScheduledTask, "expression")
    return page.extra_page(request, f"{TEMPLATES}/scheduledtask/{name}.html", str(title), context)


def _require_view_permission(page: ReadOnlyModelAdmin, request: HttpRequest) -> None:
    if not page.has_view_permission(request):
        raise PermissionDenied


# --- lanes ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a timeline: a picture, and the same numbers as cells of a table."""

    name: str
    url: str
    picture: SafeString
    kinds: frozenset[str]
    cells: tuple[object, ...]


def _numbers(runs: Sequence[Ran]) -> dict[str, int]:
    ended = Counter(run.outcome for run in runs)
    return {
        "succeeded": ended["succeeded"],
        "wrong": sum(ended[kind] for kind in WENT_WRONG),
        "others": sum(ended[kind] for kind in _DID_NOT_RUN),
    }


def _picture(
    schedule: Schedule | None,
    runs: Sequence[Ran],
    ticks: list[datetime],
    window: Window,
    now: datetime,
    label: str,
) -> SafeString:
    bars = (Bar(run.start, run.end or now, run.outcome) for run in runs)
    return charts.lane(window, bars, ticks, _clock_changes(schedule, window), now, label)


def _ticks(schedule: Schedule, since: datetime, window: Window) -> list[datetime]:
    """Return the occurrences after an instant, as many as a lane can show."""
    found: list[datetime] = []
    at = schedule.next_after(since)
    while at is not None and at < window.end and len(found) < _TICKS:
        found.append(at)
        # Occurrences within a few minutes of each other share one tick of the lane.
        at = schedule.next_after(at + 3 * _MINUTE)
    return found


def _clock_changes(schedule: Schedule | None, window: Window) -> Iterator[Mark]:
    if schedule is None:
        return
    zone = schedule.zone
    for change in next_transitions(zone, window.start, window.end):
        is_forward = change.after > change.before
        kind = gettext("clocks go forward") if is_forward else gettext("clocks go back")
        offsets = f"{_offset(change.before)} → {_offset(change.after)}"
        yield Mark(change.instant, f"{zone.key}: {kind}, {offsets}")


def _offset(offset: timedelta) -> str:
    return str(fixed_zone(offset))


def _hours(window: Window) -> list[str]:
    zone = timezone.get_current_timezone()
    return [f"{hour.astimezone(zone):%H:%M}" for hour in window.hours()]


# --- timeline -------------------------------------------------------------------


def timeline_view(page: Any, request: HttpRequest) -> HttpResponse:
    """Show 24 hours of the tasks of the list, with its filters, and the coming hour."""
    _require_view_permission(page, request)
    try:
        tasks = page.get_changelist_instance(request).result_list
    except IncorrectLookupParameters:
        return HttpResponseRedirect(request.path)
    now = system_clock.now()
    window = charts.window_around(now, _BEFORE, _AFTER)
    names = [task.name or "" for task in tasks[:LANES]]
    scheduler = tasks[0].scheduler_id if tasks else 0
    ran = overview.day_of(scheduler, names, window.start, window.end, now)
    lanes = [
        _task_lane(page, request, task, ran.get(task.name or "", []), window, now)
        for task in tasks[:LANES]
    ]
    ahead = overview.coming_up(page.get_queryset(request), now + 61 * _MINUTE)
    header = (
        *(gettext("Task"), gettext("Succeeded"), gettext("Failed")),
        *(gettext("Did not run"), gettext("Next run")),
    )
    context = {
        "statuses": _statuses(page, request),
        "lanes": lanes,
        "day": {"header": header, "rows": [lane.cells for lane in lanes]},
        "more": max(len(tasks) - LANES, 0),
        "hours": _hours(window),
        "legend": list(badges.legend(kind for lane in lanes for kind in lane.kinds)),
        "zone": timezone.get_current_timezone_name(),
        "load": _load(ahead, now),
    }
    return _page(page, request, "timeline", _("Timeline"), context)


def _statuses(page: ReadOnlyModelAdmin, request: HttpRequest) -> list[tuple[str, str, str]]:
    numbers = numbers_by_status(page, request)
    return [
        (str(status), str(word), badges.count(numbers[status]))
        for status, word in badges.STATUS_WORDS.items()
        if numbers[status]
    ]


def _task_lane(
    page: ReadOnlyModelAdmin,
    request: HttpRequest,
    task: ScheduledTask,
    runs: Sequence[Ran],
    window: Window,
    now: datetime,
) -> Lane:
    schedule, start = read_schedule(task)[0], next_start_of(task)
    ticks: list[datetime] = []
    if schedule is not None and task.next_run_at is not None:
        # While a task is paused, its next run may be before now.
        ticks = _ticks(schedule, max(now, task.next_run_at - timedelta(microseconds=1)), window)
    label = gettext("%(name)s: %(succeeded)d succeeded, %(wrong)d failed, %(others)d did not run")
    name, numbers = task.name or "", _numbers(runs)
    return Lane(
        name=name,
        url=page.page_url(request, task),
        picture=_picture(schedule, runs, ticks, window, now, label % {"name": name, **numbers}),
        kinds=frozenset(run.outcome for run in runs),
        cells=(name, *numbers.values(), "" if start is None else badges.relative(start.at, now)),
    )


def _load(schedules: Iterable[tuple[Schedule, int]], now: datetime) -> dict[str, Any]:
    numbers = load(schedules, now)
    start, zone = now.replace(second=0, microsecond=0) + _MINUTE, timezone.get_current_timezone()
    minutes = [f"{(start + _MINUTE * index).astimezone(zone):%H:%M}" for index in range(60)]
    total, most = sum(numbers), max(numbers)
    text = ngettext(
        "%(number)s start in the coming hour", "%(number)s starts in the coming hour", total
    )
    label, peak = text % {"number": badges.count(total) or "0"}, ""
    if most > 1:
        busiest = {"minute": minutes[numbers.index(most)], "number": badges.count(most)}
        peak = gettext("most at %(minute)s: %(number)s") % busiest
    rows = list(zip(minutes, numbers, strict=True))
    values = [charts.Column(n, "load", f"{minute}: {n}" if n else "") for minute, n in rows]
    return {
        "picture": charts.columns(values, label),
        "label": label,
        "peak": peak,
        "first": minutes[0],
        "last": minutes[-1],
        "header": (gettext("Minute"), gettext("Starts")),
        "rows": [(minute, n) for minute, n in rows if n],
    }


# --- calendar -------------------------------------------------------------------


def calendar_view(page: ReadOnlyModelAdmin, request: HttpRequest) -> HttpResponse:
    """Show a month, and one of its days if the query names one."""
    _require_view_permission(page, request)
    now, zone = system_clock.now(), timezone.get_current_timezone()
    today = now.astimezone(zone).date()
    day = calendar.day_of(request.GET.get("day", ""))
    month = calendar.month_of(f"{day:%Y-%m}" if day else request.GET.get("month", ""), today)
    tasks = page.get_queryset(request).filter(enabled=True)
    previous, following = calendar.neighbours(month)
    past = {each: calendar.bounds(each, zone) for each in calendar.days_of(month) if each <= today}
    ended = overview.ended_by_day(options().DEPLOYMENT, past)
    context = {
        "month": date_format(month, "YEAR_MONTH_FORMAT"),
        "previous": previous,
        "next": following,
        "weekdays": [WEEKDAYS_ABBR[number] for number in range(7)],
        "weeks": calendar.weeks(month, today, zone, list(shapes(tasks)), ended),
        "zone": timezone.get_current_timezone_name(),
        "day": None if day is None else _day(page, tasks, day, now),
    }
    return _page(page, request, "calendar", _("Calendar"), context)


def _day(page: ReadOnlyModelAdmin, tasks: Any, day: date, now: datetime) -> dict[str, Any]:
    zone = timezone.get_current_timezone()
    found = calendar.lines_of(day, zone, named(tasks.order_by()))
    shown, window = found[:LANES], Window(*calendar.bounds(day, zone))
    names = [line.task.name for line in shown]
    scheduler = shown[0].task.scheduler if shown else 0
    ran = overview.day_of(scheduler, names, window.start, window.end, now)
    lanes = [_day_lane(page, line, ran.get(line.task.name, []), window, now) for line in shown]
    header = (
        *(gettext("Task"), gettext("Starts"), gettext("Succeeded"), gettext("Failed")),
        *(gettext("First"), gettext("Last"), gettext("Schedule")),
    )
    return {
        "date": date_format(day, "DATE_FORMAT"),
        "hours": _hours(window),
        "lanes": lanes,
        "header": header,
        "rows": [lane.cells for lane in lanes],
        "more": len(found) - len(shown),
    }


def _day_lane(
    page: ReadOnlyModelAdmin,
    line: DayLine,
    runs: Sequence[Ran],
    window: Window,
    now: datetime,
) -> Lane:
    name, schedule, numbers = line.task.name, line.task.schedule, _numbers(runs)
    ticks = _ticks(schedule, max(now, line.first - timedelta(microseconds=1)), window)
    label = gettext("%(name)s: %(number)d planned, %(succeeded)d succeeded, %(wrong)d failed")
    url = page.url(ScheduledTask, "change", line.task.pk)
    said = label % {"name": name, "number": line.number, **numbers}
    return Lane(
        name=name,
        url=url,
        picture=_picture(schedule, runs, ticks, window, now, said),
        kinds=frozenset(),
        cells=(
            *(badges.link(url, name), line.number, numbers["succeeded"], numbers["wrong"]),
            badges.moment(line.first),
            badges.moment(line.last) if line.number > 1 else "",
            badges.words(schedule.expression),
        ),
    )


# --- expression helper ----------------------------------------------------------

_LONGEST = 255


class ExpressionForm(forms.Form):
    expression = forms.CharField(
        label=_("Cron expression"),
        max_length=_LONGEST,
        strip=False,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
    )
    timezone = forms.CharField(
        label=_("Time zone"),
        max_length=_LONGEST,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    dialect = forms.ChoiceField(label=_("Dialect"), choices=[(each, each) for each in DIALECTS])


@dataclass(frozen=True, slots=True)
class Explanation:
    """An expression in words with its next occurrences, or the reason why it is invalid."""

    problem: str = ""
    words: str = ""
    upcoming: Table | None = None
    remarks: list[str] = field(default_factory=list)


def expression_view(page: ReadOnlyModelAdmin, request: HttpRequest) -> HttpResponse:
    _require_view_permission(page, request)
    initial = {"timezone": timezone.get_current_timezone_name(), "dialect": "posix"}
    asked = {key: request.GET[key] for key in ExpressionForm.base_fields if key in request.GET}
    form = ExpressionForm(initial | asked if "expression" in asked else None, initial=initial)
    explanation = None
    if form.is_bound and form.is_valid():
        explanation = _explained(form.cleaned_data, system_clock.now())
    context = {"form": form, "explanation": explanation}
    return _page(page, request, "expression", _("Expression helper"), context)


def _on_dialect(given: dict[str, Any]) -> list[str]:
    """Return a remark for an expression that only the other dialect accepts."""
    with suppress(InvalidCronExpressionError):
        if given["dialect"] != "ojs":
            parse(given["expression"], "ojs")
            return [gettext("Tasks written as dicts accept it: their dialect is ojs.")]
    return []


def _explained(given: dict[str, Any], now: datetime) -> Explanation:
    try:
        expression = parse(given["expression"], given["dialect"])
        zone = validate_zone(given["timezone"])
    except InvalidCronExpressionError as error:
        return Explanation(problem=error.message, remarks=_on_dialect(given))
    except UnknownZoneError as error:
        return Explanation(problem=str(error))
    schedule = Schedule(expression, zone, anchor=now)
    remarks = [f"{remark[:1].upper()}{remark[1:]}." for remark in remarks_on(expression)]
    if expression.restricted_both:
        remarks.append(gettext("Both day fields are restricted: a day that matches either counts."))
    if fires_only_in_some_years(expression):
        remarks.append(gettext("In some years there is no matching day."))
    ahead = upcoming(schedule, now, {gettext("Local time"): zone, gettext("UTC"): UTC})
    return Explanation(words=badges.words(expression), upcoming=ahead, remarks=remarks)
