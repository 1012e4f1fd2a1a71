"""Database connections: their state around a callback, and outages of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import ParamSpec, TypeVar

from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..core import events
from ..core.backoff import Backoff
from ..exceptions import words_of
from ..formatting import format_count
from ..signals import log_line, publish
from ..store import database
from .clock import Clock

CONNECTING = 10
"""Seconds that an attempt to connect takes at most, unless the project sets a limit."""

P = ParamSpec("P")
R = TypeVar("R")


class TransactionLeftOpenError(RuntimeError):
    """Raised when a callback returns inside a transaction; its writes are lost."""


def refresh() -> None:
    """Close the connections of this thread that are too old or unusable.

    A connection in a transaction belongs to a test or a caller, so it stays.
    """
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def limit_connecting(alias: str) -> None:
    """Limit the time of attempts to connect in this process; a project's own limit stays."""
    connection = connections[alias]
    if connection.vendor in ("postgresql", "mysql"):
        # The driver keeps to it and does not send it to the server, so poolers accept it.
        options = connection.settings_dict.setdefault("OPTIONS", {})
        options.setdefault("connect_timeout", CONNECTING)


def leave_pool(alias: str) -> None:
    """Connect this thread outside the project's pool, so that no callback delays it."""
    connection = connections[alias]
    options = connection.settings_dict.get("OPTIONS", {})
    if not options.get("pool") or connection.in_atomic_block:
        return
    connection.close()
    direct_options = {name: value for name, value in options.items() if name != "pool"}
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": direct_options}


@contextmanager
def own_connections() -> Iterator[None]:
    """Leave the pool in a thread of ours, and close its connections at the end of the block."""
    leave_pool(database.alias())
    try:
        yield
    finally:
        connections.close_all()


def renew(error: BaseException) -> None:
    """Open new connections in this thread after an error that makes one doubtful.

    A server that was made read-only by a failover still answers: asking it whether the
    connection is usable would keep the connection for ever.
    """
    if not database.spoils_connection(error):
        refresh()
        return
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            _close_for_good(connection)


def clean_up() -> None:
    """Close every connection of this thread, and drop Django's objects for them.

    A callback may leave a tenant, a setting of the session or a debugging cursor on either,
    which must not reach the next callback.

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
    """Close every connection, also those of a pool: a child process must not share one."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()


def then_close(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call in a thread of a pool, and close the connections of that thread."""
    try:
        return function(*args, **kwargs)
    finally:
        connections.close_all()


def _drop(connection: BaseDatabaseWrapper) -> None:
    with suppress(Error):  # A lost connection has nothing pending.
        _close_for_good(connection)
        if connection.connection is not None and not connection.in_atomic_block:
            # A database in memory lasts as long as its connection.
            if not connection.settings_dict["AUTOCOMMIT"]:
                connection.rollback()
            return
    del connections[connection.alias]


def _close_for_good(connection: BaseDatabaseWrapper) -> None:
    """Close a connection, also one that a pool would reuse as it was left."""
    if getattr(connection, "pool", None) and connection.connection:
        connection.connection.close()
    connection.close()


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block or connection.needs_rollback:
        return True
    wanted = connection.settings_dict["AUTOCOMMIT"]
    return connection.connection is not None and connection.autocommit != wanted


class Outage:
    """Report the first refusal, then at intervals that double to a minute, and the recovery.

    Args:
        clock: by which the intervals are measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._began = 0.0
        self._backoff = Backoff()
        self._is_over = True

    def fails(self, doing: str, error: Exception, now: datetime) -> None:
        """Count a refusal, and report it where it is time."""
        monotonic = self._clock.monotonic()
        if not self._failures:
            self._began, self._backoff = monotonic, Backoff()
        self._failures += 1
        self._is_over = False
        if self._backoff.line(monotonic):
            text = f"{type(error).__name__}: {words_of(error)}"
            failures = self._failures
            publish([events.PersistenceFailed(at=now, doing=doing, error=text, failures=failures)])

    def ends(self) -> None:
        """Take note of a pass that succeeded; the second one without a refusal is a recovery."""
        if not self._is_over:
            self._is_over = True
        elif self._failures:
            failures, self._failures = self._failures, 0
            refusals = format_count(failures, "refusal")
            seconds = self._clock.monotonic() - self._began
            log_line("database_recovered", refusals=refusals, seconds=seconds)
