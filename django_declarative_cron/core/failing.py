"""Failures in a row, and the pause that a task asks for when there are too many; pure."""

from __future__ import annotations

from . import events
from .operating import Operating
from .state import TaskState


def too_many(
    state: TaskState, ended: events.TaskEvent, operating: Operating
) -> tuple[events.TaskPausedByFailures, ...]:
    """Pause a task whose failures in a row are a multiple of what it takes.

    So a task that was resumed has as many failures again before it is paused anew.

    Args:
        state: after the end of the run.
        ended: that end.
        operating: of the task.
    """
    most = operating.pause_after_failures
    if most is None or not isinstance(ended, events.TaskRunFailed) or ended.history_only:
        return ()
    if state.paused_since is not None or state.failures % most:
        return ()
    return (
        events.TaskPausedByFailures(
            at=ended.at, task_name=state.name, failures=state.failures, error=ended.error
        ),
    )
