"""Where the runs of a task are called, as far as a declaration decides."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from .declarations.declaration import Target

THREAD: Final = "thread"
PROCESS: Final = "process"
DJANGO_TASKS: Final = "django_tasks"
EXTERNAL: Final = "external"
"""Not said by declarations: it follows from a type that only workers outside have."""


def is_async(function: Callable[..., Any]) -> bool:
    """Return whether calling a callback gives a coroutine."""
    call = getattr(function, "__call__", None)  # noqa: B004 - its function is asked, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def runner_of(said: str | None, target: Target, *, to_be_ended: bool) -> str:
    """Choose the runner of a task; one that was named stays.

    A thread cannot be ended from outside, a coroutine and a process can. So a synchronous
    callback whose runs may have to be ended gets processes, where they can find it.
    """
    if said is not None or target.runner is not None:
        return said or target.runner or THREAD
    if to_be_ended and target.is_importable and not is_async(target.function):
        return PROCESS
    return THREAD
