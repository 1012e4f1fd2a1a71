"""``cron explain``: why a task did or did not run, in one sentence."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation

from ... import conf
from ...core.explain import Answer, Cause, Row
from ...formatting import format_instant
from ...models import ScheduledTask, TaskRun
from ...store.queries import explain, newest_runs, next_start_of, read_schedule
from ...store.sentences import sentence
from ...store.status import attendance, patience
from .datetimes import add_timezone, read_instant, zone_of
from .deployment_scope import Scope
from .history import render_runs, run_as_dict
from .subcommand import Context, Options, Report, Subcommand, add_format, attributes, write
from .terminal import Terminal

_RUNS = 5
_BAD = (Cause.BROKEN, Cause.NO_LEADER, Cause.LATE)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    add_at(parser)
    add_timezone(parser)
    add_format(parser)


def add_at(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--at",
        metavar="ISO",
        help=(
            "the instant in question, such as 2030-01-31T07:00; as the clocks of the task's zone "
            "show it, unless it has an offset. Without it: why it does or does not run now"
        ),
    )


def _answer(context: Context, options: Options) -> None:
    write(context, options, explanation_of(context, options))


def explanation_of(context: Context, options: Options) -> Report:
    """Return why a task did or did not run, at an instant or now."""
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    removed = removal_report(scope, options, zone, now)
    if removed is not None:
        return removed
    scope.require_registered([options["name"]])
    task = scope.tasks.get(name=options["name"])
    schedule = read_schedule(task)[0]
    own = zone if schedule is None else schedule.zone
    at = None if options["at"] is None else read_instant("--at", options["at"], own)
    return Explanation(task, why_of(context, scope, task, now, at), at, zone, now)


def why_of(
    context: Context, scope: Scope, task: ScheduledTask, now: datetime, at: datetime | None = None
) -> Answer:
    limit = patience(conf.options().LEASE)
    found = attendance(scope.using, scope.deployment, context.clock.database_time())
    attended = found is not None and bool(found.heard(limit))
    return explain(task, now, at, is_attended=attended)


def removal_report(
    scope: Scope, options: Options, zone: ZoneInfo, now: datetime
) -> RemovedTask | None:
    """Return the removal of a task with its newest runs, or with those around the instant."""
    removal = scope.removal_of(options["name"])
    if removal is None:
        return None
    at = None if options["at"] is None else read_instant("--at", options["at"], zone)
    why = Answer(Cause.REMOVED, at or now, until=removal.at)
    runs = newest_runs(scope.using, scope.deployment, options["name"], _RUNS, at)
    return RemovedTask(options["name"], why, list(runs), at, zone, now)


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
        **attributes(row, "scheduled_for", "started_at"),
        "finished_at": row.gone_since or row.finished_at,
        "outcome": row.outcome if row.gone_since is None else "interrupted",
        **attributes(row, "reason", "attempt", "error"),
    }


EXPLAIN = Subcommand("explain", "explain why a task did or does not run", _arguments, _answer)
