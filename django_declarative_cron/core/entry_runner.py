"""Where the runs of a dict entry are called, and what does not go together there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from .declaration import Target
from .problem import Check
from .reading import Item
from .runners import DJANGO_TASKS, PROCESS, THREAD, is_async, runner_of

LIMITS: Final = ("memory_limit", "cpu_limit")
_OF_ENGINES: Final = ("priority", "backend")


def read_runner(
    item: Item, typed: Mapping[str, Any], target: Target | None, timeout: timedelta | None
) -> str:
    """Choose the runner of an entry; what it cannot do is reported to the item.

    Args:
        item: reports what is refused.
        typed: the keys of the entry whose values have the right type.
        target: what runs, ``None`` where that was refused.
        timeout: of its runs, ``None`` for any time.
    """
    gives_way = typed.get("overlap_policy") == "cancel_previous"
    if target is None:
        return THREAD
    said = typed.get("runner")
    bounds = [key for key in LIMITS if typed.get("options", {}).get(key) is not None]
    to_be_ended = timeout is not None or gives_way or bool(bounds)
    runner = runner_of(said, target, to_be_ended=to_be_ended)
    asynchronous = is_async(target.function)
    if runner in (PROCESS, DJANGO_TASKS) and not target.is_importable:
        reason = f"`{runner}` needs a callback with a dotted path; nothing leads to `{target.text}`"
        item.refuse_field(Check.RUNNER, "runner", said, reason, "Make it a function of a module.")
    if typed.get("atomic") and asynchronous:
        reason = "does not go with an `async def`, whose queries are in no transaction of its run"
        item.refuse_field(Check.RUNNER, "atomic", True, reason, "Write a `def`.")
    elif typed.get("atomic") and runner == DJANGO_TASKS:
        reason = "does not go with `django_tasks`"
        item.refuse_field(Check.RUNNER, "atomic", True, reason, 'Write "runner": "process".')
    for key in _OF_ENGINES if runner != DJANGO_TASKS else ():
        if key in typed.get("options", {}):
            reason, hint = "is for `django_tasks`", 'Write "runner": "django_tasks".'
            item.refuse_field(Check.RUNNER, f"options.{key}", None, reason, hint)
    if bounds and runner != PROCESS:
        reason = f"only a process keeps to it; this task has the runner `{runner}`"
        hint = 'Write "runner": "process".'
        item.refuse_field(Check.RUNNER, f"options.{bounds[0]}", None, reason, hint)
    elif to_be_ended and runner == THREAD and not asynchronous:
        _warn(item, "gives way to the next run" if gives_way else "has a timeout")
    return runner


def _warn(item: Item, what: str) -> None:
    item.warn(
        Check.CANNOT_BE_ENDED,
        f"{what}, and a thread cannot be ended: a callback that does not look at"
        " `run.cancelled` goes on",
        'Write "runner": "process", or look at `run.cancelled` now and then.',
    )
