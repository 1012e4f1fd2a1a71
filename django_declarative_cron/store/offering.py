"""A run as it is offered to external workers."""

from __future__ import annotations

from typing import Any

from ..core.declaration import Declaration
from ..models import Outcome, TaskRun


def offer(run: TaskRun, declaration: Declaration) -> TaskRun:
    """Let a run that was decided wait for a worker, in memory.

    Args:
        run: the row, not yet written.
        declaration: of its task.
    """
    run.outcome, run.started_at, run.instance_id = Outcome.WAITING, None, None
    run.waits_in = declaration.queue
    run.job = job_of(declaration)
    return run


def job_of(declaration: Declaration) -> dict[str, Any]:
    """Give what a worker is told of a task's runs, JSON-native.

    Args:
        declaration: of the task.
    """
    return {
        "type": declaration.target.text,
        "args": list(declaration.target.args),
        "queue": declaration.queue,
        "tags": list(declaration.tags),
        "meta": dict(declaration.meta),
        "timeout": None if declaration.timeout is None else declaration.timeout.total_seconds(),
        "max_attempts": declaration.retry.max_attempts,
    }
