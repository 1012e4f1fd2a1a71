"""``cron list``: every registered task, what waits for help first, then what comes next."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from ...core.repeated_failures import is_suspicious
from ...core.status import Status
from ...formatting import format_count, format_instant, format_relative, iso8601
from ...models import ScheduledTask
from ...store.metrics_queries import judged, paces
from ...store.queries import Reading, ran_before_change, read, with_runs
from .instants import add_timezone, zone_of
from .scope import NOT_REGISTERED, Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal

_ROLES = {
    Status.BROKEN: "ERROR",
    Status.OVERDUE: "ERROR",
    Status.INTERRUPTED: "ERROR",
    Status.RETRYING: "WARNING",
    Status.RUNNING: "SUCCESS",
    Status.WAITS_FOR_A_WORKER: "NOTICE",
    Status.DISABLED: "NOTICE",
    Status.PAUSED: "NOTICE",
    Status.PAUSED_UNTIL: "NOTICE",
}
_HEADER = ("STATUS", "TASK", "NEXT RUN", "LAST RUN")


def _arguments(parser: ArgumentParser) -> None:
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, now = Scope.current(), context.clock.now()
    zone = zone_of(options["timezone"])
    initialized_at = scope.initialized_at()
    readings = sorted(
        (read(task, now) for task in with_runs(scope.tasks, now)), key=lambda each: each.order
    )
    if options["format"] == "json":
        context.terminal.data(
            {
                "now": iso8601(now),
                "deployment": scope.deployment,
                "initialized_at": iso8601(initialized_at),
                "tasks": [record(reading) for reading in readings],
            }
        )
    elif initialized_at is None:
        _say_nothing_registered(context.terminal, scope)
    else:
        _say(context.terminal, readings, zone, now)
        _say_too_slow(context.terminal, scope, readings, now)


def _say_nothing_registered(terminal: Terminal, scope: Scope) -> None:
    terminal.say(f"No scheduler of deployment {scope.deployment!r} has registered a task yet.")
    terminal.say(NOT_REGISTERED)
    terminal.say("`python manage.py cron plan` shows what that would be.")


def _say(terminal: Terminal, readings: Sequence[Reading], zone: ZoneInfo, now: datetime) -> None:
    if readings:
        terminal.table([_row(terminal, reading, zone, now) for reading in readings], _HEADER)
        terminal.say()
    found = Counter(reading.status for reading in readings)
    parts = [f"{found[status]} {_word(status)}" for status in Status if found[status]]
    terminal.say(f"{format_count(len(readings), 'task')}{': ' if parts else ''}{', '.join(parts)}.")
    for reading in readings:
        if reading.problem:
            terminal.say(f"{reading.task.name!r} is broken: {reading.problem}")
    for reading in readings:
        if is_suspicious(reading.task.interruptions):
            terminal.say(f"{reading.task.name!r} {_suspicion(reading.task)}")
    if found[Status.OVERDUE]:
        terminal.say("What is overdue waits for a scheduler: `python manage.py runscheduler`.")


def _say_too_slow(
    terminal: Terminal, scope: Scope, readings: Sequence[Reading], now: datetime
) -> None:
    found = paces(scope.using, scope.deployment)
    for reading in readings:
        for problem in judged(reading.task, found, now):
            terminal.say(f"{problem.task!r} is too slow: {problem.message}.")


def _row(terminal: Terminal, reading: Reading, zone: ZoneInfo, now: datetime) -> list[Cell]:
    task, status = reading.task, reading.status
    paint = terminal.paint(_ROLES[status]) if status in _ROLES else None
    return [
        Cell((f"{status.symbol} {_word(status)}",), paint),
        Cell((task.name or "", f"{task.cron}  {task.timezone}")),
        Cell(tuple(_ahead(reading, zone, now))),
        Cell(tuple(_behind(reading, now))),
    ]


def _ahead(reading: Reading, zone: ZoneInfo, now: datetime) -> list[str]:
    task, start, lines = reading.task, reading.next_start, []
    if start is None:
        lines.append(_never(reading))
    else:
        distance = format_relative(start.at, now)
        lines += [
            format_instant(start.at, zone),
            distance if start.reason == "due" else f"retry {distance}",
        ]
    if task.run_requested_at is not None:
        lines.append(f"asked for {format_relative(task.run_requested_at, now)}")
    return lines


def _never(reading: Reading) -> str:
    """Return why no start comes by itself."""
    if reading.problem:
        return "not while it is broken"
    if not reading.task.enabled:
        return "disabled in its declaration"
    if not reading.is_paused and reading.task.paused_since is None:
        return "never"
    retry = "" if reading.task.pending_retry_until is None else "retry "
    return f"{retry}when resumed"


def _behind(reading: Reading, now: datetime) -> list[str]:
    attempt, success = reading.task.last_attempt_at, reading.task.last_success_at
    if ran_before_change(reading.task):
        return ["not since its schedule changed"]
    if attempt is None:
        return ["never ran"]
    succeeded = "never" if success is None else format_relative(success, now)
    return [f"attempt {format_relative(attempt, now)}", f"success {succeeded}"]


def _suspicion(task: ScheduledTask) -> str:
    runs = format_count(task.interruptions, "run")
    return f"may end the process it runs in: its last {runs} ended with it."


def _word(status: Status) -> str:
    return status.replace("_", " ")


def record(reading: Reading) -> dict[str, Any]:
    """Return a task as JSON-native data."""
    task, start = reading.task, reading.next_start
    return {
        "name": task.name,
        "status": str(reading.status),
        "cron": task.cron,
        "timezone": task.timezone,
        "enabled": task.enabled,
        "registered_at": iso8601(task.registered_at),
        "next_run_at": None if start is None else iso8601(start.at),
        "next_run_reason": None if start is None else start.reason,
        "last_attempt_at": iso8601(task.last_attempt_at),
        "last_success_at": iso8601(task.last_success_at),
        "pending_retry_until": iso8601(task.pending_retry_until),
        "failures": task.failures,
        "interruptions": task.interruptions,
        "paused_since": iso8601(task.paused_since),
        "paused_until": iso8601(task.paused_until),
        "run_requested_at": iso8601(task.run_requested_at),
        "run_count": task.run_count,
        "problem": reading.problem,
    }


LIST = Subcommand(
    "list",
    "show every task: overdue first, then by next run",
    _arguments,
    _answer,
)
