"""``cron pause``, ``resume``, ``skip`` and ``clear-retry``: people's acts on tasks."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from datetime import datetime

from django.core.management.base import CommandError

from ... import conf
from ...formatting import format_instant, iso8601
from ...models import ScheduledTask
from ...store import operator_actions
from ...store.queries import next_start_of, read_schedule
from .author import act, add_author
from .instants import read_instant
from .scope import Scope
from .subcommand import Context, Options, Subcommand

Said = tuple[str, bool]
"""Why an act took no effect on a task, and whether the task is as it was to be."""


def _names(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="of a task")
    add_author(parser)


def _pause_arguments(parser: ArgumentParser) -> None:
    _names(parser)
    parser.add_argument(
        "--until",
        metavar="ISO",
        help="end of the pause, such as 2030-01-31T07:00; in TIME_ZONE unless it has an offset",
    )


def _pause(context: Context, options: Options) -> None:
    scope = Scope.current()
    now = context.clock.now()
    until = _until(options["until"], now)
    end = (
        "until resumed" if until is None else f"until {format_instant(until, conf.project_zone())}"
    )
    exact = "" if until is None else f" ({iso8601(until)})"
    names = _known(scope, options)
    who = act(options, now)
    taken = operator_actions.pause(names, who, until=until)
    _tell(context, f"Paused {end}{exact}", taken)
    if until is not None:
        _tell_first_runs(context, scope, taken)
    _tell_untouched(context, scope, names, taken, lambda task: ("could not be paused", False))


def _tell_first_runs(context: Context, scope: Scope, names: Sequence[str]) -> None:
    """Say of each task when its first run after the pause is."""
    for task in scope.tasks.filter(name__in=names).order_by("name"):
        start = next_start_of(task)
        when = "never" if start is None else f"at {format_instant(start.at, conf.project_zone())}"
        context.terminal.say(f"{(task.name or '')!r} runs next {when}.")


def _resume(context: Context, options: Options) -> None:
    scope = Scope.current()
    names = _known(scope, options)
    taken = operator_actions.resume(names, act(options, context.clock.now()))
    _tell(context, "Resumed", taken)
    _tell_untouched(context, scope, names, taken, _not_resumed)


def _not_resumed(task: ScheduledTask) -> Said:
    if not task.enabled:
        return "is disabled by its declaration: enable it there", False
    return "was not paused", True


def _skip_arguments(parser: ArgumentParser) -> None:
    _names(parser)
    parser.add_argument("--undo", action="store_true", help="let the next run take place after all")


def _skip(context: Context, options: Options) -> None:
    scope = Scope.current()
    names, who = _known(scope, options), act(options, context.clock.now())
    if options["undo"]:
        taken = operator_actions.unskip(names, who)
        _tell(context, "Next run no longer skipped", taken)
        _tell_untouched(context, scope, names, taken, lambda task: ("has no skipped run", True))
        return
    taken = operator_actions.skip_next(names, who)
    _tell(context, "Next run skipped", taken)
    _tell_untouched(context, scope, names, taken, _not_skipped)


def _not_skipped(task: ScheduledTask) -> Said:
    if not task.enabled:
        return "is disabled by its declaration: nothing runs", True
    if task.paused_since is not None:
        return "is paused: nothing runs that could be skipped", True
    if task.skip_at is not None:
        skipped = format_instant(task.skip_at, conf.project_zone())
        return f"skips its run of {skipped} already: one at a time", True
    return "never runs again: there is nothing to skip", False


def _clear_retry(context: Context, options: Options) -> None:
    scope = Scope.current()
    names = _known(scope, options)
    taken = operator_actions.clear_retry(names, act(options, context.clock.now()))
    _tell(context, "Retry cleared", taken)
    _tell_untouched(context, scope, names, taken, lambda task: ("had no retry pending", True))


def _known(scope: Scope, options: Options) -> list[str]:
    names = list(dict.fromkeys(options["names"]))
    scope.require_registered(names)
    return names


def _tell(context: Context, done: str, names: Sequence[str]) -> None:
    if names:
        context.terminal.say(f"{done}: {', '.join(names)}")


def _tell_untouched(
    context: Context,
    scope: Scope,
    names: Sequence[str],
    taken: Sequence[str],
    why: Callable[[ScheduledTask], Said],
) -> None:
    """Say of each task why nothing changed; fail where one is not as it was to be."""
    untouched = [name for name in names if name not in taken]
    failed = []
    for task in scope.tasks.filter(name__in=untouched).order_by("name"):
        damage = read_schedule(task)[1]
        reason, is_fine = why(task) if not damage else (f"is damaged: {damage}", False)
        if is_fine:
            context.terminal.say(f"{(task.name or '')!r} {reason}.")
        else:
            failed.append(f"{(task.name or '')!r} {reason}.")
    if failed:
        raise CommandError("\n".join(failed), returncode=1)


def _until(text: str | None, now: datetime) -> datetime | None:
    """Read the end of a pause."""
    if text is None:
        return None
    until = read_instant("--until", text)
    if until <= now:
        raise CommandError(f"--until {text!r} is over: it was {iso8601(until)}.", returncode=2)
    return until


PAUSE = Subcommand("pause", "let tasks rest: nothing runs until resumed", _pause_arguments, _pause)
RESUME = Subcommand("resume", "end pauses; what fell under them does not run", _names, _resume)
SKIP = Subcommand(
    "skip", "let the next occurrence pass; the one after it runs", _skip_arguments, _skip
)
CLEAR_RETRY = Subcommand(
    "clear-retry", "forget pending retries; the next occurrence runs", _names, _clear_retry
)
