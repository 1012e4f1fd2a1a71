"""Occurrences that people let pass: their rows say who did, and the acts are over."""

from __future__ import annotations

from collections.abc import Iterable

from ..models import TaskOverride, TaskRun
from .guard import Locked


def sign(held: Locked, using: str, unserved: Iterable[TaskRun]) -> None:
    """Write into rows that are not saved yet who let their occurrence pass, and why.

    Args:
        held: the locked row of the deployment.
        using: database alias.
        unserved: rows of occurrences that did not run; those of other reasons stay as they are.
    """
    passed = {run.task_name: run for run in unserved if run.reason == "skip_next"}
    if not passed:
        return
    acts = TaskOverride.objects.using(using).filter(
        scheduler=held.row, kind=TaskOverride.Kind.SKIP, ended_at=None, task_name__in=list(passed)
    )
    # The newest is the one: it ended those before it, and its occurrence may have moved since.
    for act in acts.order_by("id"):
        told = {"author": act.author, **({"note": act.note} if act.note else {})}
        passed[act.task_name].detail = told
    acts.update(ended_at=held.database_now)
