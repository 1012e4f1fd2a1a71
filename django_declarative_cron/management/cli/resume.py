"""``cron resume``: end pauses; occurrences under them do not run."""

from __future__ import annotations

from ...models import ScheduledTask
from ...store import operator_actions
from .subcommand import Context, Options, Subcommand
from .task_actions import Unchanged, add_arguments, perform


def _answer(context: Context, options: Options) -> None:
    perform(context, options, "Resumed", operator_actions.resume, _why_not_resumed)


def _why_not_resumed(task: ScheduledTask) -> Unchanged:
    if not task.enabled:
        return Unchanged("is disabled by its declaration: enable it there", False)
    return Unchanged("was not paused")


RESUME = Subcommand(
    "resume", "end pauses; occurrences under them do not run", add_arguments, _answer
)
