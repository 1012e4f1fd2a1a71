"""Database connections around a callback: none grows old, none stays broken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..store import planned
from ..store.database import direct
from ..store.faults import spoils_connection

CONNECTING = 10
"""Seconds that an attempt to connect takes at most, where the project says nothing."""

P = ParamSpec("P")
R = TypeVar("R")


class TransactionLeftOpenError(RuntimeError):
    """Tell that a callback returned inside a transaction, whose work is lost."""


def refresh() -> None:
    """Close the connections of this thread that are too old or unusable.

    One that is in a transaction is somebody's: a test's, or a caller's.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def limit_connecting(alias: str) -> None:
    """Let no attempt to connect last for ever, in this process; a project's own limit stays.

    Args:
        alias: of the database.
    """
    connection = connections[alias]
    if connection.vendor in ("postgresql", "mysql"):
        # It is the driver's own, and not told to the server: poolers do not mind.
        options = connection.settings_dict.setdefault("OPTIONS", {})
        options.setdefault("connect_timeout", CONNECTING)


def renew(error: BaseException) -> None:
    """Go on with new connections in this thread after an error that makes one doubtful.

    A server that was made read-only by a failover still answers: asking it whether the
    connection is usable would keep the connection for ever.

    Args:
        error: what the database said.
    """
    if not spoils_connection(error):
        refresh()
        return
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            if getattr(connection, "pool", None) and connection.connection:
                # A pool would hand out again what it gets back open.
                connection.connection.close()
            connection.close()


def clean_up() -> None:
    """Let nothing of a callback reach the next one in this thread.

    Where the project has switched ``AUTOCOMMIT`` off, every query leaves a transaction open:
    what was not committed is rolled back, and that is no fault.

    Raises:
        TransactionLeftOpenError: the callback left a transaction open; it is rolled back.
    """
    every = connections.all(initialized_only=True)
    broken = [c for c in every if _is_broken(c)]
    for connection in broken:
        connection.close()
        del connections[connection.alias]
    for connection in every:
        _roll_back(connection)
    refresh()
    if broken:
        names = ", ".join(connection.alias for connection in broken)
        raise TransactionLeftOpenError(
            f"the callback left a transaction open on {names}; what it wrote there is rolled back"
        )


def close_every() -> None:
    """Close every connection, those that a pool keeps too: a child must not share one."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def leave() -> None:
    """Close the connections of this thread, which asks no more; a pool gets them as they were."""
    for connection in connections.all(initialized_only=True):
        if getattr(connection, "pool", None):
            # One that is silent keeps nobody from leaving.
            with suppress(Error), direct(connection.alias):
                planned.forget(connection)
    connections.close_all()


def then_close(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call in a thread of a pool, and leave no connection there.

    Args:
        function: what is called.
        args: of the call.
        kwargs: of the call.
    """
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()


def _roll_back(connection: BaseDatabaseWrapper) -> None:
    is_open = connection.connection is not None and not connection.in_atomic_block
    if is_open and not connection.settings_dict["AUTOCOMMIT"]:
        with suppress(Error):  # One that is lost has nothing pending.
            connection.rollback()


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block or connection.needs_rollback:
        return True
    wanted = connection.settings_dict["AUTOCOMMIT"]
    return connection.connection is not None and connection.autocommit != wanted
