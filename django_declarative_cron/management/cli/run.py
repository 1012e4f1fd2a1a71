"""``cron run``: run one task now, in the foreground, recorded like every other run."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.core.management.base import CommandError

from ... import conf
from ...core import events
from ...core.declarations.declaration import Declaration
from ...core.declarations.runners import EXTERNAL
from ...formatting import format_elapsed, format_instant, format_relative
from ...models import Origin, TaskRun
from ...runtime.foreground import Ran, run_now
from ...runtime.watchdog import fork_watchdog
from ...store.manual_runs import AlreadyRunningError
from ...store.posted_tasks import UnreadableError, own
from ...store.queries import read
from ...store.rows import NotRegisteredError, UnreadableRowError
from ...store.status import gave_up
from .deployment_scope import Scope, declared, unknown
from .subcommand import Context, Options, Subcommand, act, add_author


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the task")
    add_author(parser)


def _answer(context: Context, options: Options) -> None:
    Scope.current()
    declaration = declaration_of(options["name"])
    who, name = act(options, context.clock.now()), declaration.name
    announcement = f"Running {name!r}: {declaration.target.text}"
    try:
        with refusals_as_errors(name):
            ran = run_now(
                declaration,
                who,
                context.clock,
                started=lambda: context.terminal.say(announcement),
                watchdog=fork_watchdog(conf.options(), context.clock) if context.is_alone else None,
            )
    except AlreadyRunningError as error:
        raise CommandError(_already_running(error.run, who.at)) from error
    _report(context, name, ran)


def declaration_of(name: str) -> Declaration:
    """Return the declaration of a task that can run in this process; refuse others."""
    for declaration in declared():
        if declaration.name == name:
            return declaration
    posted = _posted(name)
    if posted is None:
        raise unknown(name, ())
    return posted


@contextmanager
def refusals_as_errors(name: str) -> Iterator[None]:
    """Raise a ``CommandError`` for a task that cannot run in the foreground."""
    try:
        yield
    except NotRegisteredError as error:
        raise unknown(name, ()) from error
    except UnreadableRowError as error:
        text = f"The row of {name!r} is damaged ({error}): a scheduler rewrites it when it starts."
        raise CommandError(text) from error


def _posted(name: str) -> Declaration | None:
    """Return the declaration of a task that was registered over HTTP."""
    row = Scope.current().tasks.filter(name=name, origin=Origin.HTTP).first()
    if row is None:
        return None
    try:
        declaration = own(row)
    except UnreadableError as error:
        raise CommandError(f"{name!r} cannot run here: {error}") from error
    if declaration.runner == EXTERNAL:
        raise CommandError(f"{name!r} is done by workers outside: it cannot run here.")
    return declaration


def _already_running(run: TaskRun, now: datetime) -> str:
    name, since = run.task_name or "", ""
    if run.started_at is not None:
        started = format_instant(run.started_at, conf.project_zone())
        since = f" since {started} ({format_relative(run.started_at, now)})"
    if run.instance is None:
        return f"{name!r} runs already{since}."
    if gave_up(run.instance):
        return (
            f"{name!r} is still written down as running{since}, in {run.instance}, which is gone: "
            "the next scheduler ends that run."
        )
    seen = format_relative(run.instance.heartbeat_at, now)
    return (
        f"{name!r} runs already{since}, in {run.instance} "
        f"(last heartbeat {seen}). Only one run of a task at a time."
    )


def _report(context: Context, name: str, ran: Ran) -> None:
    took = format_elapsed(ran.took)
    if ran.result.traceback:
        context.terminal.warn(ran.result.traceback.rstrip())
    match ran.end:
        case events.TaskRunCompleted():
            context.terminal.say(f"Succeeded after {took}.", "SUCCESS")
        case events.TaskRunFailed() as end:
            text = f"{name!r} failed after {took}: {end.error}{_retry(context, name, end)}"
            raise CommandError(text)
        case _:
            ended = "succeeded" if ran.result.succeeded else "failed"
            raise CommandError(
                f"{name!r} {ended} after {took}, but the run had been given up meanwhile: "
                "its end is not recorded."
            )


def _retry(context: Context, name: str, end: events.TaskRunFailed) -> str:
    """Return when the scheduler retries the run, or that the next occurrence comes first."""
    if end.next_retry_at is None:
        return ""
    task = Scope.current().tasks.filter(name=end.task_name).first()
    reading = None if task is None else read(task, context.clock.now())
    start = None if reading is None else reading.next_start
    if start is not None and start.reason == "due":
        following = format_instant(start.at, conf.project_zone())
        return f"\nIts next occurrence, at {following}, is its next run."
    retry = format_instant(end.next_retry_at, conf.project_zone())
    is_paused = reading is not None and reading.is_paused
    when = f"once its pause ends, not before {retry}" if is_paused else f"at {retry}"
    return (
        f"\nThe scheduler retries it {when}; "
        f"`python manage.py cron retry {shlex.quote(name)} --clear` prevents that."
    )


RUN = Subcommand("run", "run a task now, in the foreground", _arguments, _answer)
