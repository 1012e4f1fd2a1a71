"""``cron skip``: skip the next occurrence; later ones run."""

from __future__ import annotations

from argparse import ArgumentParser

from ... import conf
from ...formatting import format_instant
from ...models import ScheduledTask
from ...store import operator_actions
from .subcommand import Context, Options, Subcommand
from .task_actions import Unchanged, add_arguments, perform


def _arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument("--undo", action="store_true", help="let the next run take place after all")


def _answer(context: Context, options: Options) -> None:
    if options["undo"]:
        done, action = "Next run no longer skipped", operator_actions.unskip
        perform(context, options, done, action, lambda task: Unchanged("has no skipped run"))
    else:
        perform(context, options, "Next run skipped", operator_actions.skip_next, _why_not_skipped)


def _why_not_skipped(task: ScheduledTask) -> Unchanged:
    if not task.enabled:
        return Unchanged("is disabled by its declaration: nothing runs")
    if task.paused_since is not None:
        return Unchanged("is paused: nothing runs that could be skipped")
    if task.skip_at is not None:
        skipped = format_instant(task.skip_at, conf.project_zone())
        return Unchanged(f"skips its run of {skipped} already: one at a time")
    return Unchanged("never runs again: there is nothing to skip", False)


SKIP = Subcommand("skip", "skip the next occurrence; the one after it runs", _arguments, _answer)
