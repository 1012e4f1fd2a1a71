"""Which rows somebody else holds, for whoever has waited for them in vain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from django.db import Error, OperationalError, connections

from ..models import ScheduledTask, SchedulerState
from . import database, limits
from .faults import is_lock_timeout

_NAMED = 10


class HeldError(OperationalError):
    """Tell that somebody else holds rows that were waited for in vain; nothing was changed.

    Args:
        text: what was waited for, and what to do.
        names: of the tasks whose rows they are, as far as that is known.
    """

    def __init__(self, text: str, names: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.names = tuple(names)


@contextmanager
def naming_what_is_held(using: str, deployment: str) -> Iterator[None]:
    """Say of a wait in vain what it was for.

    Args:
        using: database alias.
        deployment: whose rows the block works on.

    Raises:
        HeldError: the block waited too long for a lock.
    """
    try:
        yield
    except OperationalError as error:
        if not is_lock_timeout(error) or connections[using].in_atomic_block:
            raise
        raise _held_error(using, deployment) from error


def _held_error(using: str, deployment: str) -> HeldError:
    if connections[using].vendor == "sqlite":
        return HeldError(
            "another process kept the database file locked for longer than this one waits"
            " (OPTIONS['timeout'] of the database)"
        )
    whole = False
    names: list[str] = []
    with suppress(Error):
        whole, names = _held(using, deployment)
    found = [f"deployment {deployment!r}"] if whole else [f"task {name!r}" for name in names]
    what = f" of {', '.join(found)}" if found else ""
    return HeldError(
        f"rows{what} are locked by another transaction, which did not end within {limits.LOCK} s;"
        " end it, then try again",
        names,
    )


def _held(using: str, deployment: str) -> tuple[bool, list[str]]:
    """Tell what is locked now: the deployment's own row, or tasks."""
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    tasks = ScheduledTask.objects.using(using).filter(scheduler__in=states.values("pk"))
    with database.atomic(using):
        _, held = database.lock(using, states, "deployment", [deployment])
        if held:
            return True, []
        _, names = database.lock(using, tasks, "name", range(tasks.count()))
    return False, sorted(names)[:_NAMED]
