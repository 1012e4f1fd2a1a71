"""Database connections around a callback: none grows old, none stays broken."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..store.database import spoils_connection

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
    """Let no attempt to connect last for ever, in this process; a project's own limit stays."""
    connection = connections[alias]
    if connection.vendor in ("postgresql", "mysql"):
        # It is the driver's own, and not told to the server: poolers do not mind.
        options = connection.settings_dict.setdefault("OPTIONS", {})
        options.setdefault("connect_timeout", CONNECTING)


def leave_pool(alias: str) -> None:
    """Let this thread connect outside the project's pool, so that it waits behind no callback."""
    connection = connections[alias]
    options = connection.settings_dict.get("OPTIONS", {})
    if not options.get("pool") or connection.in_atomic_block:
        return
    connection.close()
    direct_options = {name: value for name, value in options.items() if name != "pool"}
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": direct_options}


def renew(error: BaseException) -> None:
    """Go on with new connections in this thread after an error that makes one doubtful.

    A server that was made read-only by a failover still answers: asking it whether the
    connection is usable would keep the connection for ever.
    """
    if not spoils_connection(error):
        refresh()
        return
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            _close_for_good(connection)


def clean_up() -> None:
    """Let nothing of a callback reach the next one in this thread.

    Every connection is closed, and the object that Django has for it goes too: a tenant, a
    setting of the session or a cursor for debugging may be left on either.

    Raises:
        TransactionLeftOpenError: the callback left a transaction open; it is rolled back.
    """
    every = connections.all(initialized_only=True)
    broken = [connection.alias for connection in every if _is_broken(connection)]
    for connection in every:
        _drop(connection)
    if broken:
        raise TransactionLeftOpenError(
            f"the callback left a transaction open on {', '.join(broken)}; "
            "what it wrote there is rolled back"
        )


def close_every() -> None:
    """Close every connection, those that a pool keeps too: a child must not share one."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def then_close(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call in a thread of a pool, and leave no connection there."""
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()


def _drop(connection: BaseDatabaseWrapper) -> None:
    with suppress(Error):  # One that is lost has nothing pending.
        _close_for_good(connection)
        if connection.connection is not None and not connection.in_atomic_block:
            # A database in memory lasts as long as its connection.
            if not connection.settings_dict["AUTOCOMMIT"]:
                connection.rollback()
            return
    del connections[connection.alias]


def _close_for_good(connection: BaseDatabaseWrapper) -> None:
    """Close a connection, also one that a pool would hand out again as it was left."""
    if getattr(connection, "pool", None) and connection.connection:
        connection.connection.close()
    connection.close()


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block or connection.needs_rollback:
        return True
    wanted = connection.settings_dict["AUTOCOMMIT"]
    return connection.connection is not None and connection.autocommit != wanted
