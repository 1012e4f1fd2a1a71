"""Context of the page of one task: why, notices, history, occurrences, statistics, actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, pairwise
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from ..core.explain import Cause
from ..core.repeated_failures import is_suspicious
from ..core.schedule import Schedule
from ..cron.zones import in_zone, is_shown_twice
from ..formatting import format_instant
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..store.overview import WENT_WRONG, Coverage, Unserved, coverage, days_of
from ..store.queries import Reading, explain
from ..store.sentences import Times, sentence
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
class Upcoming:
    """A future occurrence in three zones, with a note about clock changes."""

    local: SafeString
    viewer: SafeString
    utc: SafeString
    distance: str
    note: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """One row of the run history."""

    url: str
    task: str
    outcome: SafeString
    scheduled: SafeString
    started: SafeString | str
    duration: str
    attempt: str
    reason: str
    instance: str
    error: SafeString | str


@dataclass(frozen=True, slots=True)
class ActionLine:
    """One row of the operator actions."""

    at: SafeString
    kind: str
    author: str
    until: SafeString | str
    note: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at an occurrence."""

    number: int
    outcome: SafeString
    started: SafeString
    delay: str
    error: SafeString | str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, its summary in words, and the same values as a table, newest first."""

    key: str
    title: str
    picture: SafeString
    summary: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The page of one task beside its fields."""

    why: str
    is_urgent: bool
    problem: str
    is_suspicious: bool
    is_disabled: bool
    pause: ActionLine | None
    is_retrying: bool
    next_start: SafeString | str
    failed: RunLine | None
    runs: list[RunLine]
    all_runs_url: str
    upcoming: list[Upcoming]
    has_utc: bool
    has_viewer_zone: bool
    attempts: list[Attempt]
    coverage: str
    charts: list[Chart]
    actions: list[ActionLine]


def task_context(
    page: ReadOnlyModelAdmin,
    request: HttpRequest,
    reading: Reading,
    now: datetime,
    *,
    is_attended: bool,
) -> TaskContext:
    """Return the context of the page of one task."""
    task = reading.task
    answer = explain(task, now, is_attended=is_attended)
    runs = list(runs_of(task)[:_CHARTED])
    start, pause = reading.next_start, _pause(task)
    failed = None if task.pending_retry_until is None else _last_failure(task, runs)
    viewer = timezone.get_current_timezone_name()
    return TaskContext(
        why=sentence(answer, timezone.get_current_timezone()),
        is_urgent=answer.cause in _URGENT,
        problem=reading.problem,
        is_suspicious=is_suspicious(task.interruptions),
        is_disabled=not task.enabled,
        pause=None if pause is None else action_line(pause),
        is_retrying=task.pending_retry_until is not None,
        next_start=_moment(None if start is None else start.at),
        failed=None if failed is None else run_line(page, request, failed, now),
        runs=[run_line(page, request, run, now) for run in runs[:RUNS]],
        all_runs_url=_all_runs(page, request, task),
        upcoming=[] if reading.schedule is None else upcoming(reading.schedule, now),
        has_utc=task.timezone != "UTC",
        has_viewer_zone=viewer not in ("UTC", task.timezone),
        attempts=_newest_attempts(task, runs, now),
        coverage=_coverage(reading, now),
        charts=[each for each in _charts(task, runs, now) if each is not None],
        actions=[action_line(action) for action in _actions(task)[:ACTIONS]],
    )


def runs_of(task: ScheduledTask) -> QuerySet[TaskRun]:
    """Return the runs of a task's name with their instances, newest first."""
    runs = TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return runs.select_related("instance").defer(*LONG).order_by("-id")


def run_line(
    page: ReadOnlyModelAdmin, request: HttpRequest, run: TaskRun, now: datetime
) -> RunLine:
    return RunLine(
        url=page.page_url(request, run),
        task=run.task_name,
        outcome=badges.outcome(run, now),
        scheduled=badges.moment(run.scheduled_for),
        started=_moment(run.started_at),
        duration=duration(run, now),
        attempt=str(run.attempt or ""),
        reason=badges.reason(run),
        instance=str(run.instance or ""),
        error=badges.error(run.error),
    )


def duration(run: TaskRun, now: datetime) -> str:
    """Return how long a run took, or "" if it has not started or not ended."""
    end = shown_end(run, now)
    return "" if run.started_at is None or end is None else badges.elapsed(end - run.started_at)


def action_line(action: TaskOverride) -> ActionLine:
    return ActionLine(
        at=badges.moment(action.created_at),
        kind=action.get_kind_display(),
        author=action.author or (gettext("the scheduler") if action.reason else ""),
        until=_moment(action.until),
        note=action.note,
    )


def _last_failure(task: ScheduledTask, newest: list[TaskRun]) -> TaskRun | None:
    for run in newest:
        if run.outcome in WENT_WRONG:
            return run
    return runs_of(task).filter(outcome__in=WENT_WRONG).first()


def _actions(task: ScheduledTask) -> QuerySet[TaskOverride]:
    actions = TaskOverride.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return actions.order_by("-id")


def _pause(task: ScheduledTask) -> TaskOverride | None:
    if task.paused_since is None:
        return None
    return _actions(task).filter(kind=TaskOverride.Kind.PAUSE, ended_at=None).first()


def _moment(value: datetime | None) -> SafeString | str:
    return "" if value is None else badges.moment(value)


def _all_runs(page: ReadOnlyModelAdmin, request: HttpRequest, task: ScheduledTask) -> str:
    if not page.shows(request, TaskRun):
        return ""
    return f"{page.url(TaskRun, 'changelist')}?{urlencode({'task_name__exact': task.name})}"


# --- future occurrences ---------------------------------------------------------


def upcoming(schedule: Schedule, now: datetime) -> list[Upcoming]:
    """Return the next occurrences of a schedule with the effects of clock changes."""
    instants = list(islice(schedule.upcoming(now), UPCOMING))
    viewer = timezone.get_current_timezone()
    return [
        Upcoming(
            local=badges.occurrence(instant, schedule.zone),
            viewer=badges.occurrence(instant, viewer),
            utc=badges.occurrence(instant, UTC),
            distance=badges.relative(instant, now),
            note=_clock_note(schedule, before, instant),
        )
        for before, instant in pairwise([now, *instants])
    ]


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
    names = {"before": earlier.strftime("%z"), "after": later.strftime("%z")}
    return gettext("clock change: UTC%(before)s → UTC%(after)s") % names


# --- attempts -------------------------------------------------------------------


def _newest_attempts(task: ScheduledTask, runs: Sequence[TaskRun], now: datetime) -> list[Attempt]:
    """Return the attempts at the newest occurrence if there are several, or will be."""
    newest = [
        run
        for run in runs
        if run.scheduled_for == task.occurrence_at and run.started_at is not None
    ]
    if len(newest) < 2 and task.pending_retry_until is None:
        return []
    return attempts_of(newest[::-1], now)


def attempts_of(runs: Sequence[TaskRun], now: datetime) -> list[Attempt]:
    """Return attempts at one occurrence, oldest first, with the delays between them."""
    lines: list[Attempt] = []
    before: datetime | None = None
    for run in runs:
        if run.started_at is None:
            continue
        delay = "" if before is None else badges.elapsed(run.started_at - before)
        lines.append(
            Attempt(
                number=run.attempt,
                outcome=badges.outcome(run, now),
                started=badges.moment(run.started_at),
                delay=delay,
                error=badges.error(run.error),
            )
        )
        before = shown_end(run, now) or before
    return lines


# --- statistics -----------------------------------------------------------------


def _coverage(reading: Reading, now: datetime) -> str:
    if reading.schedule is None:
        return ""
    found = coverage(reading.task, reading.schedule, now)
    return coverage_in_words(found, partial(format_instant, zone=timezone.get_current_timezone()))


def coverage_in_words(found: Coverage, times: Times) -> str:
    """Return in one sentence how many occurrences ran, and why others did not."""
    text = ngettext(
        "%(number)d occurrence since %(since)s",
        "%(number)d occurrences since %(since)s",
        found.named,
    )
    head = text % {"number": found.named, "since": times(found.since.replace(microsecond=0))}
    parts = [ngettext("%(number)d ran", "%(number)d ran", found.ran) % {"number": found.ran}]
    parts += [_unserved(each, times) for each in found.unserved[:_REASONS_SHOWN]]
    return f"{head}: {', '.join(parts)}."


def _unserved(each: Unserved, times: Times) -> str:
    words = {
        "number": each.number,
        "outcome": badges.outcome_word(each.outcome),
        "reason": badges.REASON_WORDS.get(each.reason, each.reason),
        "when": times(each.first),
    }
    if each.number > 1:
        words["when"] = f"{times(each.first)} – {times(each.last)}"
    return gettext("%(number)d %(outcome)s (%(reason)s, %(when)s)") % words


def _charts(task: ScheduledTask, runs: Sequence[TaskRun], now: datetime) -> list[Chart | None]:
    ended = [
        (run, run.started_at, end)
        for run in runs
        if run.started_at is not None and (end := shown_end(run, now)) is not None
    ][:_COLUMNS][::-1]
    return [_durations(ended, now), _delays(ended), _outcomes(task, now)]


Ended = list[tuple[TaskRun, datetime, datetime]]


def _chart(
    key: str,
    title: str,
    values: Sequence[Column],
    summary: str,
    header: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
) -> Chart:
    picture = charts.columns(values, summary)
    return Chart(
        key=key,
        title=title,
        picture=picture,
        summary=summary,
        header=header,
        rows=list(reversed(rows)),
    )


def _durations(ended: Ended, now: datetime) -> Chart | None:
    if not ended:
        return None
    taken = [end - started for _run, started, end in ended]
    usual = {"usual": badges.elapsed(_median(taken)), "most": badges.elapsed(max(taken))}
    summary = gettext("Typically %(usual)s, at most %(most)s.") % usual
    outcomes = [shown_outcome(run, now) for run, _started, _end in ended]
    values = [
        Column(length.total_seconds(), outcome, badges.elapsed(length))
        for outcome, length in zip(outcomes, taken, strict=True)
    ]
    rows = [
        (badges.moment(started), badges.outcome_word(outcome), badges.elapsed(end - started))
        for outcome, (_run, started, end) in zip(outcomes, ended, strict=True)
    ]
    header = (gettext("Started"), gettext("Outcome"), gettext("Duration"))
    return _chart("duration", gettext("Duration"), values, summary, header, rows)


def _delays(ended: Ended) -> Chart | None:
    due = [(run, started) for run, started, _end in ended if run.reason in ("due", "boot")]
    if not due:
        return None
    lags = [max(started - run.scheduled_for, timedelta(0)) for run, started in due]
    usual = {"usual": badges.elapsed(_median(lags)), "most": badges.elapsed(max(lags))}
    summary = gettext("Starts typically %(usual)s late, at most %(most)s.") % usual
    values = [Column(lag.total_seconds(), "load", badges.elapsed(lag)) for lag in lags]
    rows = [
        (badges.moment(run.scheduled_for), badges.elapsed(lag))
        for (run, _started), lag in zip(due, lags, strict=True)
    ]
    header = (gettext("Scheduled for"), gettext("Late by"))
    return _chart("lag", gettext("Lag"), values, summary, header, rows)


def _median(lengths: list[timedelta]) -> timedelta:
    return sorted(lengths)[len(lengths) // 2]


def _outcomes(task: ScheduledTask, now: datetime) -> Chart | None:
    days = days_of(task, now, timezone.get_current_timezone())
    if not any(days.values()):
        return None
    total = sum(sum(day.values()) for day in days.values())
    good = sum(day[Outcome.SUCCEEDED] for day in days.values())
    text = gettext("%(good)d of %(total)d succeeded in 30 days.")
    summary = text % {"good": good, "total": total}
    rows = [
        (day, found[Outcome.SUCCEEDED], sum(found.values()) - found[Outcome.SUCCEEDED])
        for day, found in days.items()
        if found
    ]
    values = [
        Column(sum(found.values()), _worst(found), f"{day}: {sum(found.values())}")
        for day, found in days.items()
    ]
    header = (gettext("Day"), gettext("Succeeded"), gettext("Others"))
    return _chart("outcomes", gettext("Outcomes by day"), values, summary, header, rows)


def _worst(day: dict[str, int]) -> str:
    found = (kind for kind in reversed(charts.KINDS) if day.get(kind))
    return next(found, "succeeded")
