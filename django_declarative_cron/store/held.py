"""Which rows somebody else holds, for whoever has waited for them in vain."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import Error, OperationalError, connections

from ..models import ScheduledTask, SchedulerState
from . import database, limits
from .faults import is_lock_timeout

_NAMED = 10


@contextmanager
def naming_what_is_held(using: str, deployment: str) -> Iterator[None]:
    """Say of a wait in vain what it was for.

    Args:
        using: database alias.
        deployment: whose rows the block works on.

    Raises:
        OperationalError: the block waited too long for a lock.
    """
    try:
        yield
    except OperationalError as error:
        if not is_lock_timeout(error) or connections[using].in_atomic_block:
            raise
        raise OperationalError(_words(using, deployment)) from error


def _words(using: str, deployment: str) -> str:
    if connections[using].vendor == "sqlite":
        return (
            "another process kept the database file locked for longer than this one waits"
            " (OPTIONS['timeout'] of the database)"
        )
    found: list[str] = []
    with suppress(Error):
        found = _held(using, deployment)
    what = f" of {', '.join(found)}" if found else ""
    return (
        f"rows{what} are locked by another transaction, which did not end within {limits.LOCK} s;"
        " end it, then try again"
    )


def _held(using: str, deployment: str) -> list[str]:
    """Name what is locked now: the deployment's own row, or tasks."""
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    tasks = ScheduledTask.objects.using(using).filter(scheduler__in=states.values("pk"))
    with database.atomic(using):
        _, held = database.lock(using, states, "deployment", [deployment])
        if held:
            return [f"deployment {deployment!r}"]
        _, names = database.lock(using, tasks, "name", range(tasks.count()))
    return [f"task {name!r}" for name in sorted(names)[:_NAMED]]
