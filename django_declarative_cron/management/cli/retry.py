"""``cron retry`` and ``cron clear-retry``: start pending retries now, or drop them."""

from __future__ import annotations

from argparse import ArgumentParser

from ...store import operator_actions
from .subcommand import Context, Options, Subcommand
from .task_actions import Unchanged, add_arguments, perform


def _arguments(parser: ArgumentParser) -> None:
    add_arguments(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--now", action="store_true", help="the scheduler starts them immediately")
    what.add_argument("--clear", action="store_true", help="the next occurrence is the next run")


def _answer(context: Context, options: Options) -> None:
    if options["now"]:
        action, hint = operator_actions.retry_now, "has no retry pending; `cron run` runs it"
        is_fine = not options["names"]
        perform(context, options, "Retry requested", action, lambda task: Unchanged(hint, is_fine))
    else:
        _clear(context, options)


def _clear(context: Context, options: Options) -> None:
    action = operator_actions.clear_retry
    perform(
        context, options, "Retry cleared", action, lambda task: Unchanged("had no retry pending")
    )


RETRY = Subcommand("retry", "start pending retries now, or clear them", _arguments, _answer)
CLEAR_RETRY = Subcommand(
    "clear-retry", "clear pending retries; the next occurrence runs", add_arguments, _clear
)
