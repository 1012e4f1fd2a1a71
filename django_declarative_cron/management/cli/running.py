"""``cron run``: run one task now, in the foreground, recorded like every other run."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import CommandError

from ... import conf
from ...core import events
from ...core.declarations.declaration import Declaration
from ...core.declarations.runners import EXTERNAL
from ...core.declarations.values import flaw_of_text
from ...formatting import format_duration, format_instant, format_relative
from ...models import Origin, TaskRun
from ...runtime.foreground import Ran, run_now
from ...runtime.watchdog import fork_watchdog
from ...store.manual_runs import AlreadyRunningError, NotRegisteredError, UnreadableRowError
from ...store.posted_tasks import UnreadableError, own
from ...store.queries import read
from ...store.status import gave_up
from .author import act, add_author
from .scope import Scope, declared, unknown
from .subcommand import Context, Options, Subcommand


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a task")
    add_author(parser)


def _answer(context: Context, options: Options) -> None:
    Scope.current()
    declaration = declaration_of(options["name"])
    who, name = act(options, context.clock.now()), declaration.name
    try:
        ran = run_now(
            declaration,
            who,
            context.clock,
            started=lambda: _begin(context, declaration),
            watchdog=fork_watchdog(conf.options(), context.clock) if context.is_alone else None,
        )
    except NotRegisteredError as error:
        raise unknown(declaration.name, ()) from error
    except UnreadableRowError as error:
        hint = "a scheduler mends it when it starts"
        raise CommandError(
            f"The row of {name!r} is damaged ({error}): {hint}.", returncode=1
        ) from error
    except AlreadyRunningError as error:
        raise CommandError(_busy(error.run, who.at), returncode=1) from error
    _tell(context, name, ran)


def declaration_of(name: str) -> Declaration:
    """Return the declaration of a task that can run in this process.

    Raises:
        CommandError: with exit code 2 for an unknown one, 1 for one that cannot run here.
    """
    declarations = declared()
    for declaration in declarations:
        if declaration.name == name:
            return declaration
    posted = _posted(name)
    if posted is None:
        raise unknown(name, ())
    return posted


def _posted(name: str) -> Declaration | None:
    """Return the declaration of a task that was registered over HTTP."""
    if flaw_of_text(name) is not None:
        return None
    row = Scope.current().tasks.filter(name=name, origin=Origin.HTTP).first()
    if row is None:
        return None
    try:
        declaration = own(row)
    except UnreadableError as error:
        raise CommandError(f"{name!r} cannot run here: {error}", returncode=1) from error
    if declaration.runner == EXTERNAL:
        text = f"{name!r} is done by workers outside: it cannot run here."
        raise CommandError(text, returncode=1)
    return declaration


def _begin(context: Context, declaration: Declaration) -> None:
    context.terminal.say(f"Running {declaration.name!r}: {declaration.target.text}")


def _busy(run: TaskRun, now: datetime) -> str:
    name = run.task_name or ""
    since = "" if run.started_at is None else f" since {_moment(run.started_at, now)}"
    if run.instance is None:
        return f"{name!r} runs already{since}."
    where = str(run.instance)
    if gave_up(run.instance):
        return (
            f"{name!r} is still written down as running{since}, in {where}, which is gone: "
            "the next scheduler ends that run."
        )
    seen = format_relative(run.instance.heartbeat_at, now)
    return (
        f"{name!r} runs already{since}, in {where} "
        f"(last sign of life {seen}). Only one run of a task at a time."
    )


def _tell(context: Context, name: str, ran: Ran) -> None:
    took = format_duration(ran.result.duration)
    if ran.result.traceback:
        context.terminal.warn(ran.result.traceback.rstrip())
    match ran.end:
        case events.TaskRunCompleted():
            context.terminal.say(f"Succeeded after {took}.", "SUCCESS")
        case events.TaskRunFailed() as end:
            reason = end.error
            retry = _retry(context, name, end)
            raise CommandError(f"{name!r} failed after {took}: {reason}{retry}", returncode=1)
        case _:
            ended = "succeeded" if ran.result.succeeded else "failed"
            raise CommandError(
                f"{name!r} {ended} after {took}, but the run had been given up meanwhile: "
                "its end is not recorded.",
                returncode=1,
            )


def _retry(context: Context, name: str, end: events.TaskRunFailed) -> str:
    """Return when the scheduler retries the run, or that the next occurrence comes first."""
    if end.next_retry_at is None:
        return ""
    task = Scope.current().tasks.filter(name=end.task_name).first()
    reading = None if task is None else read(task, context.clock.now())
    start = None if reading is None else reading.next_start
    moment = format_instant(end.next_retry_at, conf.project_zone())
    if start is not None and start.reason == "due":
        following = format_instant(start.at, conf.project_zone())
        return f"\nIts next occurrence, at {following}, is its next run."
    paused = reading is not None and reading.is_paused
    when = f"once its pause ends, not before {moment}" if paused else f"at {moment}"
    return (
        f"\nThe scheduler retries it {when}; "
        f"`python manage.py cron clear-retry {shlex.quote(name)}` prevents that."
    )


def _moment(instant: datetime, now: datetime) -> str:
    return f"{format_instant(instant, conf.project_zone())} ({format_relative(instant, now)})"


RUN = Subcommand("run", "run a task now, in the foreground", _arguments, _answer)
