"""``cron history``: what ran, what did not, and why; the newest first."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from django.db.models import QuerySet

from ...core.declarations.values import flaw_of_text
from ...formatting import format_civil, format_count, format_duration, format_relative, iso8601
from ...models import Outcome, TaskRun
from ...store.sentences import masked
from ...store.status import shown_end, shown_outcome
from .instants import add_timezone, read_instant, zone_of
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format
from .table import Cell
from .terminal import Terminal
from .upcoming import amount

ROLES = {
    Outcome.SUCCEEDED: "SUCCESS",
    Outcome.RUNNING: "NOTICE",
    Outcome.FAILED: "ERROR",
    Outcome.TIMED_OUT: "ERROR",
    Outcome.INTERRUPTED: "WARNING",
}
_ERROR_SHOWN = 200


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="of a task; all unless given")
    parser.add_argument(
        "--outcome", choices=[str(each) for each in Outcome.values], help="only what ended so"
    )
    parser.add_argument(
        "--since", metavar="ISO", help="only what was due or started since then; in TIME_ZONE"
    )
    parser.add_argument("-n", dest="count", type=amount, default=20, help="how many (default: 20)")
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    runs = list(_runs(scope, options)[: options["count"]])
    if options["format"] == "json":
        context.terminal.data({"now": iso8601(now), "runs": [record(run, now) for run in runs]})
        return
    if runs:
        say_runs(context.terminal, runs, zone, now, named=options["name"] is None)
        context.terminal.say()
    limit = " or more" if len(runs) == options["count"] else ""
    context.terminal.say(f"{format_count(len(runs), 'row')}{limit}; times in {zone}.")


def _runs(scope: Scope, options: Options) -> QuerySet[TaskRun]:
    runs = TaskRun.objects.using(scope.using).filter(scheduler__deployment=scope.deployment)
    name = options["name"]
    if name is not None:
        # The history of a name outlives its row.
        is_name = flaw_of_text(name) is None
        runs = runs.filter(task_name=name) if is_name else runs.none()
        if not runs.exists():
            scope.require_registered([name])
    if options["outcome"] is not None:
        runs = runs.filter(outcome=options["outcome"])
    if options["since"] is not None:
        runs = runs.filter(scheduled_for__gte=read_instant("--since", options["since"]))
    # A table shows none of the long texts.
    long = ("traceback",) if options["format"] == "json" else ("traceback", "log", "output")
    return runs.select_related("instance").defer(*long, "instance__lapses").order_by("-id")


def say_runs(
    terminal: Terminal, runs: Sequence[TaskRun], zone: tzinfo, now: datetime, *, named: bool
) -> None:
    """Write a table of runs."""
    header = ("OUTCOME", *(("TASK",) if named else ()), "SCHEDULED", "STARTED", "TOOK", "WHY")
    rows = [_row(terminal, run, zone, now, named=named) for run in runs]
    terminal.table(rows, header)


def _row(
    terminal: Terminal, run: TaskRun, zone: tzinfo, now: datetime, *, named: bool
) -> list[Cell]:
    outcome = shown_outcome(run, now)
    role = ROLES.get(Outcome(outcome)) if outcome in Outcome else None
    scheduled = [format_civil(run.scheduled_for, zone)]
    if run.count > 1:
        scheduled.append(f"and {run.count - 1:,} before")
    why = [run.reason if run.attempt <= 1 else f"{run.reason}, attempt {attempt_of(run)}"]
    if isinstance(run.detail, dict) and "given_up" in run.detail:
        why.append(f"given up: {run.detail['given_up']}".replace("_", "-"))
    if run.error:
        why.append(run.error.strip().partition("\n")[0][:_ERROR_SHOWN])
    name = [Cell((run.task_name or "",))] if named else []
    return [
        Cell((outcome.replace("_", " "),), terminal.paint(role) if role else None),
        *name,
        Cell(tuple(scheduled)),
        Cell((_started(run, now),)),
        Cell((took(run, now),)),
        Cell(tuple(why)),
    ]


def _started(run: TaskRun, now: datetime) -> str:
    return "" if run.started_at is None else format_relative(run.started_at, now)


def attempt_of(run: TaskRun) -> str:
    """Return the number of an attempt, and of how many where they are limited."""
    most = run.detail.get("max_attempts") if isinstance(run.detail, dict) else None
    return f"{run.attempt} of {most}" if most else str(run.attempt)


def took(run: TaskRun, now: datetime) -> str:
    """Return how long a run took, if it started and ended."""
    end = shown_end(run, now)
    if run.started_at is None or end is None:
        return ""
    return format_duration(max((end - run.started_at).total_seconds(), 0.0))


def record(run: TaskRun, now: datetime) -> dict[str, Any]:
    """Return a run as JSON-native data."""
    lag = None if run.started_at is None else (run.started_at - run.scheduled_for).total_seconds()
    return {
        "id": run.pk,
        "name": run.task_name,
        "scheduled_for": iso8601(run.scheduled_for),
        "scheduled_from": iso8601(run.scheduled_from),
        "count": run.count,
        "started_at": iso8601(run.started_at),
        "finished_at": iso8601(shown_end(run, now)),
        "lag": lag,
        "outcome": shown_outcome(run, now),
        "reason": run.reason,
        "attempt": run.attempt,
        "error": run.error,
        "result": masked(run.result),
        "log": run.log,
        "output": run.output,
    }


HISTORY = Subcommand(
    "history",
    "show what ran, what did not, and why",
    _arguments,
    _answer,
)
