"""``cron explain``: why a task did or did not run, in one sentence from its rows."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import translation

from ... import conf
from ...core.explain import Cause, Row, Why
from ...core.schedule import Schedule
from ...formatting import format_instant, iso8601
from ...models import ScheduledTask
from ...store.queries import explain, next_start_of, read_schedule
from ...store.registration_sets import Removal, newest_runs
from ...store.sentences import sentence
from ...store.status import is_attended, patience
from .instants import add_timezone, read_instant, zone_of
from .past import record, say_runs
from .scope import Scope
from .subcommand import Context, Options, Subcommand, add_format

_RUNS = 5
_BAD = (Cause.BROKEN, Cause.NO_LEADER, Cause.LATE)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    parser.add_argument(
        "--at",
        metavar="ISO",
        help=(
            "the instant asked about, such as 2030-01-31T07:00; as the clocks of the task's zone "
            "show it, unless it has an offset. Without it: why it does or does not run now"
        ),
    )
    add_timezone(parser)
    add_format(parser)


def _answer(context: Context, options: Options) -> None:
    scope, now, zone = Scope.current(), context.clock.now(), zone_of(options["timezone"])
    removal = scope.removal_of(options["name"])
    if removal is not None:
        _answer_removed(context, scope, options, removal, zone, now)
        return
    scope.require_registered([options["name"]])
    task = scope.tasks.get(name=options["name"])
    schedule = read_schedule(task)[0]
    own = zone if schedule is None else schedule.zone
    at = None if options["at"] is None else read_instant("--at", options["at"], own)
    attended = _is_attended(context, scope)
    answer = explain(task, now, at, is_attended=attended)
    if options["format"] == "json":
        context.terminal.data(_record(task, answer, at, now, zone))
    else:
        _say(context, task, schedule, answer, zone, now)


def _answer_removed(
    context: Context,
    scope: Scope,
    options: Options,
    removal: Removal,
    zone: ZoneInfo,
    now: datetime,
) -> None:
    """Say when a task was removed, with its newest runs or those around the instant."""
    name = options["name"]
    at = None if options["at"] is None else read_instant("--at", options["at"], zone)
    told = Why(Cause.REMOVED, at or now, until=removal.at)
    runs = newest_runs(scope.using, scope.deployment, name, _RUNS, at)
    if options["format"] == "json":
        context.terminal.data(
            {
                "name": name,
                "now": iso8601(now),
                "at": iso8601(at),
                "cause": str(told.cause),
                "explanation": worded(told, zone),
                "removed_at": iso8601(removal.at),
                "runs": [record(run, now) for run in runs],
            }
        )
        return
    context.terminal.say(worded(told, zone))
    if runs:
        context.terminal.say()
        say_runs(context.terminal, runs, zone, now, named=False)


def _is_attended(context: Context, scope: Scope) -> bool:
    limit = patience(conf.options().LEASE)
    return is_attended(scope.using, scope.deployment, limit, context.clock.database_time())


def worded(answer: Why, zone: ZoneInfo) -> str:
    """Put an answer into words; commands speak English."""
    with translation.override(None):
        return sentence(answer, zone)


def _say(
    context: Context,
    task: ScheduledTask,
    schedule: Schedule | None,
    answer: Why,
    zone: ZoneInfo,
    now: datetime,
) -> None:
    role = "ERROR" if answer.cause in _BAD else ""
    context.terminal.say(worded(answer, zone), role)
    if answer.row is not None and answer.row.error:
        context.terminal.say(answer.row.error)
    if schedule is not None:
        context.terminal.say(f"{task.name}: {task.cron}  {task.timezone}")
    following = next_start_of(task)
    if following is not None and following.at > now and answer.until != following.at:
        context.terminal.say(f"Next run: {format_instant(following.at, zone)}")


def _record(
    task: ScheduledTask, answer: Why, at: datetime | None, now: datetime, zone: ZoneInfo
) -> dict[str, Any]:
    following = next_start_of(task)
    return {
        "name": task.name,
        "now": iso8601(now),
        "at": iso8601(at),
        "cause": str(answer.cause),
        "explanation": worded(answer, zone),
        "instant": iso8601(answer.at),
        "until": iso8601(answer.until),
        "previous": iso8601(answer.previous),
        "paused_by": None if answer.pause is None else answer.pause.author,
        "note": None if answer.pause is None else answer.pause.note,
        "run": None if answer.row is None else _run(answer.row),
        "next_run_at": None if following is None else iso8601(following.at),
    }


def _run(row: Row) -> dict[str, Any]:
    return {
        "id": row.key,
        "scheduled_for": iso8601(row.scheduled_for),
        "started_at": iso8601(row.started_at),
        "finished_at": iso8601(row.gone_since or row.finished_at),
        "outcome": row.outcome if row.gone_since is None else "interrupted",
        "reason": row.reason,
        "attempt": row.attempt,
        "error": row.error,
    }


EXPLAIN = Subcommand(
    "explain",
    "say why a task did or does not run",
    _arguments,
    _answer,
)
