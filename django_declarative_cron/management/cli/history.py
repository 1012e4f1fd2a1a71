"""``cron history``: runs, and occurrences without a run; the newest first."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from django.db.models import QuerySet

from ...formatting import format_civil, format_count, format_elapsed, format_relative
from ...models import Outcome, TaskRun
from ...store.sentences import masked
from ...store.status import shown_end, shown_outcome
from .deployment_scope import Scope
from .subcommand import (
    Context,
    Options,
    Subcommand,
    add_choice,
    add_format,
    add_timezone,
    read_since,
    whole,
    write,
    zone_of,
)
from .terminal import Cell, Form, Terminal

_ROLES = {
    Outcome.SUCCEEDED: "SUCCESS",
    Outcome.RUNNING: "NOTICE",
    Outcome.FAILED: "ERROR",
    Outcome.TIMED_OUT: "ERROR",
    Outcome.INTERRUPTED: "WARNING",
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of a task; all unless given")
    outcomes = [str(each) for each in Outcome.values]
    add_choice(parser, "--outcome", outcomes, "only runs with this outcome", is_repeatable=False)
    parser.add_argument(
        "--since",
        metavar="ISO|AGO",
        help=(
            "only runs that were due since then: 2h (ago), 2030-01-31 or 2030-01-31T07:00 "
            "(in TIME_ZONE)"
        ),
    )
    parser.add_argument(
        "-n", dest="count", type=whole, default=20, help="number of runs (default: 20)"
    )
    parser.add_argument(
        "--wide", action="store_true", help="whole lines on a terminal, as in a pipe"
    )
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    runs = list(_runs(scope, options, now)[: options["count"]])
    is_cut = len(runs) == options["count"]
    is_of_all, is_wide = options["name"] is None, options["wide"]
    write(context, options, RunList(runs, zone, now, is_of_all, is_cut, is_wide))


def _runs(scope: Scope, options: Options, now: datetime) -> QuerySet[TaskRun]:
    runs, name = scope.runs, options["name"]
    if name is not None:
        # The history of a name remains when its row is removed.
        runs = runs.filter(task_name=name)
        if not runs.exists():
            scope.require_registered([name])
    if options["outcome"] is not None:
        runs = runs.filter(outcome=options["outcome"].replace("-", "_"))
    if options["since"] is not None:
        runs = runs.filter(scheduled_for__gte=read_since("--since", options["since"], now))
    # A table shows none of the long texts.
    long = ("traceback",) if options["format"] == "json" else ("traceback", "log", "output")
    return runs.select_related("instance").defer(*long, "instance__lapses").order_by("-id")


@dataclass(frozen=True, slots=True)
class RunList:
    """The newest runs of one task or of all."""

    runs: Sequence[TaskRun]
    zone: tzinfo
    now: datetime
    is_of_all: bool
    is_cut: bool
    is_wide: bool

    def as_dict(self) -> dict[str, Any]:
        return {"now": self.now, "runs": [run_as_dict(run, self.now) for run in self.runs]}

    def render(self, terminal: Terminal) -> None:
        if self.runs:
            form: Form = "whole" if self.is_wide else "wrapped"
            render_runs(terminal, self.runs, self.zone, self.now, named=self.is_of_all, form=form)
            terminal.remark()
        limit = ", the newest" if self.is_cut else ""
        number = format_count(len(self.runs), "run") if self.runs else "No runs found"
        terminal.remark(f"{number}{limit}; times in {self.zone}.")


def render_runs(
    terminal: Terminal,
    runs: Sequence[TaskRun],
    zone: tzinfo,
    now: datetime,
    *,
    named: bool,
    form: Form = "wrapped",
) -> None:
    """Write a table of runs; on a terminal an error has one line below its run."""
    header = ("OUTCOME", *(("TASK",) if named else ()), "SCHEDULED", "STARTED", "TOOK", "WHY")
    rows = []
    for run in runs:
        name = [Cell((run.task_name or "",))] if named else []
        outcome, *others = _row(terminal, run, zone, now)
        rows.append([outcome, *name, *others])
    terminal.table(rows, header, form)


def _row(terminal: Terminal, run: TaskRun, zone: tzinfo, now: datetime) -> list[Cell]:
    outcome = shown_outcome(run, now)
    role = _ROLES.get(Outcome(outcome)) if outcome in Outcome else None
    scheduled = [format_civil(run.scheduled_for, zone)]
    if run.count > 1:
        scheduled.append(f"and {run.count - 1:,} before")
    started = "" if run.started_at is None else format_relative(run.started_at, now)
    return [
        Cell((outcome.replace("_", " "),), terminal.paint(role)),
        Cell(tuple(scheduled)),
        Cell((started,)),
        Cell((_duration(run, now),)),
        Cell(tuple(_reason(run)), below=run.error.strip().partition("\n")[0]),
    ]


def _reason(run: TaskRun) -> list[str]:
    detail = run.detail if isinstance(run.detail, dict) else {}
    reason = "restart" if run.reason == "orphaned" else run.reason.replace("_", " ")
    if run.attempt > 1:
        most = detail.get("max_attempts")
        reason += f", attempt {run.attempt}" + (f" of {most}" if most else "")
    lines = [reason]
    if "given_up" in detail:
        lines.append(f"given up: {detail['given_up']}".replace("_", "-"))
    return lines


def _duration(run: TaskRun, now: datetime) -> str:
    end = shown_end(run, now)
    if run.started_at is None or end is None:
        return ""
    return format_elapsed(end - run.started_at)


def run_as_dict(run: TaskRun, now: datetime) -> dict[str, Any]:
    return {
        "id": run.pk,
        "name": run.task_name,
        "scheduled_for": run.scheduled_for,
        "scheduled_from": run.scheduled_from,
        "count": run.count,
        "started_at": run.started_at,
        "finished_at": shown_end(run, now),
        "lag": None if run.started_at is None else run.started_at - run.scheduled_for,
        "outcome": shown_outcome(run, now),
        "reason": run.reason,
        "attempt": run.attempt,
        "error": run.error,
        "result": masked(run.result),
        "log": run.log,
        "output": run.output,
    }


HISTORY = Subcommand("history", "show runs, and why occurrences had none", _arguments, _answer)
