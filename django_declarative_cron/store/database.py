"""Which database is ours, what it calls the time, and our transactions in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from django.db import Error, connections, models, router, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Now

from ..fields import InstantField
from ..models import ScheduledTask
from . import limits
from .faults import is_conflict
from .stall import watchdog

_CHUNK = 1000
_TRIES = 5

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class _Asking(Protocol):
    @property
    def using(self) -> str: ...


A = TypeVar("A", bound=_Asking)
M = TypeVar("M", bound=models.Model)


class DatabaseNow(Now):
    """Give the database's time as an aware UTC instant on every database."""

    output_field = InstantField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Word the server's clock for PostgreSQL: this instant, not that of the transaction."""
        return self.as_sql(compiler, connection, template="CLOCK_TIMESTAMP()", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Word the server's clock for MySQL and MariaDB, in UTC with microseconds."""
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


def alias() -> str:
    """Give the alias that decides and writes; replicas are never asked."""
    return router.db_for_write(ScheduledTask)


def keeps_anything(using: str) -> bool:
    """Tell whether any value fits into any column, so that fetching a row may fail.

    Args:
        using: database alias.
    """
    return connections[using].vendor == "sqlite"


@contextmanager
def atomic(using: str, idle: float = limits.IDLE) -> Iterator[None]:
    """Open one transaction of ours, durable in what it commits and limited in its waits.

    Inside a transaction of the caller's it is a part of that, without limits of its own.

    Args:
        using: database alias.
        idle: seconds that it stays open while its process does nothing, at most.
    """
    connection = connections[using]
    if _is_callers(connection):
        with transaction.atomic(using=using):
            yield
        return
    with direct(using), limits.around(connection, idle), transaction.atomic(using=using):
        limits.limit(connection, idle)
        yield


@contextmanager
def direct(using: str) -> Iterator[None]:
    """Speak to the database without waiting for ever, and leave no transaction open.

    Args:
        using: database alias.
    """
    connection = connections[using]
    if connection.in_atomic_block:
        yield
        return
    with watchdog.watching(connection), committing(connection):
        yield


def _is_callers(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether a transaction is open already, by ``atomic`` or by the caller's own hands."""
    if connection.in_atomic_block:
        return True
    managed = connection.settings_dict["AUTOCOMMIT"] and connection.connection is not None
    return bool(managed and not connection.autocommit)


@contextmanager
def committing(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Commit each statement also where the project has switched ``AUTOCOMMIT`` off."""
    if connection.settings_dict["AUTOCOMMIT"] or connection.autocommit:
        yield
        return
    connection.commit()
    connection.set_autocommit(True)
    try:
        yield
    except BaseException:
        # A connection that is lost has no transaction to begin; what has ended it is to be told.
        with suppress(Error):
            connection.set_autocommit(False)
        raise
    connection.set_autocommit(False)


def again_after_conflict(
    function: Callable[Concatenate[A, P], R],
) -> Callable[Concatenate[A, P], R]:
    """Retry a transaction that failed with a deadlock or a serialization error.

    Args:
        function: one transaction; its first argument names the database.
    """

    @wraps(function)
    def call(who: A, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(_TRIES - 1):
            try:
                return function(who, *args, **kwargs)
            except Error as error:
                if not is_conflict(error) or connections[who.using].in_atomic_block:
                    raise
        return function(who, *args, **kwargs)

    return call


def lock(
    using: str, rows: models.QuerySet[M], field: str, expected: Collection[Any]
) -> tuple[list[M], set[Any]]:
    """Lock rows in the order of their keys; leave out those that somebody else holds.

    Args:
        using: database alias; in a transaction.
        rows: the rows.
        field: name of the field they are known by.
        expected: the values of that field that may be found.

    Returns:
        the locked rows, and the values of those that somebody else holds.
    """
    found = list(lockable(using, rows.order_by("pk")))
    return found, held_elsewhere(using, rows, field, expected, found)


def held_elsewhere(
    using: str, rows: models.QuerySet[M], field: str, expected: Collection[Any], found: list[M]
) -> set[Any]:
    """Give the values of rows that were left out as they were locked.

    Args:
        using: database alias; in the same transaction.
        rows: the rows, without their locks.
        field: name of the field they are known by.
        expected: the values of that field that may be found.
        found: the locked rows.
    """
    if len(found) == len(expected) or not _skips_locked(using):
        return set()
    there = set(rows.values_list(field, flat=True))
    return there - {getattr(row, field) for row in found}


def lockable(using: str, rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """Lock rows as they are read, but for those that somebody else holds.

    A database that cannot leave them out waits for them, within its limit.

    Args:
        using: database alias; in a transaction.
        rows: the rows.
    """
    if _skips_locked(using):
        return rows.select_for_update(skip_locked=True)
    return current(using, rows)


def current(using: str, rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """Lock rows as they are read, so that they are read as they are stored.

    A plain read inside a caller's transaction may show what was stored when that began;
    whatever is written back has to be read like this.

    Args:
        using: database alias; in a transaction.
        rows: the rows.
    """
    can_lock = connections[using].features.has_select_for_update
    return rows.select_for_update() if can_lock else rows


def _skips_locked(using: str) -> bool:
    return connections[using].features.has_select_for_update_skip_locked


def chunks(names: Iterable[T], size: int = 0) -> Iterator[list[T]]:
    """Give names or ids in lists that fit into one statement.

    Args:
        names: any number of them.
        size: of the lists, where they are of something larger.
    """
    iterator = iter(names)
    while chunk := list(islice(iterator, size or _CHUNK)):
        yield chunk
