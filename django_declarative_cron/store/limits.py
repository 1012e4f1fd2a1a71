"""Limit how long a transaction of ours may wait, for that transaction only.

No start-up parameter and nothing that outlives the transaction is used, so a pooler that gives
each transaction another server connection works.

- **PostgreSQL**: local limits for locks, for each statement, and for a process that was halted
  in the middle, whose locks would keep all others from working. The isolation level is READ
  COMMITTED whatever the project's own is: rows that are read after the deployment's row is locked
  must be read as they are stored by then.
- **MariaDB, MySQL**: the wait for a row lock, and for a halted process. They are variables of the
  session, which are restored afterwards.
- **SQLite**: the write lock is taken by the first statement, while SQLite still waits for it;
  after a read it would be refused. The wait is the connection's own ``timeout``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from math import ceil
from typing import TYPE_CHECKING, Any

from django.db import Error, transaction
from django.db.models import F

from ..models import SchedulerState

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

LOCK = 5
"""Seconds that a statement waits for a row that another transaction has locked."""

STATEMENT = 10
"""Seconds that a statement takes at most."""

PAGE = 5
"""Seconds that a page waits for one statement, at most."""

IDLE = 15
"""Seconds that a transaction stays open while its process does nothing, at most."""

_READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
_POSTGRESQL_WAITS = (
    "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)"
)
_POSTGRESQL_ALL = (
    f"{_POSTGRESQL_WAITS}, set_config('idle_in_transaction_session_timeout', %s, true)"
)
_MYSQL = (
    "SET @declarative_cron_wait = @@innodb_lock_wait_timeout,"
    " @declarative_cron_idle = @@wait_timeout,"
    " SESSION innodb_lock_wait_timeout = {lock}, SESSION wait_timeout = {idle}"
)
_MYSQL_AS_BEFORE = (
    "SET SESSION innodb_lock_wait_timeout = @declarative_cron_wait,"
    " SESSION wait_timeout = @declarative_cron_idle"
)


def limit(connection: BaseDatabaseWrapper, idle: float = IDLE) -> None:
    """Limit the waits of the outermost transaction, as its first statements.

    Args:
        connection: in its outermost transaction.
        idle: seconds that it stays open while its process does nothing, where less than ``IDLE``.
    """
    if connection.vendor == "postgresql":
        waits = [f"{LOCK}s", f"{STATEMENT}s", f"{1000 * min(idle, IDLE):.0f}ms"]
        with connection.cursor() as cursor:
            cursor.execute(_READ_COMMITTED)
            cursor.execute(_POSTGRESQL_ALL, waits)
    else:
        _lock_for_writing(connection)


def _lock_for_writing(connection: BaseDatabaseWrapper) -> None:
    """Take the write lock of an SQLite file: an update of no row does."""
    if connection.vendor == "sqlite":
        nothing = SchedulerState.objects.using(connection.alias).filter(pk__lt=0)
        nothing.update(term=F("term"))


@contextmanager
def around(connection: BaseDatabaseWrapper, idle: float = IDLE) -> Iterator[None]:
    """Limit the waits of a whole transaction where that cannot be done inside it.

    Args:
        connection: in no transaction.
        idle: seconds that it stays open while its process does nothing, where less than ``IDLE``.
    """
    if connection.vendor != "mysql":
        yield
        return
    _execute(connection, _MYSQL.format(lock=LOCK, idle=ceil(min(idle, IDLE))))
    try:
        yield
    finally:
        # A connection that is lost has no variables to restore.
        with suppress(Error):
            _execute(connection, _MYSQL_AS_BEFORE)


def isolate(connection: BaseDatabaseWrapper) -> None:
    """Let the next transaction, a run's own, read at its end the rows as they are stored then."""
    if connection.vendor == "mysql":
        _execute(connection, _READ_COMMITTED)


def begin(connection: BaseDatabaseWrapper) -> None:
    """Begin the transaction of a run: it may take long, and only its end is limited."""
    if connection.vendor == "postgresql":
        _execute(connection, _READ_COMMITTED)
    else:
        _lock_for_writing(connection)


def limit_the_end(connection: BaseDatabaseWrapper) -> None:
    """Limit the rest of the transaction of a run: its result, and its commit."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRESQL_WAITS, [f"{LOCK}s", f"{STATEMENT}s"])


def _execute(connection: BaseDatabaseWrapper, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@contextmanager
def reading(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let the server stop each statement that takes longer than ``PAGE``.

    SQLite has no server and no such limit: who reads holds nobody up.

    Args:
        connection: used for reading alone within.
    """
    guards = {"postgresql": _in_transaction, "mysql": _in_session}
    with guards.get(connection.vendor, nullcontext)(connection):
        yield


@contextmanager
def _in_transaction(connection: BaseDatabaseWrapper) -> Iterator[None]:
    # A savepoint inside another transaction: that one is usable after a statement was stopped.
    with transaction.atomic(connection.alias):
        _execute(connection, f"SET LOCAL statement_timeout = '{PAGE}s'")
        yield


@contextmanager
def _in_session(connection: BaseDatabaseWrapper) -> Iterator[None]:
    server: Any = connection
    name, most = "max_statement_time", PAGE
    if not server.mysql_is_mariadb:
        name, most = "max_execution_time", 1000 * PAGE
    _execute(connection, f"SET @declarative_cron_page = @@{name}, SESSION {name} = {most}")
    try:
        yield
    finally:
        # A connection that is lost has nothing to be put back.
        with suppress(Error):
            _execute(connection, f"SET SESSION {name} = @declarative_cron_page")
