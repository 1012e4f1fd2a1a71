"""A run's own database work and its result in one transaction.

The transaction is the callback's; only its end is ours: there the deployment's row is
locked, as for every result, and the run must still be this instance's. A run that was taken
over meanwhile has its work rolled back with the result that nobody asked for any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any

from django.db import connections, transaction

from ..core import events
from . import database, limits, results
from .guard import Member
from .results import Result


class RunTakenOverError(RuntimeError):
    """Tell that a run is not this instance's any more, so that its work is rolled back."""


class UnbalancedTransactionError(RuntimeError):
    """Tell that a callback left a transaction or savepoint open within that of its run."""


@contextmanager
def transaction_of_run(using: str, failed: list[BaseException]) -> Iterator[None]:
    """Open the transaction in which a callback works.

    Args:
        using: alias of the database that keeps the state.
        failed: takes the exceptions of the functions that the callback gave to ``on_commit``.
            Its work is committed then, so that they end neither the run nor one another.
    """
    connection = connections[using]
    with database.committing(connection):
        limits.isolate(connection)
        with transaction.atomic(using=using, durable=True):
            limits.begin(connection)
            yield
            hooks: list[Any] = connection.run_on_commit
            hooks[:] = [
                (savepoints, hook if is_robust else partial(_outlived, hook, failed), is_robust)
                for savepoints, hook, is_robust in hooks
            ]


def _outlived(hook: Callable[[], object], failed: list[BaseException]) -> None:
    try:
        hook()
    except BaseException as error:
        failed.append(error)


def record(member: Member, result: Result, now: datetime) -> None:
    """Write the success of a run in the transaction of its work.

    Args:
        member: whose run it is.
        result: of the run.
        now: the instant.

    Raises:
        RunTakenOverError: the run is somebody else's by now, or somebody holds its rows.
        UnbalancedTransactionError: the callback left a savepoint open.
        django.db.Error: nothing was written.
    """
    connection = connections[member.using]
    if not connection.in_atomic_block or connection.savepoint_ids:
        raise UnbalancedTransactionError(
            "the callback left a transaction open or closed that of its run; "
            "what it wrote is rolled back"
        )
    limits.limit_the_end(connection)
    recorded = results.record_here(member, result, now)
    if not any(isinstance(each, events.TaskRunCompleted) for each in recorded.events):
        raise RunTakenOverError(
            "the run was taken over or cancelled meanwhile, its rows are locked, or the callback "
            "left another tenant or schema set on the connection; its writes are rolled back"
        )
