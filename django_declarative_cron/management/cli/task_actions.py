"""The common parts of ``cron pause``, ``resume``, ``skip`` and ``retry``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from django.core.management.base import CommandError

from ...models import ScheduledTask
from ...store.operator_actions import Act
from ...store.queries import read_schedule
from .audit import act, add_author
from .deployment_scope import Scope, add_selection, selected
from .subcommand import Context, Options


class Unchanged(NamedTuple):
    """Why an action had no effect on a task, and whether the task is as it should be."""

    reason: str
    is_fine: bool = True


def add_arguments(parser: ArgumentParser) -> None:
    add_selection(parser)
    add_author(parser)


def perform(
    context: Context,
    options: Options,
    done: str,
    action: Callable[[list[str], Act], list[str]],
    why_unchanged: Callable[[ScheduledTask], Unchanged],
    *,
    then: Callable[[list[str]], None] | None = None,
) -> None:
    """Act on the selected tasks, and report the changed and the unchanged ones.

    Raises:
        CommandError: a task is not as it should be, with exit code 1.
    """
    scope = Scope.current()
    names = selected(scope, options)
    changed = action(names, act(options, context.clock.now()))
    if changed:
        context.terminal.say(f"{done}: {', '.join(changed)}")
    if then is not None:
        then(changed)
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
        raise CommandError("\n".join(failures), returncode=1)
