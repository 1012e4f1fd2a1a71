"""``cron show``: everything about one task."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby, islice
from operator import itemgetter
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation

from ... import conf
from ...cron import describe
from ...formatting import format_duration, format_instant, format_relative, iso8601
from ...models import TaskOverride, TaskRun
from ...store.queries import Reading, explain, ran_before_change, read, read_retry
from ...store.sentences import masked
from ...store.status import is_attended, patience
from .explaining import worded
from .instants import add_timezone, zone_of
from .listing import record as listed
from .past import record, say_runs
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell

_RUNS = 5
_NEXT = 3


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    scope.require_registered([options["name"]])
    reading = read(scope.tasks.get(name=options["name"]), now)
    task = reading.task
    runs = TaskRun.objects.using(scope.using).filter(scheduler=task.scheduler_id)
    runs = runs.filter(task_name=task.name).select_related("instance")
    newest = list(runs.defer("traceback", "instance__lapses").order_by("-id")[:_RUNS])
    attended = is_attended(
        scope.using,
        scope.deployment,
        patience(conf.options().LEASE),
        context.clock.database_time(),
    )
    answer = explain(task, now, is_attended=attended)
    why = worded(answer, zone)
    if options["format"] == "json":
        context.terminal.data(_record(reading, why, newest, now))
        return
    context.terminal.say(task.name or "", "MIGRATE_HEADING")
    if task.description:
        context.terminal.say(task.description)
    context.terminal.say(why)
    context.terminal.say()
    rows = [[Cell((label,)), Cell(tuple(lines))] for label, lines in _facts(reading, zone, now)]
    context.terminal.table(rows)
    if newest:
        context.terminal.say()
        say_runs(context.terminal, newest, zone, now, named=False)


def _facts(reading: Reading, zone: ZoneInfo, now: datetime) -> Iterator[tuple[str, list[str]]]:
    task, schedule = reading.task, reading.schedule
    yield "status", [f"{reading.status.symbol} {reading.status.replace('_', ' ')}"]
    words = [] if schedule is None else [describe(schedule.expression)]
    yield "schedule", [f"{task.cron}  {task.timezone}", *words]
    yield "runs", [task.callback]
    if task.registered_by:
        yield "registered by", [task.registered_by]
    declared = task.declaration if isinstance(task.declaration, dict) else {}
    if declared.get("args"):
        yield "arguments", [json.dumps(masked(declared["args"]), ensure_ascii=False)]
    yield from _manner(declared)
    policy = read_retry(task)
    if task.retry_delay is not None:
        yield "retry delay", [str(task.retry_delay)]
    elif policy is not None:
        yield "retry", [policy.in_words()]
    if reading.next_start is not None and reading.next_start.reason == "retry":
        most = "" if policy is None else f" of {policy.max_attempts}"
        yield "to come", [f"attempt {task.attempt + 1}{most}"]
    for label, lines in groupby(_instants(reading, zone, now), key=itemgetter(0)):
        yield label, [line for _, line in lines]
    if ran_before_change(task):
        yield "last attempt", ["not since its schedule changed"]
    yield "runs so far", [f"{task.run_count:,}, {task.failures:,} failures in a row"]
    act = TaskOverride.objects.filter(scheduler=task.scheduler_id, task_name=task.name)
    for each in act.order_by("-id")[:1]:
        note = f": {each.note}" if each.note else ""
        with translation.override(None):
            yield "newest act", [f"{each.get_kind_display()} by {_author(each)}{note}"]


def _author(act: TaskOverride) -> str:
    return act.author or ("the scheduler itself" if act.reason else "")


def _following(reading: Reading) -> list[datetime]:
    schedule, first = reading.schedule, reading.task.next_run_at
    if schedule is None or first is None:
        return []
    return [first, *islice(schedule.upcoming(first), _NEXT - 1)]


def _instants(reading: Reading, zone: ZoneInfo, now: datetime) -> Iterator[tuple[str, str]]:
    """Let the distances stand below each other, whether an instant has seconds or not."""
    task, start = reading.task, reading.next_start
    dated = [
        *(("next", each) for each in _following(reading)),
        ("last attempt", task.last_attempt_at),
        ("last success", task.last_success_at),
        ("retry", start.at if start is not None and start.reason == "retry" else None),
        ("registered", task.registered_at),
    ]
    told = [(label, each, format_instant(each, zone)) for label, each in dated if each is not None]
    width = max((len(text) for _, _, text in told), default=0)
    for label, instant, text in told:
        yield label, f"{text.ljust(width)}  {format_relative(instant, now)}"


def _manner(declared: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Say where and how long a run may take place, and what becomes of an occurrence in it."""
    if "runner" in declared:
        atomic = ", in one transaction" if declared.get("atomic") else ""
        yield "runner", [f"{declared['runner']}{atomic}"]
    if declared.get("timeout") is not None:
        yield "timeout", [f"{declared['timeout']:g} s"]
    if "overlap_policy" in declared:
        yield "overlap", [str(declared["overlap_policy"])]
    if "spread" in declared:
        yield "spread", [f"by less than {format_duration(declared['spread'])}"]
    yield "catch-up", [_window(declared.get("catch_up_window"))]
    if "exclude_calendars" in declared:
        yield "not on days of", [", ".join(map(str, declared["exclude_calendars"]))]
    if "pause_after_failures" in declared:
        yield "paused after", [f"{declared['pause_after_failures']:,} failures in a row"]


def _window(seconds: float | None) -> str:
    """Return how late an occurrence may start; whoever did not say it is not to guess."""
    if seconds is None:
        return "of what was missed, however late"
    return f"of what is {format_duration(seconds)} late at most" if seconds else "never"


def _record(reading: Reading, why: str, runs: list[TaskRun], now: datetime) -> dict[str, Any]:
    task, delay = reading.task, reading.task.retry_delay
    policy = read_retry(task)
    return {
        **listed(reading),
        "now": iso8601(now),
        "description": task.description,
        "callback": task.callback,
        "retry_delay_seconds": None if delay is None else delay.total_seconds(),
        "retry": None if policy is None else policy.as_data(),
        "why": why,
        "next": [iso8601(each) for each in _following(reading)],
        "runs": [record(run, now) for run in runs],
    }


SHOW = Subcommand("show", "show everything about one task", _arguments, _answer)
