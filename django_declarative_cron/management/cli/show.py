"""``cron show`` and ``cron explain``: one task, and why it does or does not run."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation

from ...core.explain import Answer, Cause, Row
from ...cron import describe
from ...formatting import format_duration, format_instant, format_relative
from ...models import ScheduledTask, TaskOverride, TaskRun
from ...store.queries import (
    Reading,
    explain,
    newest_runs,
    next_start_of,
    ran_before_change,
    read,
    read_schedule,
    tags_of,
)
from ...store.sentences import masked, sentence
from .deployment_scope import Scope, warn_of_absence
from .history import render_runs, run_as_dict
from .list import task_as_dict, word
from .subcommand import (
    Context,
    Options,
    Report,
    Subcommand,
    add_format,
    add_timezone,
    read_instant,
    write,
    zone_of,
)
from .terminal import Cell, Terminal, cells

_RUNS = 5
_NEXT = 3
_BAD = (Cause.BROKEN, Cause.NO_LEADER, Cause.LATE)

Fact = tuple[str, str]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the task")
    parser.add_argument(
        "--at",
        metavar="ISO",
        help=(
            "the instant in question, such as 2030-01-31T07:00; as the clocks of the task's zone "
            "show it, unless it has an offset. Without it: why it does or does not run now"
        ),
    )
    add_timezone(parser)
    add_format(parser)


def _show(context: Context, options: Options) -> None:
    write(context, options, _report(context, options, is_whole=options["at"] is None))


def _explain(context: Context, options: Options) -> None:
    write(context, options, _report(context, options, is_whole=False))


def _report(context: Context, options: Options, *, is_whole: bool) -> Report:
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    name = options["name"]
    removal = scope.removal_of(name)
    if removal is not None:
        at = _instant(options, zone)
        why = Answer(Cause.REMOVED, at or now, until=removal.at)
        # The newest runs, or those around the instant.
        runs = newest_runs(scope.using, scope.deployment, name, _RUNS, at)
        return RemovedTask(name, why, list(runs), at, zone, now)
    scope.require_registered([name])
    task = scope.tasks.get(name=name)
    schedule = read_schedule(task)[0]
    at = _instant(options, zone if schedule is None else schedule.zone)
    absence = scope.absence(context.clock)
    why = explain(task, now, at, is_attended=not absence)
    if not is_whole:
        return Explanation(task, why, absence, at, zone, now)
    newest = scope.runs.filter(task_name=name).select_related("instance").order_by("-id")
    shown = list(newest.defer("traceback", "instance__lapses")[:_RUNS])
    return TaskReport(read(task, now), why, absence, shown, zone, now)


def _instant(options: Options, zone: ZoneInfo) -> datetime | None:
    return None if options["at"] is None else read_instant("--at", options["at"], zone)


def sentence_of(why: Answer, zone: ZoneInfo) -> str:
    """Return an answer as a sentence; commands are in English."""
    with translation.override(None):
        return sentence(why, zone)


@dataclass(frozen=True, slots=True)
class RemovedTask:
    """A task that is not declared any more."""

    name: str
    why: Answer
    runs: list[TaskRun]
    at: datetime | None
    zone: ZoneInfo
    now: datetime

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "now": self.now,
            "at": self.at,
            "cause": self.why.cause,
            "explanation": sentence_of(self.why, self.zone),
            "removed_at": self.why.until,
            "runs": [run_as_dict(run, self.now) for run in self.runs],
        }

    def render(self, terminal: Terminal) -> None:
        terminal.say(sentence_of(self.why, self.zone))
        if self.runs:
            terminal.say()
            render_runs(terminal, self.runs, self.zone, self.now, named=False)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a registered task did or did not run."""

    task: ScheduledTask
    why: Answer
    absence: str
    """The warning that no scheduler is running, empty where one is."""
    at: datetime | None
    zone: ZoneInfo
    now: datetime

    def as_dict(self) -> dict[str, Any]:
        why, following = self.why, next_start_of(self.task)
        return {
            "name": self.task.name,
            "now": self.now,
            "at": self.at,
            "cause": why.cause,
            "explanation": sentence_of(why, self.zone),
            "instant": why.at,
            "until": why.until,
            "previous": why.previous,
            "paused_by": None if why.pause is None else why.pause.author,
            "note": None if why.pause is None else why.pause.note,
            "run": None if why.row is None else _run_as_dict(why.row),
            "next_run_at": None if following is None else following.at,
        }

    def render(self, terminal: Terminal) -> None:
        why, task = self.why, self.task
        warn_of_absence(terminal, self.absence)
        terminal.say(sentence_of(why, self.zone), "ERROR" if why.cause in _BAD else "")
        if why.row is not None and why.row.error:
            terminal.say(why.row.error)
        if read_schedule(task)[0] is not None:
            terminal.say(f"{task.name}: {task.cron}  {task.timezone}")
        following = next_start_of(task)
        if following is not None and following.at > self.now and why.until != following.at:
            terminal.say(f"Next run: {format_instant(following.at, self.zone)}")


def _run_as_dict(row: Row) -> dict[str, Any]:
    return {
        "id": row.key,
        "scheduled_for": row.scheduled_for,
        "started_at": row.started_at,
        "finished_at": row.gone_since or row.finished_at,
        "outcome": row.outcome if row.gone_since is None else "interrupted",
        "reason": row.reason,
        "attempt": row.attempt,
        "error": row.error,
    }


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Everything about one task."""

    reading: Reading
    why: Answer
    absence: str
    """The warning that no scheduler is running, empty where one is."""
    runs: list[TaskRun]
    zone: ZoneInfo
    now: datetime

    def as_dict(self) -> dict[str, Any]:
        task, policy = self.reading.task, self.reading.retry
        return {
            **task_as_dict(self.reading),
            "now": self.now,
            "description": task.description,
            "callback": task.callback,
            "retry_delay_seconds": task.retry_delay,
            "retry": None if policy is None else policy.as_data(),
            "why": sentence_of(self.why, self.zone),
            "next": _following(self.reading),
            "runs": [run_as_dict(run, self.now) for run in self.runs],
        }

    def render(self, terminal: Terminal) -> None:
        task = self.reading.task
        warn_of_absence(terminal, self.absence)
        terminal.say(task.name or "", "MIGRATE_HEADING")
        if task.description:
            terminal.say(task.description)
        terminal.say(sentence_of(self.why, self.zone))
        terminal.say()
        terminal.table(list(_rows(self._facts(), is_grouped=terminal.is_interactive)))
        if self.runs:
            terminal.say()
            render_runs(terminal, self.runs, self.zone, self.now, named=False)

    def _facts(self) -> Iterator[Fact]:
        reading, task = self.reading, self.reading.task
        yield "status", f"{reading.status.symbol} {word(reading.status)}"
        yield "schedule", f"{task.cron}  {task.timezone}"
        if reading.schedule is not None:
            yield "schedule", describe(reading.schedule.expression)
        yield "callback", task.callback
        if task.registered_by:
            yield "registered by", task.registered_by
        declared = task.declaration if isinstance(task.declaration, dict) else {}
        if declared.get("args"):
            yield "arguments", json.dumps(masked(declared["args"]), ensure_ascii=False)
        if tags_of(task):
            yield "tags", ", ".join(tags_of(task))
        yield from _declared_facts(declared)
        yield from self._retry_facts()
        yield from self._instants()
        if ran_before_change(task):
            yield "last attempt", "not since its schedule changed"
        yield "runs so far", f"{task.run_count:,}, {task.failures:,} failures in a row"
        yield from self._newest_action()

    def _retry_facts(self) -> Iterator[Fact]:
        task, policy = self.reading.task, self.reading.retry
        if task.retry_delay is not None:
            yield "retry delay", format_duration(task.retry_delay)
        elif policy is not None:
            yield "retry", policy.in_words()
        if self.reading.next_start is not None and self.reading.next_start.reason == "retry":
            most = "" if policy is None else f" of {policy.max_attempts}"
            yield "next attempt", f"{task.attempt + 1}{most}"

    def _instants(self) -> Iterator[Fact]:
        """Yield instants with their distances, which are aligned below each other."""
        task, start = self.reading.task, self.reading.next_start
        dated = [
            *(("next", each) for each in _following(self.reading)),
            ("last attempt", task.last_attempt_at),
            ("last success", task.last_success_at),
            ("retry", start.at if start is not None and start.reason == "retry" else None),
            ("registered", task.registered_at),
        ]
        shown = [
            (label, at, format_instant(at, self.zone)) for label, at in dated if at is not None
        ]
        width = max((len(text) for _, _, text in shown), default=0)
        for label, at, text in shown:
            yield label, f"{text.ljust(width)}  {format_relative(at, self.now)}"

    def _newest_action(self) -> Iterator[Fact]:
        task = self.reading.task
        actions = TaskOverride.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
        for each in actions.order_by("-id")[:1]:
            author = each.author or ("the scheduler itself" if each.reason else "")
            note = f": {each.note}" if each.note else ""
            with translation.override(None):
                yield "last action", f"{each.get_kind_display()} by {author}{note}"


def _rows(facts: Iterable[Fact], *, is_grouped: bool) -> Iterator[list[Cell]]:
    """Yield a row for each fact, which has its label unless the row above has it."""
    above = ""
    for label, text in facts:
        yield cells("" if is_grouped and label == above else label, text)
        above = label


def _following(reading: Reading) -> list[datetime]:
    schedule, first = reading.schedule, reading.task.next_run_at
    if schedule is None or first is None:
        return []
    return [first, *islice(schedule.upcoming(first), _NEXT - 1)]


def _declared_facts(declared: dict[str, Any]) -> Iterator[Fact]:
    if "runner" in declared:
        atomic = ", in one transaction" if declared.get("atomic") else ""
        yield "runner", f"{declared['runner']}{atomic}"
    if declared.get("timeout") is not None:
        yield "timeout", _readable(format_duration, declared["timeout"])
    if "overlap_policy" in declared:
        yield "overlap", str(declared["overlap_policy"])
    if "spread" in declared:
        yield "spread", _readable(_spread, declared["spread"])
    yield "catch-up", _readable(_catch_up, declared.get("catch_up_window"))
    if "exclude_calendars" in declared:
        yield "not on days of", _readable(", ".join, declared["exclude_calendars"])
    if "pause_after_failures" in declared:
        most = declared["pause_after_failures"]
        yield "paused after", _readable("{:,} failures in a row".format, most)


def _readable(form: Callable[[Any], str], value: Any) -> str:
    """Return a stored value in words; in a row that was edited by hand it may be anything."""
    try:
        return form(value)
    except (TypeError, ValueError, OverflowError):
        return "cannot be read"


def _spread(seconds: float) -> str:
    return f"by less than {format_duration(seconds)}"


def _catch_up(seconds: float | None) -> str:
    if seconds is None:
        return "missed occurrences, however late"
    return f"occurrences at most {format_duration(seconds)} late" if seconds else "never"


SHOW = Subcommand("show", "show everything about one task", _arguments, _show)
EXPLAIN = Subcommand("explain", "explain why a task did or does not run", _arguments, _explain)
