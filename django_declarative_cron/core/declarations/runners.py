"""Choose the runner of an entry, and refuse keys that it does not support."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from ..overlap import CANCELLING
from .declaration import Target
from .item import Item
from .problems import Check

THREAD: Final = "thread"
PROCESS: Final = "process"
DJANGO_TASKS: Final = "django_tasks"
EXTERNAL: Final = "external"
"""Declarations cannot name it: it follows from a type that only external workers have."""


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a callback returns a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004 - its function is needed
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


LIMITS: Final = ("memory_limit", "cpu_limit")
_OF_ENGINES: Final = ("priority", "backend")
_WRITE_PROCESS: Final = 'Write "runner": "process".'


def read_runner(
    item: Item, typed: Mapping[str, Any], target: Target | None, timeout: timedelta | None
) -> str:
    """Return the runner of an entry; keys that it does not support are reported.

    A coroutine and a process can be ended from outside, a thread cannot. So a synchronous
    callback with runs that may have to be ended gets a process, if a process can import it.
    """
    if target is None:
        return THREAD
    options = typed.get("options", {})
    gives_way = typed.get("overlap_policy") in CANCELLING
    limits = [key for key in LIMITS if options.get(key) is not None]
    to_be_ended = timeout is not None or gives_way or bool(limits)
    is_atomic = typed.get("atomic", False)
    is_coroutine = (to_be_ended or is_atomic) and is_async(target.function)
    needs_process = to_be_ended and target.is_importable and not is_coroutine
    named = typed.get("runner") or target.runner
    runner = named or (PROCESS if needs_process else THREAD)
    if runner in (PROCESS, DJANGO_TASKS) and not target.is_importable:
        reason = f"`{runner}` needs a callback with a dotted path; nothing leads to `{target.text}`"
        hint = "Make it a function of a module."
        item.refuse_field(Check.RUNNER, "runner", typed.get("runner"), reason, hint)
    if is_atomic:
        _refuse_atomic(item, runner, is_coroutine=is_coroutine)
    if runner != DJANGO_TASKS:
        _refuse_engine_options(item, options)
    if limits and runner != PROCESS:
        reason = f"only a process keeps to it; this task has the runner `{runner}`"
        item.refuse_field(Check.RUNNER, f"options.{limits[0]}", None, reason, _WRITE_PROCESS)
    elif to_be_ended and runner == THREAD and not is_coroutine:
        _warn_of_thread(item, "gives way to the next run" if gives_way else "has a timeout")
    return runner


def _refuse_atomic(item: Item, runner: str, *, is_coroutine: bool) -> None:
    if is_coroutine:
        reason = (
            "cannot be combined with an `async def`, whose queries are in no transaction of its run"
        )
        item.refuse_field(Check.RUNNER, "atomic", True, reason, "Write a `def`.")
    elif runner == DJANGO_TASKS:
        reason = "cannot be combined with `django_tasks`"
        item.refuse_field(Check.RUNNER, "atomic", True, reason, _WRITE_PROCESS)


def _refuse_engine_options(item: Item, options: Mapping[str, Any]) -> None:
    for key in _OF_ENGINES:
        if key in options:
            reason, hint = "is for `django_tasks`", 'Write "runner": "django_tasks".'
            item.refuse_field(Check.RUNNER, f"options.{key}", None, reason, hint)


def _warn_of_thread(item: Item, what: str) -> None:
    item.warn(
        Check.CANNOT_BE_ENDED,
        f"{what}, and a thread cannot be ended: a callback that does not look at"
        " `run.cancelled` goes on",
        'Write "runner": "process", or look at `run.cancelled` now and then.',
    )
