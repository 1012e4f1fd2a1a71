"""What the page of one task tells beside its row: what comes, what was, and who did what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..core.repeated_failures import is_suspicious
from ..core.schedule import Schedule
from ..cron.zones import is_shown_twice
from ..models import Outcome, ScheduledTask, TaskOverride, TaskRun
from ..store.queries import Reading, read
from ..store.status import shown_end
from . import formats, marks, portrait
from .readonly import ReadOnlyAdmin, first_line

LONG = ("traceback", "log", "output", "result", "instance__lapses")
"""Columns of a run and its instance that lists do not show."""

UPCOMING = 10
RUNS = 50
ACTS = 20

_WENT_WRONG = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One occurrence that will be.

    Args:
        local: in the task's zone.
        viewer: in the zone of whoever looks.
        utc: in UTC.
        distance: from now.
        note: what the clocks do before it.
    """

    local: SafeString
    viewer: SafeString
    utc: SafeString
    distance: str
    note: str


@dataclass(frozen=True, slots=True)
class RunLine:
    """One line of the run history.

    Args:
        url: the run's page, empty for those who may not see it.
        outcome: how it ended.
        scheduled: its occurrence.
        started: when it started, if it did.
        duration: how long it took, if it ended.
        attempt: its number, empty where nothing ran.
        reason: why it began, or why nothing ran.
        instance: where it ran.
        error: the first line.
    """

    url: str
    outcome: SafeString
    scheduled: SafeString | str
    started: SafeString | str
    duration: str
    attempt: str
    reason: str
    instance: str
    error: str


@dataclass(frozen=True, slots=True)
class ActLine:
    """One line of what people did.

    Args:
        at: when.
        kind: what.
        author: who.
        until: end of a pause that has one.
        note: why.
    """

    at: SafeString | str
    kind: str
    author: str
    until: SafeString | str
    note: str


def of(
    site_page: ReadOnlyAdmin,
    request: HttpRequest,
    task: ScheduledTask,
    now: datetime,
    *,
    is_attended: bool,
) -> dict[str, Any]:
    """Collect everything the templates show of a task."""
    reading = read(task, now)
    start = reading.next_start
    runs = list(runs_of(task)[:RUNS])
    failed = None if task.pending_retry_until is None else _cause(task, runs)
    pause = _pause(task)
    viewer = timezone.get_current_timezone_name()
    return {
        "portrait": portrait.of(reading, runs, now, is_attended=is_attended),
        "has_utc": task.timezone != "UTC",
        "has_viewer_zone": viewer not in ("UTC", task.timezone),
        "problem": reading.problem,
        "is_suspicious": is_suspicious(task.interruptions),
        "disabled": not task.enabled,
        "pause": None if pause is None else act_line(pause),
        "is_failing": task.pending_retry_until is not None,
        "next_start": _moment(None if start is None else start.at),
        "failed": None if failed is None else run_line(site_page, request, failed, now),
        "upcoming": _ahead(reading, now),
        "runs": [run_line(site_page, request, run, now) for run in runs],
        "all_runs_url": _all_runs(site_page, request, task),
        "acts": [act_line(act) for act in _acts(task)[:ACTS]],
    }


def runs_of(task: ScheduledTask) -> QuerySet[TaskRun]:
    """Return the runs of a task's name with their instances, newest first."""
    runs = TaskRun.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return runs.select_related("instance").defer(*LONG).order_by("-id")


def run_line(
    site_page: ReadOnlyAdmin, request: HttpRequest, run: TaskRun, now: datetime
) -> RunLine:
    """Word one run."""
    return RunLine(
        url=site_page.page_of(request, run),
        outcome=marks.outcome(run, now),
        scheduled=_moment(run.scheduled_for),
        started=_moment(run.started_at),
        duration=duration(run, now),
        attempt=str(run.attempt) if run.attempt else "",
        reason=reason(run),
        instance=str(run.instance or ""),
        error=first_line(run.error),
    )


def duration(run: TaskRun, now: datetime) -> str:
    """Show how long a run took, if it started and ended."""
    end = shown_end(run, now)
    if run.started_at is None or end is None:
        return ""
    return formats.span(end - run.started_at)


def reason(run: TaskRun) -> str:
    """Word a reason, with the number of occurrences where there are several."""
    if run.count == 1:
        return marks.reason(run)
    return gettext("%(reason)s (%(number)d occurrences)") % {
        "reason": marks.reason(run),
        "number": run.count,
    }


def act_line(act: TaskOverride) -> ActLine:
    """Word one act of a person."""
    return ActLine(
        at=_moment(act.created_at),
        kind=act.get_kind_display(),
        author=act.author or (gettext("the scheduler itself") if act.reason else ""),
        until=_moment(act.until),
        note=act.note,
    )


def _ahead(reading: Reading, now: datetime) -> list[Upcoming]:
    if reading.schedule is None:
        return []
    return list(islice(upcoming(reading.schedule, now), UPCOMING))


def upcoming(schedule: Schedule, now: datetime) -> Iterator[Upcoming]:
    """Word the occurrences that a schedule names, with what the clocks do to them."""
    before = now
    for instant in schedule.upcoming(now):
        yield Upcoming(
            local=formats.occurrence(instant, schedule.zone),
            viewer=formats.occurrence(instant, timezone.get_current_timezone()),
            utc=formats.utc(instant),
            distance=formats.relative(instant, now),
            note=_remark(schedule, before, instant),
        )
        before = instant


def _remark(schedule: Schedule, before: datetime, instant: datetime) -> str:
    """Return what the clocks do to an occurrence or to those just before it."""
    parts = [_clock_change(schedule, before, instant)]
    parts += [
        gettext("%(lost)s does not exist") % {"lost": f"{gap.civil:%Y-%m-%d %H:%M}"}
        for gap in schedule.lost_between(before, instant)
    ]
    if is_shown_twice(instant, schedule.zone):
        counts = gettext("happens twice, both count")
        once = gettext("happens twice, only the first counts")
        parts.append(counts if schedule.fold == "both" else once)
    return "; ".join(filter(None, parts))


def _clock_change(schedule: Schedule, before: datetime, instant: datetime) -> str:
    earlier, later = before.astimezone(schedule.zone), instant.astimezone(schedule.zone)
    if earlier.utcoffset() == later.utcoffset():
        return ""
    names = {"before": earlier.strftime("%z"), "after": later.strftime("%z")}
    return gettext("clock change: UTC%(before)s → UTC%(after)s") % names


def _cause(task: ScheduledTask, newest: list[TaskRun]) -> TaskRun | None:
    for run in newest:
        if run.outcome in _WENT_WRONG:
            return run
    older = runs_of(task).filter(outcome__in=_WENT_WRONG)
    return older.first()


def _acts(task: ScheduledTask) -> QuerySet[TaskOverride]:
    acts = TaskOverride.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    return acts.order_by("-id")


def _pause(task: ScheduledTask) -> TaskOverride | None:
    if task.paused_since is None:
        return None
    return _acts(task).filter(kind=TaskOverride.Kind.PAUSE, ended_at=None).first()


def _moment(value: datetime | None) -> SafeString | str:
    return "" if value is None else formats.moment(value)


def _all_runs(site_page: ReadOnlyAdmin, request: HttpRequest, task: ScheduledTask) -> str:
    if not site_page.shows(request, TaskRun):
        return ""
    query = urlencode({"task_name__exact": task.name})
    return f"{site_page.address(TaskRun, 'changelist')}?{query}"
