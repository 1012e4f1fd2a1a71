"""When a task really starts next by itself; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from .overlap import Policy
from .state import TaskState


@dataclass(frozen=True, slots=True)
class NextStart:
    """The next start of a task.

    Args:
        at: the instant; one that has passed means as soon as a scheduler can.
        reason: ``retry`` for a retry, ``due`` for an occurrence.
    """

    at: datetime
    reason: Literal["retry", "due"]


def next_start(
    state: TaskState, next_run_at: datetime | None, policy: Policy = "coalesce"
) -> NextStart | None:
    """Return the next start, or ``None`` where none will come by itself.

    An occurrence pre-empts a retry that would come after it, except under ``enqueue``, where
    it waits for the retry. A retry that falls under a pause starts at the end of the pause.
    """
    retry = state.pending_retry_until
    if state.paused_since is not None:
        if state.paused_until is None:
            return None
        retry = None if retry is None else max(retry, state.paused_until)
    if retry is not None and (next_run_at is None or retry <= next_run_at or policy == "enqueue"):
        return NextStart(retry, "retry")
    return None if next_run_at is None else NextStart(next_run_at, "due")
