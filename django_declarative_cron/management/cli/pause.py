"""``cron pause``: start no run of a task until it is resumed, or for some time."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime

from django.core.management.base import CommandError

from ... import conf
from ...formatting import format_instant, iso8601
from ...store import operator_actions
from ...store.operator_actions import Act
from ...store.queries import next_start_of
from .datetimes import duration, read_instant
from .deployment_scope import Scope
from .subcommand import Context, Options, Subcommand
from .task_actions import Unchanged, add_arguments, perform


def _arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    end = parser.add_mutually_exclusive_group()
    end.add_argument(
        "--until",
        metavar="ISO",
        help="end of the pause, such as 2030-01-31T07:00; in TIME_ZONE unless it has an offset",
    )
    end.add_argument(
        "--for",
        dest="length",
        type=duration,
        metavar="DURATION",
        help="length of the pause: 90s, 30m, 2h, 1d",
    )


def _answer(context: Context, options: Options) -> None:
    scope = Scope.current()
    until = _until(options, context.clock.now())
    done = "Paused until resumed"
    if until is not None:
        done = f"Paused until {format_instant(until, conf.project_zone())}"

    def pause(names: list[str], who: Act) -> list[str]:
        return operator_actions.pause(names, who, until=until)

    def show_first_runs(names: list[str]) -> None:
        if until is not None:
            _show_first_runs(context, scope, names)

    perform(
        context,
        options,
        done,
        pause,
        lambda task: Unchanged("could not be paused", False),
        then=show_first_runs,
    )


def _show_first_runs(context: Context, scope: Scope, names: list[str]) -> None:
    for task in scope.tasks.filter(name__in=names).order_by("name"):
        start = next_start_of(task)
        when = "never" if start is None else f"at {format_instant(start.at, conf.project_zone())}"
        context.terminal.say(f"{(task.name or '')!r} runs next {when}.")


def _until(options: Options, now: datetime) -> datetime | None:
    if options["length"] is not None:
        try:
            until: datetime = now + options["length"]
        except OverflowError:
            raise CommandError("--for is too long.", returncode=2) from None
        return until
    if options["until"] is None:
        return None
    until = read_instant("--until", options["until"])
    if until <= now:
        text = f"--until {options['until']!r} is over: it was {iso8601(until)}."
        raise CommandError(text, returncode=2)
    return until


PAUSE = Subcommand(
    "pause", "pause tasks: nothing runs until resumed, or for a time", _arguments, _answer
)
