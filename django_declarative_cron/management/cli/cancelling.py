"""``cron cancel``: ask runs in progress to end."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import CommandError

from ...models import Outcome, TaskRun
from ...signals import safe
from ...store import cancelling
from .scope import Scope
from .subcommand import Context, Options, Subcommand
from .words import count


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="of a task")


def _answer(context: Context, options: Options) -> None:
    scope, names = Scope.current(), list(dict.fromkeys(options["names"]))
    scope.require_registered(names)
    running = TaskRun.objects.using(scope.using).filter(
        scheduler__deployment=scope.deployment, task_name__in=names, outcome=Outcome.RUNNING
    )
    found = dict(running.values_list("pk", "task_name"))
    asked = cancelling.request(scope.using, scope.deployment, found, context.clock.now())
    told = ", ".join(sorted({safe(name or "") for name in found.values()}))
    if asked:
        context.terminal.say(f"{count(asked, 'run')} asked to end: {told}")
    elif found:
        context.terminal.say(f"Asked before, or over by now: {told}")
    idle = [safe(name) for name in names if name not in found.values()]
    if idle:
        raise CommandError(f"No run in progress: {', '.join(idle)}", returncode=1)


CANCEL = Subcommand("cancel", "ask runs in progress to end", _arguments, _answer)
