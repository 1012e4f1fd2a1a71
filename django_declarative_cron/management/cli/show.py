"""``cron show``: why a task runs or not, its facts, and its newest runs."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation

from ...core.explain import Answer
from ...cron import describe
from ...formatting import format_duration, format_instant, format_relative
from ...models import TaskOverride, TaskRun
from ...store.queries import Reading, ran_before_change, read, tags_of
from ...store.sentences import masked
from .datetimes import add_timezone, zone_of
from .deployment_scope import Scope
from .explain import add_at, explanation_of, removal_report, sentence_of, why_of
from .history import render_runs, run_as_dict
from .list import task_as_dict, word
from .subcommand import Context, Options, Report, Subcommand, add_format, write
from .table import Cell, cells
from .terminal import Terminal

_RUNS = 5
_NEXT = 3

Fact = tuple[str, str]


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    add_at(parser)
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    write(context, options, _report(context, options))


def _report(context: Context, options: Options) -> Report:
    if options["at"] is not None:
        return explanation_of(context, options)
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    removed = removal_report(scope, options, zone, now)
    if removed is not None:
        return removed
    scope.require_registered([options["name"]])
    reading = read(scope.tasks.get(name=options["name"]), now)
    task = reading.task
    runs = scope.runs.filter(task_name=task.name).select_related("instance")
    newest = list(runs.defer("traceback", "instance__lapses").order_by("-id")[:_RUNS])
    return TaskReport(reading, why_of(context, scope, task, now), newest, zone, now)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Everything about one task."""

    reading: Reading
    why: Answer
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
        yield "timeout", format_duration(declared["timeout"])
    if "overlap_policy" in declared:
        yield "overlap", str(declared["overlap_policy"])
    if "spread" in declared:
        yield "spread", f"by less than {format_duration(declared['spread'])}"
    yield "catch-up", _catch_up(declared.get("catch_up_window"))
    if "exclude_calendars" in declared:
        yield "not on days of", ", ".join(map(str, declared["exclude_calendars"]))
    if "pause_after_failures" in declared:
        yield "paused after", f"{declared['pause_after_failures']:,} failures in a row"


def _catch_up(seconds: float | None) -> str:
    if seconds is None:
        return "missed occurrences, however late"
    return f"occurrences at most {format_duration(seconds)} late" if seconds else "never"


SHOW = Subcommand("show", "show everything about one task", _arguments, _answer)
