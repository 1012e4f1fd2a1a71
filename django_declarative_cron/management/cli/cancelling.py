"""``cron cancel``: ask runs in progress to end, and end those that wait."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from django.core.management.base import CommandError

from ...formatting import format_count
from ...models import TaskRun
from ...store import manual_runs
from ...store.manual_runs import CANCELLABLE, Effect
from .author import act, add_author
from .scope import Scope
from .subcommand import Context, Options, Subcommand

_TEXTS = {
    Effect.ASKED: ("run", "asked to end"),
    Effect.ENDED: ("waiting run", "ended"),
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="of a task")
    add_author(parser)


def _answer(context: Context, options: Options) -> None:
    scope, names = Scope.current(), list(dict.fromkeys(options["names"]))
    scope.require_registered(names)
    who = act(options, context.clock.now())
    runs = TaskRun.objects.using(scope.using).filter(
        scheduler__deployment=scope.deployment, task_name__in=names, outcome__in=CANCELLABLE
    )
    # What waits goes first: nothing begins because what it waits for has ended.
    found = list(runs.only("task_name", "outcome", "scheduler").order_by("-outcome", "pk"))
    told: dict[Effect, list[str]] = {effect: [] for effect in Effect}
    for run in found:
        effect = manual_runs.cancel(run, who, context.clock.database_time())
        told[effect].append(run.task_name or "")
    for line in _lines(told):
        context.terminal.say(line)
    idle = [name for name in names if name not in {run.task_name for run in found}]
    if idle:
        raise CommandError(f"No run in progress: {', '.join(idle)}", returncode=1)


def _lines(told: Mapping[Effect, Sequence[str]]) -> Iterator[str]:
    for effect, (what, became) in _TEXTS.items():
        if told[effect]:
            yield f"{format_count(len(told[effect]), what)} {became}: {_names(told[effect])}"
    if told[Effect.NONE] and not told[Effect.ASKED] and not told[Effect.ENDED]:
        yield f"Asked before, or over by now: {_names(told[Effect.NONE])}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(sorted(set(names)))


CANCEL = Subcommand(
    "cancel", "ask runs in progress to end, and end those that wait", _arguments, _answer
)
