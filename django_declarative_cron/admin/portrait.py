"""One task in pictures and in two sentences: why it does or does not run, what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from ..core.explain import Cause
from ..models import Outcome, ScheduledTask, TaskRun
from ..store.overview import Coverage, Unserved, coverage, days_of
from ..store.queries import Reading, explain, read_timeout
from ..store.sentences import Times, sentence
from ..store.status import shown_end, shown_outcome
from . import formats, marks
from .pictures import charts

_SHOWN = 40
_REASONS_SHOWN = 5
_URGENT = (Cause.BROKEN, Cause.NO_LEADER, Cause.LATE)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, what it says in words, and the same as a table.

    Args:
        key: names it in the page.
        title: above it.
        picture: as SVG.
        summary: in words.
        header: of the table.
        rows: of the table.
    """

    key: str
    title: str
    picture: SafeString
    summary: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at the newest occurrence.

    Args:
        number: from 1.
        outcome: how it ended.
        started: when it began.
        waited: since the end of the attempt before.
        error: the first line.
    """

    number: int
    outcome: SafeString
    started: SafeString
    waited: str
    error: str


def of(
    reading: Reading, runs: Sequence[TaskRun], now: datetime, *, is_attended: bool
) -> dict[str, Any]:
    """Collect what the template shows."""
    task, schedule = reading.task, reading.schedule
    zone = timezone.get_current_timezone()
    answer = explain(task, now, is_attended=is_attended)
    found = None if schedule is None else coverage(task, schedule, now)
    return {
        "why": sentence(answer, zone),
        "urgent": answer.cause in _URGENT,
        "coverage": "" if found is None else worded_coverage(found, Times(zone)),
        "charts": [
            chart
            for chart in (
                _durations(runs, now, read_timeout(task)),
                _lags(runs, now),
                _outcomes(task, now),
            )
            if chart is not None
        ],
        "attempts": _attempts(task, runs, now),
    }


def worded_coverage(found: Coverage, times: Times) -> str:
    """Say in one sentence what became of a task's occurrences."""
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
        "outcome": marks.outcome_word(each.outcome),
        "reason": marks.REASON_WORDS.get(each.reason, each.reason),
        "when": times(each.first),
    }
    if each.number > 1:
        words["when"] = f"{times(each.first)} – {times(each.last)}"
    return gettext("%(number)d %(outcome)s (%(reason)s, %(when)s)") % words


def _ended(runs: Sequence[TaskRun], now: datetime) -> list[tuple[TaskRun, datetime, datetime]]:
    """Return the newest runs that started and ended, oldest first."""
    found = [
        (run, run.started_at, end)
        for run in runs
        if run.started_at is not None and (end := shown_end(run, now)) is not None
    ]
    return found[:_SHOWN][::-1]


def _durations(runs: Sequence[TaskRun], now: datetime, limit: timedelta | None) -> Chart | None:
    ended = _ended(runs, now)
    if not ended:
        return None
    taken = [finished - started for _run, started, finished in ended]
    usual = sorted(taken)[len(taken) // 2]
    text = gettext("Typically %(usual)s, at most %(most)s.")
    summary = text % {"usual": formats.span(usual) or "0 s", "most": formats.span(max(taken))}
    columns = [
        charts.Column(length.total_seconds(), shown_outcome(run, now), formats.span(length))
        for (run, _started, _finished), length in zip(ended, taken, strict=True)
    ]
    levels = [_level(usual, "level", gettext("median: %(length)s"))]
    if limit is not None:
        summary += " " + gettext("Ended after %(limit)s.") % {"limit": formats.span(limit)}
        levels.append(_level(limit, "limit", gettext("timeout: %(length)s")))
    picture = charts.columns(columns, summary, levels)
    rows = [
        (
            formats.moment(started),
            marks.outcome_word(shown_outcome(run, now)),
            formats.span(finished - started),
        )
        for run, started, finished in reversed(ended)
    ]
    header = (gettext("Started"), gettext("Outcome"), gettext("Duration"))
    return Chart("duration", gettext("Duration"), picture, summary, header, rows)


def _level(length: timedelta, kind: str, title: str) -> charts.Level:
    return charts.Level(length.total_seconds(), kind, title % {"length": formats.span(length)})


def _lags(runs: Sequence[TaskRun], now: datetime) -> Chart | None:
    ended = [each for each in _ended(runs, now) if each[0].reason in ("due", "boot")]
    if not ended:
        return None
    lags = [max(started - run.scheduled_for, timedelta(0)) for run, started, _finished in ended]
    usual = sorted(lags)[len(lags) // 2]
    text = gettext("Starts typically %(usual)s after they were due, at most %(most)s.")
    summary = text % {"usual": formats.span(usual), "most": formats.span(max(lags))}
    columns = [charts.Column(lag.total_seconds(), "load", formats.span(lag)) for lag in lags]
    rows = [
        (formats.moment(run.scheduled_for), formats.span(lag))
        for (run, _started, _finished), lag in zip(reversed(ended), reversed(lags), strict=True)
    ]
    header = (gettext("Scheduled for"), gettext("Late by"))
    picture = charts.columns(columns, summary)
    return Chart("lag", gettext("Lag"), picture, summary, header, rows)


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
        for day, found in reversed(days.items())
        if found
    ]
    header = (gettext("Day"), gettext("Succeeded"), gettext("Others"))
    picture = charts.stacked(list(days.values()), summary)
    return Chart("outcomes", gettext("Outcomes by day"), picture, summary, header, rows)


def _attempts(task: ScheduledTask, runs: Sequence[TaskRun], now: datetime) -> list[Attempt]:
    """Return the attempts at the newest occurrence, where there is more than one or will be."""
    of_newest = [
        run
        for run in runs
        if run.scheduled_for == task.occurrence_at and run.started_at is not None
    ]
    if len(of_newest) < 2 and task.pending_retry_until is None:
        return []
    return attempts_of(of_newest[::-1], now)


def attempts_of(runs: Sequence[TaskRun], now: datetime) -> list[Attempt]:
    """Word the attempts at one occurrence, with the delays between them."""
    lines = []
    before: datetime | None = None
    for run in runs:
        if run.started_at is None:
            continue
        waited = "" if before is None else formats.span(max(run.started_at - before, timedelta(0)))
        error = run.error.strip().partition("\n")[0][:160]
        mark, started = marks.outcome(run, now), formats.moment(run.started_at)
        lines.append(Attempt(run.attempt, mark, started, waited, error))
        before = shown_end(run, now) or before
    return lines
