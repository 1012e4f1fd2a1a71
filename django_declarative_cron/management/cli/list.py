"""``cron list``: one line for every registered task."""

from __future__ import annotations

import threading
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandError

from ...core.declarations.values import nearest
from ...core.repeated_failures import is_suspicious
from ...core.status import Status
from ...formatting import format_count, format_instant, format_relative
from ...models import ScheduledTask
from ...store.overview import judged, paces
from ...store.queries import Reading, ran_before_change, read, tagged, tags_of, with_runs
from .deployment_scope import NOT_REGISTERED, Scope, warn_of_absence
from .subcommand import (
    Context,
    Options,
    Subcommand,
    add_choice,
    add_format,
    add_timezone,
    write,
    zone_of,
)
from .terminal import Cell, Terminal

_ROLES = {
    Status.BROKEN: "ERROR",
    Status.OVERDUE: "ERROR",
    Status.INTERRUPTED: "ERROR",
    Status.RETRYING: "WARNING",
    Status.RUNNING: "SUCCESS",
    Status.QUEUED: "NOTICE",
    Status.DISABLED: "NOTICE",
    Status.PAUSED: "NOTICE",
    Status.PAUSED_UNTIL: "NOTICE",
}
_HEADER = ("STATUS", "TASK", "SCHEDULE", "NEXT RUN", "LAST RUN")
_REFRESH_INTERVAL = 2.0


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "patterns",
        nargs="*",
        metavar="PATTERN",
        help='only tasks with names that match: "report-*"',
    )
    add_choice(parser, "--status", Status, "only tasks of this status", is_repeatable=True)
    parser.add_argument("--tag", metavar="TAG", help="only tasks with this tag")
    parser.add_argument(
        "--wide", action="store_true", help="whole lines on a terminal, as in a pipe"
    )
    parser.add_argument("--watch", action="store_true", help="refresh every 2 s, until Ctrl-C")
    add_timezone(parser)
    add_format(parser)


def word(status: Status) -> str:
    return status.replace("_", " ")


def _answer(context: Context, options: Options) -> None:
    zone = zone_of(options["timezone"])
    if not options["watch"]:
        write(context, options, _report(context, options, zone))
        return
    try:
        while True:
            report = _report(context, options, zone)
            context.terminal.clear()
            write(context, options, report)
            context.clock.wait(threading.Event(), _REFRESH_INTERVAL)
    except KeyboardInterrupt:
        return


def _report(context: Context, options: Options, zone: ZoneInfo) -> TaskList:
    scope, now = Scope.current(), context.clock.now()
    initialized_at = scope.initialized_at()
    tasks = scope.tasks if options["tag"] is None else tagged(scope.tasks, options["tag"])
    readings = [read(task, now) for task in with_runs(tasks, now)]
    if initialized_at is not None:
        _refuse_unknown(scope, options, readings)
    kept = [reading for reading in readings if _is_asked_for(reading, options)]
    absence, slow = "", []
    if initialized_at is not None and options["format"] != "json":
        absence = scope.absence(context.clock)
        found = paces(scope.using, scope.deployment)
        slow = [
            f"{problem.task!r} is too slow: {problem.message}."
            for reading in kept
            for problem in judged(reading.task, found, now)
        ]
    kept.sort(key=lambda reading: reading.order)
    return TaskList(scope, initialized_at, kept, absence, slow, zone, now, options["wide"])


def _refuse_unknown(scope: Scope, options: Options, readings: list[Reading]) -> None:
    """Raise ``CommandError``, with exit code 1, for a tag or pattern that no task has."""
    if options["tag"] is not None and not readings:
        raise scope.unknown_tag(options["tag"])
    names = [reading.task.name or "" for reading in readings]
    for pattern in options["patterns"]:
        if names and not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern, names)
            hint = f"Did you mean {near!r}?" if near else "Patterns are such as 'report-*'."
            raise CommandError(f"No task is called {pattern!r}. {hint}")


def _is_asked_for(reading: Reading, options: Options) -> bool:
    name, patterns, statuses = reading.task.name or "", options["patterns"], options["status"]
    is_named = not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    return is_named and (not statuses or reading.status.replace("_", "-") in statuses)


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks of a deployment, most urgent first."""

    scope: Scope
    initialized_at: datetime | None
    readings: list[Reading]
    absence: str
    """The warning that no scheduler is running, empty where one is or nobody reads it."""
    slow: list[str]
    zone: ZoneInfo
    now: datetime
    is_wide: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "now": self.now,
            "deployment": self.scope.deployment,
            "initialized_at": self.initialized_at,
            "tasks": [task_as_dict(reading) for reading in self.readings],
        }

    def render(self, terminal: Terminal) -> None:
        if self.initialized_at is None:
            deployment = self.scope.deployment
            terminal.say(f"No scheduler of deployment {deployment!r} has registered a task yet.")
            terminal.say(NOT_REGISTERED)
            terminal.say("`python manage.py cron plan` shows what that would be.")
            return
        warn_of_absence(terminal, self.absence)
        terminal.remark(self._summary())
        terminal.remark()
        is_narrow = terminal.is_interactive and not self.is_wide
        if self.readings:
            rows = [self._row(terminal, reading, is_narrow) for reading in self.readings]
            terminal.table(rows, _HEADER, "cut" if is_narrow else "whole")
        remarks = list(self._remarks())
        if remarks:
            terminal.remark()
        for text in remarks:
            terminal.remark(text)

    def _row(self, terminal: Terminal, reading: Reading, is_narrow: bool) -> list[Cell]:
        """Return the cells of a task; a narrow terminal has no room for what is usual."""
        task, status = reading.task, reading.status
        is_usual = is_narrow and task.timezone == self.zone.key
        return [
            Cell((f"{status.symbol} {word(status)}",), terminal.paint(_ROLES.get(status))),
            Cell((task.name or "",)),
            Cell((task.cron if is_usual else f"{task.cron} {task.timezone}",)),
            Cell(tuple(self._next_run(reading, is_narrow))),
            Cell((_last_run(task, self.now),)),
        ]

    def _next_run(self, reading: Reading, is_narrow: bool) -> list[str]:
        start, texts = reading.next_start, []
        if reading.task.run_requested_at is not None:
            texts.append(f"asked for {format_relative(reading.task.run_requested_at, self.now)}")
        if start is None:
            return [*texts, _why_never(reading)]
        distance = format_relative(start.at, self.now)
        if is_narrow:
            return [*texts, distance]
        distance = distance if start.reason == "due" else f"retry {distance}"
        return [*texts, f"{distance} ({format_instant(start.at, self.zone)})"]

    def _summary(self) -> str:
        found = Counter(word(reading.status) for reading in self.readings)
        number = format_count(len(self.readings), "task")
        parts = [f"{count} {status}" for status, count in found.items()]
        return f"{number}{': ' if parts else ''}{', '.join(parts)}."

    def _remarks(self) -> Iterator[str]:
        for reading in self.readings:
            if reading.problem:
                yield f"{reading.task.name!r} is broken: {reading.problem}"
        for reading in self.readings:
            if is_suspicious(reading.task.interruptions):
                runs = format_count(reading.task.interruptions, "run")
                text = f"may end the process it runs in: its last {runs} ended with it."
                yield f"{reading.task.name!r} {text}"
        yield from self.slow


def _why_never(reading: Reading) -> str:
    """Return why no start comes by itself."""
    if reading.problem:
        return "when repaired"
    if not reading.task.enabled:
        return "when enabled"
    if not reading.is_paused and reading.task.paused_since is None:
        return "never"
    retry = "" if reading.task.pending_retry_until is None else "retry "
    return f"{retry}when resumed"


def _last_run(task: ScheduledTask, now: datetime) -> str:
    attempt, success = task.last_attempt_at, task.last_success_at
    if ran_before_change(task):
        return "not since its schedule changed"
    if attempt is None:
        return "never ran"
    if success is not None and success >= attempt:
        return f"succeeded {format_relative(success, now)}"
    if task.failures:
        times = f", {task.failures:,} in a row" if task.failures > 1 else ""
        return f"failed {format_relative(attempt, now)}{times}"
    return f"started {format_relative(attempt, now)}"


def task_as_dict(reading: Reading) -> dict[str, Any]:
    task, start = reading.task, reading.next_start
    return {
        "name": task.name,
        "status": reading.status,
        "cron": task.cron,
        "timezone": task.timezone,
        "enabled": task.enabled,
        "registered_at": task.registered_at,
        "next_run_at": None if start is None else start.at,
        "next_run_reason": None if start is None else start.reason,
        "last_attempt_at": task.last_attempt_at,
        "last_success_at": task.last_success_at,
        "pending_retry_until": task.pending_retry_until,
        "failures": task.failures,
        "interruptions": task.interruptions,
        "paused_since": task.paused_since,
        "paused_until": task.paused_until,
        "run_requested_at": task.run_requested_at,
        "run_count": task.run_count,
        "problem": reading.problem,
        "tags": tags_of(task),
    }


LIST = Subcommand("list", "show every task: overdue first, then by next run", _arguments, _answer)
