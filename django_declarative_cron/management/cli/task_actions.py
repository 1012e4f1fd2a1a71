"""``cron pause``, ``resume``, ``skip``, ``retry`` and ``clear-retry``: act on selected tasks."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from django.core.management.base import CommandError

from ... import conf
from ...formatting import format_instant, iso8601
from ...models import ScheduledTask
from ...store import operator_actions
from ...store.operator_actions import Act
from ...store.queries import next_start_of, read_schedule
from .deployment_scope import Scope, add_selection, selected
from .subcommand import (
    Context,
    Options,
    Subcommand,
    act,
    add_author,
    duration,
    read_instant,
    wrong_use,
)


class Unchanged(NamedTuple):
    """Why an action had no effect on a task, and whether the task is as it should be."""

    reason: str
    is_fine: bool = True


def _add_selection(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_author(parser)


def _perform(
    context: Context,
    options: Options,
    done: str,
    action: Callable[[list[str], Act], list[str]],
    why_unchanged: Callable[[ScheduledTask], Unchanged],
    *,
    shows_next_runs: bool = False,
) -> None:
    """Act on the selected tasks; report the changed and the unchanged ones."""
    scope = Scope.current()
    names = selected(scope, options)
    changed = action(names, act(options, context.clock.now()))
    if changed:
        context.terminal.say(f"{done}: {', '.join(changed)}")
    if shows_next_runs:
        _show_next_runs(context, scope, changed)
    unchanged = scope.tasks.filter(name__in=set(names) - set(changed)).order_by("name")
    failures = []
    for task in unchanged:
        damage = read_schedule(task)[1]
        found = Unchanged(f"is damaged: {damage}", False) if damage else why_unchanged(task)
        text = f"{(task.name or '')!r} {found.reason}."
        if not found.is_fine:
            failures.append(text)
        elif options["names"]:
            context.terminal.say(text)
    if failures:
        raise CommandError("\n".join(failures))


def _show_next_runs(context: Context, scope: Scope, names: list[str]) -> None:
    for task in scope.tasks.filter(name__in=names).order_by("name"):
        start = next_start_of(task)
        when = "never" if start is None else f"at {format_instant(start.at, conf.project_zone())}"
        context.terminal.say(f"{(task.name or '')!r} runs next {when}.")


# --- pause and resume -----------------------------------------------------------


def _pause_arguments(parser: ArgumentParser) -> None:
    _add_selection(parser)
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


def _pause(context: Context, options: Options) -> None:
    Scope.current()  # Missing tables are reported before mistakes in the options.
    until = _until(options, context.clock.now())
    end = "resumed" if until is None else format_instant(until, conf.project_zone())
    _perform(
        context,
        options,
        f"Paused until {end}",
        partial(operator_actions.pause, until=until),
        lambda task: Unchanged("could not be paused", False),
        shows_next_runs=until is not None,
    )


def _until(options: Options, now: datetime) -> datetime | None:
    if options["length"] is not None:
        if options["length"] <= timedelta(0):
            raise wrong_use("--for must be longer than zero, such as 2h.")
        try:
            until: datetime = now + options["length"]
        except OverflowError:
            raise wrong_use("--for is too long.") from None
        return until
    if options["until"] is None:
        return None
    until = read_instant("--until", options["until"])
    if until <= now:
        raise wrong_use(f"--until {options['until']!r} is in the past: it was {iso8601(until)}.")
    return until


def _resume(context: Context, options: Options) -> None:
    _perform(context, options, "Resumed", operator_actions.resume, _why_not_resumed)


def _why_not_resumed(task: ScheduledTask) -> Unchanged:
    if not task.enabled:
        return Unchanged("is disabled by its declaration: enable it there", False)
    return Unchanged("was not paused")


# --- skip -----------------------------------------------------------------------


def _skip_arguments(parser: ArgumentParser) -> None:
    _add_selection(parser)
    parser.add_argument("--undo", action="store_true", help="let the next run take place after all")


def _skip(context: Context, options: Options) -> None:
    if options["undo"]:
        done, action = "Next run no longer skipped", operator_actions.unskip
        _perform(context, options, done, action, lambda task: Unchanged("has no skipped run"))
    else:
        _perform(context, options, "Next run skipped", operator_actions.skip_next, _why_not_skipped)


def _why_not_skipped(task: ScheduledTask) -> Unchanged:
    if not task.enabled:
        return Unchanged("is disabled by its declaration: nothing runs")
    if task.paused_since is not None:
        return Unchanged("is paused: nothing runs that could be skipped")
    if task.skip_at is not None:
        skipped = format_instant(task.skip_at, conf.project_zone())
        return Unchanged(f"skips its run of {skipped} already: one at a time")
    return Unchanged("never runs again: there is nothing to skip", False)


# --- retry ----------------------------------------------------------------------


def _retry_arguments(parser: ArgumentParser) -> None:
    _add_selection(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--now", action="store_true", help="the scheduler starts them immediately")
    what.add_argument("--clear", action="store_true", help="the next occurrence is the next run")


def _retry(context: Context, options: Options) -> None:
    if options["clear"]:
        _clear_retry(context, options)
        return
    why = Unchanged("has no retry pending; `cron run` runs it", is_fine=not options["names"])
    _perform(context, options, "Retry requested", operator_actions.retry_now, lambda task: why)


def _clear_retry(context: Context, options: Options) -> None:
    why = Unchanged("had no retry pending")
    _perform(context, options, "Retry cleared", operator_actions.clear_retry, lambda task: why)


PAUSE = Subcommand(
    "pause", "pause tasks: nothing runs until resumed, or for a time", _pause_arguments, _pause
)
RESUME = Subcommand(
    "resume", "end pauses; occurrences under them do not run", _add_selection, _resume
)
SKIP = Subcommand("skip", "skip the next occurrence; the one after it runs", _skip_arguments, _skip)
RETRY = Subcommand("retry", "start pending retries now, or clear them", _retry_arguments, _retry)
CLEAR_RETRY = Subcommand(
    "clear-retry", "clear pending retries; the next occurrence runs", _add_selection, _clear_retry
)
