"""Context of the page of one task: why, notices, history, occurrences, statistics, actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, pairwise
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from ..core.explain import Cause
from ..core.repeated_failures import is_suspicious
from ..core.schedule import Schedule
from ..cron.zones import in_zone, is_shown_twice
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..store.overview import WENT_WRONG, Unserved, coverage, days_of
from ..store.queries import Reading, explain
from ..store.sentences import sentence
from ..store.status import shown_end, shown_outcome
from . import badges, charts
from .base import ReadOnlyModelAdmin
from .charts import Column

LONG = ("traceback", "log", "output", "result", "instance__lapses")
"""Columns of a run and its instance that lists do not show."""

RUNS, UPCOMING, ACTIONS = 20, 10, 20
_CHARTED = 50
_COLUMNS = 40
_REASONS_SHOWN = 5
_URGENT = (Cause.BROKEN, Cause.NO_LEADER, Cause.LATE)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page; the first cell of each row is its heading."""

    key: str
    heading: str
    header: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    empty: str = ""
    caption: str = ""
    more: SafeString | str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, its summary in words, and the same values as a table, newest first."""

    key: str
    title: str
    values: Sequence[Column]
    summary: str
    header: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]

    @property
    def picture(self) -> SafeString:
        return charts.columns(self.values, self.summary)


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The page of one task beside its fields."""

    why: str
    is_urgent: bool
    problem: str
    is_suspicious: bool
    pause: list[ActionRow]
    next_start: SafeString | str
    cause: SafeString | str
    runs: Table
    upcoming: Table
    attempts: Table | None
    coverage: str
    charts: list[Chart]
    actions: Table


def task_context(
    page: ReadOnlyModelAdmin,
    request: HttpRequest,
    reading: Reading,
    now: datetime,
    *,
    is_attended: bool,
) -> TaskContext:
    task, start = reading.task, reading.next_start
    answer = explain(task, now, is_attended=is_attended)
    runs = list(runs_of(task)[:_CHARTED])
    pause = _pause(task)
    return TaskContext(
        why=sentence(answer, timezone.get_current_timezone()),
        is_urgent=answer.cause in _URGENT,
        problem=reading.problem,
        is_suspicious=is_suspicious(task.interruptions),
        pause=[] if pause is None else [_action_row(pause)],
        next_start=_moment(None if start is None else start.at),
        cause=_cause(page, request, task, runs, now),
        runs=_runs(page, request, task, runs[:RUNS], now),
        upcoming=_upcoming(reading, pause, now),
        attempts=_newest_attempts(task, runs, now),
        coverage=_coverage(reading, now),
        charts=[each for each in _charts(task, runs, now) if each is not None],
        actions=_actions_table(task),
    )


# --- runs -----------------------------------------------------------------------


def runs_of(task: ScheduledTask) -> QuerySet[TaskRun]:
    """Return the runs of a task's name with their instances, newest first."""
    runs = TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return runs.select_related("instance").defer(*LONG).order_by("-id")


def _runs(
    page: ReadOnlyModelAdmin,
    request: HttpRequest,
    task: ScheduledTask,
    runs: Sequence[TaskRun],
    now: datetime,
) -> Table:
    more: SafeString | str = ""
    if page.shows(request, TaskRun):
        url = f"{page.url(TaskRun, 'changelist')}?{urlencode({'task_name__exact': task.name})}"
        more = format_html('<a href="{}" class="showall">{}</a>', url, gettext("Show all runs"))
    header = (
        *(gettext("Outcome"), gettext("Scheduled for"), gettext("Duration"), gettext("Error")),
        *(gettext("Attempt"), gettext("Reason"), gettext("Started"), gettext("Scheduler")),
    )
    rows = [_run_row(page.page_url(request, run), run, now) for run in runs]
    empty = gettext("No runs yet.")
    return Table("runs", gettext("Run history"), header, rows, empty, more=more)


def _run_row(url: str, run: TaskRun, now: datetime) -> tuple[object, ...]:
    return (
        badges.link(url, badges.outcome(run, now)),
        badges.moment(run.scheduled_for),
        duration(run, now),
        badges.link(url, badges.error(run.error)),
        run.attempt or "",
        badges.reason(run),
        _moment(run.started_at),
        run.instance or "",
    )


def current_runs(page: ReadOnlyModelAdmin, request: HttpRequest, runs: Iterable[TaskRun]) -> Table:
    header = (
        *(gettext("Task"), gettext("Scheduled for"), gettext("Started")),
        *(gettext("Attempt"), gettext("Reason")),
    )
    rows = [
        (
            badges.link(page.page_url(request, run), run.task_name),
            badges.moment(run.scheduled_for),
            _moment(run.started_at),
            run.attempt or "",
            badges.reason(run),
        )
        for run in runs
    ]
    return Table("runs", gettext("Current runs"), header, rows, gettext("No current runs."))


def duration(run: TaskRun, now: datetime) -> str:
    """Return how long a run took, or "" if it has not started or not ended."""
    end = shown_end(run, now)
    return "" if run.started_at is None or end is None else badges.elapsed(end - run.started_at)


def _cause(
    page: ReadOnlyModelAdmin,
    request: HttpRequest,
    task: ScheduledTask,
    runs: list[TaskRun],
    now: datetime,
) -> SafeString | str:
    """Return the failure that the pending retry follows."""
    if task.pending_retry_until is None or (run := _last_failure(task, runs)) is None:
        return ""
    text = format_html("{} {}", badges.outcome(run, now), badges.error(run.error))
    return badges.link(page.page_url(request, run), text)


def _last_failure(task: ScheduledTask, newest: list[TaskRun]) -> TaskRun | None:
    for run in newest:
        if run.outcome in WENT_WRONG:
            return run
    return runs_of(task).filter(outcome__in=WENT_WRONG).first()


# --- operator actions -----------------------------------------------------------

ActionRow = tuple[SafeString, str, str, SafeString | str, SafeString | str]
"""When, what, by whom, until when, and the note."""


def _actions(task: ScheduledTask) -> QuerySet[TaskOverride]:
    actions = TaskOverride.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return actions.order_by("-id")


def _actions_table(task: ScheduledTask) -> Table:
    header = (
        *(gettext("At"), gettext("Action"), gettext("By")),
        *(gettext("Until"), gettext("Note")),
    )
    rows = [_action_row(action) for action in _actions(task)[:ACTIONS]]
    empty = gettext("No operator actions.")
    return Table("actions", gettext("Operator actions"), header, rows, empty)


def _action_row(action: TaskOverride) -> ActionRow:
    return (
        badges.moment(action.created_at),
        action.get_kind_display(),
        action.author or (gettext("the scheduler") if action.reason else ""),
        _moment(action.until),
        badges.note(action.note),
    )


def _pause(task: ScheduledTask) -> TaskOverride | None:
    if task.paused_since is None:
        return None
    return _actions(task).filter(kind=TaskOverride.Kind.PAUSE, ended_at=None).first()


def _moment(value: datetime | None) -> SafeString | str:
    return "" if value is None else badges.moment(value)


# --- future occurrences ---------------------------------------------------------


def _upcoming(reading: Reading, pause: TaskOverride | None, now: datetime) -> Table:
    task, schedule = reading.task, reading.schedule
    caption = ""
    if not task.enabled or (pause is not None and pause.until is None):
        caption = gettext("Paused: these occurrences will be skipped.")
    elif pause is not None:
        caption = gettext("Paused: the occurrences before the end of the pause will be skipped.")
    viewer = timezone.get_current_timezone()
    zones: dict[str, tzinfo] = {}
    if schedule is not None:
        zones[gettext("Time zone of the task")] = schedule.zone
    if str(viewer) not in ("UTC", task.timezone):
        zones[gettext("Your time zone")] = viewer
    if task.timezone != "UTC":
        zones[gettext("UTC")] = UTC
    empty = gettext("The schedule cannot be read.") if reading.problem else ""
    return upcoming(schedule, now, zones, empty, caption)


def upcoming(
    schedule: Schedule | None,
    now: datetime,
    zones: Mapping[str, tzinfo],
    empty: str = "",
    caption: str = "",
) -> Table:
    """Return the next occurrences in some zones, with the effects of clock changes."""
    rows: list[tuple[object, ...]] = []
    if schedule is not None:
        instants = islice(schedule.upcoming(now), UPCOMING)
        rows = [
            (
                *(badges.occurrence(instant, zone) for zone in zones.values()),
                badges.relative(instant, now),
                _clock_note(schedule, before, instant),
            )
            for before, instant in pairwise([now, *instants])
        ]
    header = (*zones, gettext("From now"), gettext("Clock change"))
    empty = empty or gettext("No future occurrences.")
    return Table("upcoming", gettext("Next occurrences"), header, rows, empty, caption)


def _clock_note(schedule: Schedule, before: datetime, instant: datetime) -> str:
    parts = [_clock_change(schedule, before, instant)]
    parts += [
        gettext("%(lost)s does not exist") % {"lost": f"{gap.civil:%Y-%m-%d %H:%M}"}
        for gap in schedule.lost_between(before, instant)
    ]
    if is_shown_twice(instant, schedule.zone):
        both = gettext("happens twice, both count")
        first = gettext("happens twice, only the first counts")
        parts.append(both if schedule.fold == "both" else first)
    return "; ".join(filter(None, parts))


def _clock_change(schedule: Schedule, before: datetime, instant: datetime) -> str:
    earlier, later = in_zone(before, schedule.zone), in_zone(instant, schedule.zone)
    if earlier.utcoffset() == later.utcoffset():
        return ""
    names = {"before": earlier.isoformat()[-6:], "after": later.isoformat()[-6:]}
    return gettext("clock change: UTC%(before)s → UTC%(after)s") % names


# --- attempts -------------------------------------------------------------------


def _newest_attempts(task: ScheduledTask, runs: Sequence[TaskRun], now: datetime) -> Table | None:
    """Return the attempts at the newest occurrence if there are several, or will be."""
    newest = [
        run
        for run in runs
        if run.scheduled_for == task.occurrence_at and run.started_at is not None
    ]
    if len(newest) < 2 and task.pending_retry_until is None:
        return None
    return attempts(gettext("Attempts at the newest occurrence"), newest[::-1], now)


def attempts(heading: str, runs: Sequence[TaskRun], now: datetime) -> Table | None:
    """Return attempts at one occurrence, oldest first, with the delays between them."""
    rows: list[tuple[object, ...]] = []
    before: datetime | None = None
    for run in runs:
        if run.started_at is None:
            continue
        delay = "" if before is None else badges.elapsed(run.started_at - before)
        shown = (badges.outcome(run, now), badges.moment(run.started_at))
        rows.append((run.attempt, *shown, delay, badges.error(run.error)))
        before = shown_end(run, now) or before
    header = (
        *(gettext("Attempt"), gettext("Outcome"), gettext("Started")),
        *(gettext("Delay"), gettext("Error")),
    )
    return Table("attempts", heading, header, rows) if rows else None


# --- statistics -----------------------------------------------------------------


def _coverage(reading: Reading, now: datetime) -> str:
    """Return in one sentence how many occurrences ran, and why others did not."""
    if reading.schedule is None:
        return ""
    found = coverage(reading.task, reading.schedule, now)
    text = ngettext(
        "%(number)d occurrence since %(since)s",
        "%(number)d occurrences since %(since)s",
        found.named,
    )
    since = badges.local(found.since.replace(microsecond=0))
    head = text % {"number": found.named, "since": since}
    parts = [ngettext("%(number)d ran", "%(number)d ran", found.ran) % {"number": found.ran}]
    parts += [_unserved(each) for each in found.unserved[:_REASONS_SHOWN]]
    return f"{head}: {', '.join(parts)}."


def _unserved(each: Unserved) -> str:
    when = badges.local(each.first)
    words = {
        "number": each.number,
        "outcome": badges.outcome_word(each.outcome),
        "reason": badges.REASON_WORDS.get(each.reason, each.reason),
        "when": when if each.number == 1 else f"{when} – {badges.local(each.last)}",
    }
    return gettext("%(number)d %(outcome)s (%(reason)s, %(when)s)") % words


def _charts(task: ScheduledTask, runs: Sequence[TaskRun], now: datetime) -> list[Chart]:
    ended = [
        (run, run.started_at, end)
        for run in runs
        if run.started_at is not None and (end := shown_end(run, now)) is not None
    ][:_COLUMNS]
    due = [run for run, _started, _end in ended if run.reason in ("due", "boot")]
    days = days_of(task, now, timezone.get_current_timezone())
    return [
        *([_durations(ended, now)] if ended else []),
        *([_delays(due)] if due else []),
        *([_outcomes(days)] if any(days.values()) else []),
    ]


def _durations(ended: Sequence[tuple[TaskRun, datetime, datetime]], now: datetime) -> Chart:
    found = [(started, shown_outcome(run, now), end - started) for run, started, end in ended]
    taken = [length for _started, _outcome, length in found]
    usual = {"usual": badges.elapsed(_median(taken)), "most": badges.elapsed(max(taken))}
    return Chart(
        key="duration",
        title=gettext("Duration"),
        values=[
            Column(length.total_seconds(), outcome, badges.elapsed(length))
            for _started, outcome, length in reversed(found)
        ],
        summary=gettext("Typically %(usual)s, at most %(most)s.") % usual,
        header=(gettext("Started"), gettext("Outcome"), gettext("Duration")),
        rows=[
            (badges.moment(started), badges.outcome_word(outcome), badges.elapsed(length))
            for started, outcome, length in found
        ],
    )


def _delays(due: Sequence[TaskRun]) -> Chart:
    none = timedelta(0)
    found = [
        (run.scheduled_for, max((run.started_at or run.scheduled_for) - run.scheduled_for, none))
        for run in due
    ]
    lags = [lag for _scheduled_for, lag in found]
    usual = {"usual": badges.elapsed(_median(lags)), "most": badges.elapsed(max(lags))}
    return Chart(
        key="lag",
        title=gettext("Lag"),
        values=[Column(lag.total_seconds(), "load", badges.elapsed(lag)) for lag in reversed(lags)],
        summary=gettext("Starts typically %(usual)s late, at most %(most)s.") % usual,
        header=(gettext("Scheduled for"), gettext("Late by")),
        rows=[(badges.moment(at), badges.elapsed(lag)) for at, lag in found],
    )


def _median(lengths: list[timedelta]) -> timedelta:
    return sorted(lengths)[len(lengths) // 2]


def _outcomes(days: Mapping[str, dict[str, int]]) -> Chart:
    found = [(day, sum(each.values()), each) for day, each in days.items()]
    good = sum(each[Outcome.SUCCEEDED] for each in days.values())
    numbers = {"good": good, "total": sum(total for _day, total, _each in found)}
    return Chart(
        key="outcomes",
        title=gettext("Outcomes by day"),
        values=[Column(total, _worst(each), f"{day}: {total}") for day, total, each in found],
        summary=gettext("%(good)d of %(total)d succeeded in 30 days.") % numbers,
        header=(gettext("Day"), gettext("Succeeded"), gettext("Others")),
        rows=[
            (day, each[Outcome.SUCCEEDED], total - each[Outcome.SUCCEEDED])
            for day, total, each in reversed(found)
            if each
        ],
    )


def _worst(day: Mapping[str, int]) -> str:
    found = (kind for kind in reversed(charts.KINDS) if day.get(kind))
    return next(found, "succeeded")
