"""``cron cancel``: request the end of runs in progress, and end waiting runs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import defaultdict

from django.core.management.base import CommandError

from ...formatting import format_count
from ...store import manual_runs
from ...store.manual_runs import CANCELLABLE, Effect
from .deployment_scope import Scope
from .subcommand import Context, Options, Subcommand, act, add_author

_TEXTS = {Effect.ASKED: ("run", "asked to end"), Effect.ENDED: ("waiting run", "ended")}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of tasks")
    add_author(parser)


def _answer(context: Context, options: Options) -> None:
    scope, names = Scope.current(), list(dict.fromkeys(options["names"]))
    scope.require_registered(names)
    who = act(options, context.clock.now())
    runs = scope.runs.filter(task_name__in=names, outcome__in=CANCELLABLE)
    # Waiting runs end first, so that none of them starts because a run in progress has ended.
    found = list(runs.only("task_name", "outcome", "scheduler").order_by("-outcome", "pk"))
    effects: dict[Effect, list[str]] = defaultdict(list)
    for run in found:
        effect = manual_runs.cancel(run, who, context.clock.database_time())
        effects[effect].append(run.task_name or "")
    for effect, (noun, verb) in _TEXTS.items():
        if affected := effects[effect]:
            number = format_count(len(affected), noun)
            context.terminal.say(f"{number} {verb}: {_names(affected)}")
    if effects[Effect.NONE] and not effects[Effect.ASKED] and not effects[Effect.ENDED]:
        context.terminal.say(f"Asked before, or over by now: {_names(effects[Effect.NONE])}")
    idle = [name for name in names if name not in {run.task_name for run in found}]
    if idle:
        raise CommandError(f"No run in progress: {', '.join(idle)}")


def _names(names: list[str]) -> str:
    return ", ".join(sorted(set(names)))


CANCEL = Subcommand("cancel", "cancel runs that are in progress or waiting", _arguments, _answer)
