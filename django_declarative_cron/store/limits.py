"""How long a transaction of ours may wait, set for the transaction and gone with it.

No start-up parameter and nothing that outlives the transaction: a pooler that gives
each transaction another server connection works.

- **PostgreSQL**: ``SET LOCAL`` limits for locks, for each statement, and for a process
  that was halted in the middle, whose locks would keep all others from working. The
  isolation level is READ COMMITTED whatever the project's own is: what is read after
  the deployment's row is locked has to be what is stored by then. And a server that has not
  counted its rows since many came is kept from reading all of them where a few are meant.
- **MariaDB, MySQL**: the wait for a row lock, and for a process that was halted. They are
  variables of the session, which are put back afterwards.
- **SQLite**: the write lock is taken at once, while SQLite still waits for it; asked for
  after a read it would be refused. The wait is the connection's own ``timeout``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Any

from django.db import Error, InternalError, transaction

from ..models import SchedulerState

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

LOCK = 5
"""Seconds that a statement waits for a row that somebody else holds."""

STATEMENT = 10
"""Seconds that a statement takes at most."""

PAGE = 5
"""Seconds that a page waits for one statement, at most."""

IDLE = 15
"""Seconds that a transaction stays open while its process does nothing, at most."""

BY_KEY = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;"
    " SET LOCAL enable_mergejoin = off"
)
"""Lets PostgreSQL find a few rows by an index, whatever it believes of the size of a table."""

_POSTGRESQL = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    " SET LOCAL lock_timeout = '{lock}s'; SET LOCAL statement_timeout = '{statement}s';"
    " SET LOCAL idle_in_transaction_session_timeout = '{idle:.0f}ms'"
)
_OF_A_RUN = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
_POSTGRESQL_END = "SET LOCAL lock_timeout = '{lock}s'; SET LOCAL statement_timeout = '{statement}s'"
_MYSQL = (
    "SET @declarative_cron_wait = @@innodb_lock_wait_timeout,"
    " @declarative_cron_idle = @@wait_timeout,"
    " SESSION innodb_lock_wait_timeout = {lock}, SESSION wait_timeout = {idle}"
)
_MYSQL_AS_BEFORE = (
    "SET SESSION innodb_lock_wait_timeout = @declarative_cron_wait,"
    " SESSION wait_timeout = @declarative_cron_idle"
)


@contextmanager
def inside(
    connection: BaseDatabaseWrapper, idle: float = IDLE, *, of_many: bool = False
) -> Iterator[Way | None]:
    """Limit what happens in a transaction, from its first statement on.

    Args:
        connection: in its outermost transaction.
        idle: seconds that it stays open while its process does nothing, where less than ``IDLE``.
        of_many: it may be about all rows, which are not found one by one.
    """
    if connection.vendor == "postgresql":
        sql = _POSTGRESQL.format(lock=LOCK, statement=STATEMENT, idle=1000 * min(idle, IDLE))
        sql = sql if of_many else f"{sql}; {BY_KEY}"
        way = Way(connection, sql)
        with connection.execute_wrapper(way):
            yield way
        return
    limit(connection)
    yield None


class Way:
    """The way of a transaction's statements to the server.

    Args:
        connection: in its outermost transaction.
        sql: goes ahead of the first statement.
    """

    def __init__(self, connection: BaseDatabaseWrapper, sql: str) -> None:
        self._connection = connection
        self._sql = sql
        self._last: str | None = None
        self._is_over = False
        self.may_end = False

    def end_with(self, text: str) -> None:
        """Expect the commit at the end of a text; what comes after that is refused.

        Only where ``may_end`` says so: it began by such a text itself.

        Args:
            text: is sent next, unless what others put around statements asks something before it,
                and as it is, unless they add something to it.
        """
        self._last = text

    def __call__(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Send a statement; what Django calls."""
        if self._is_over:
            # It would be committed alone.
            raise InternalError("The transaction has ended with the statement before.")
        ahead, self._sql = self._sql, ""
        self._is_over = self._last is not None and self._last in sql
        if not ahead:
            return execute(sql, params, many, context)
        if many or not takes_several(self._connection):
            # Without what surrounds our statements: that is for the one that follows.
            context["cursor"].cursor.execute(ahead)
            return execute(sql, params, many, context)
        with _beginning(self._connection) as begin:
            answer = execute(f"{begin}{ahead}; {sql}", params, many, context)
            self.may_end = bool(begin)
        cursor = context["cursor"]
        # The first that found anything is the first that was asked.
        while not has_rows(cursor) and cursor.nextset():
            pass
        return answer


@contextmanager
def _beginning(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Let a transaction begin by the text that is sent: the driver would wait for it to begin."""
    raw: Any = connection.connection
    if not is_drivers_own(raw) or not _is_idle(raw):
        yield ""
        return
    # What is open already, the driver commits and rolls back as ever.
    raw.autocommit = True
    try:
        yield "BEGIN; "
    finally:
        # It was never sent: what follows is not to be committed statement by statement.
        if _is_idle(raw):
            raw.autocommit = False


def _is_idle(raw: Any) -> bool:
    from psycopg.pq import TransactionStatus

    return bool(raw.info.transaction_status == TransactionStatus.IDLE)


def is_drivers_own(raw: object) -> bool:
    """Tell whether a connection is psycopg's, and not what pools of others lend in its place.

    Args:
        raw: what Django takes for the driver's connection.
    """
    return _is_psycopg3() and isinstance(raw, _driver())


@cache
def _driver() -> type[Any]:
    import psycopg

    return psycopg.Connection


def takes_several(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether several statements may be sent as one text, and the last one be read.

    Args:
        connection: to any database.
    """
    features: Any = connection.features
    if connection.vendor != "postgresql" or features.uses_server_side_binding:
        return False
    return _is_psycopg3()


def has_rows(cursor: Any) -> bool:
    """Tell whether what was asked answers by rows; a cursor's description is made each time.

    Args:
        cursor: of Django's or of psycopg's.
    """
    return bool(cursor.pgresult.nfields)


def read_instants_plainly(cursor: Any) -> None:
    """Let the driver read instants by itself; Django asks code in Python about each of them.

    They come in the zone of the session, and ``InstantField`` makes them UTC where that is
    another one. Without ``USE_TZ`` they come as counts.

    Args:
        cursor: of Django's, for rows that our fields read.
    """
    if cursor.db.vendor == "postgresql" and is_drivers_own(cursor.db.connection):
        cursor.adapters.register_loader(*_plain_loader())


@cache
def _plain_loader() -> tuple[int, type[Any]]:
    from psycopg import adapters
    from psycopg.pq import Format

    kind = adapters.types["timestamptz"].oid
    loader = adapters.get_loader(kind, Format.TEXT)
    assert loader is not None
    return kind, loader


@cache
def _is_psycopg3() -> bool:
    """Tell which of the drivers for PostgreSQL is used."""
    from django.db.backends.postgresql import psycopg_any

    return bool(psycopg_any.is_psycopg3)


def limit(connection: BaseDatabaseWrapper) -> None:
    """Limit what happens in a transaction, as its first statement.

    Args:
        connection: in its outermost transaction; PostgreSQL is told otherwise.
    """
    if connection.vendor == "sqlite":
        table = connection.ops.quote_name(SchedulerState._meta.db_table)
        _execute(connection, f"UPDATE {table} SET term = term WHERE 0")


def isolate(connection: BaseDatabaseWrapper) -> None:
    """Let the next transaction, a run's own, see at its end what is stored by then.

    Args:
        connection: in no transaction.
    """
    if connection.vendor == "mysql":
        _execute(connection, _OF_A_RUN)


def begin(connection: BaseDatabaseWrapper) -> None:
    """Begin the transaction of a run: it may take long, and has no limits but its end.

    Args:
        connection: in its outermost transaction.
    """
    if connection.vendor == "postgresql":
        _execute(connection, _OF_A_RUN)
    else:
        limit(connection)


def limit_the_end(connection: BaseDatabaseWrapper) -> None:
    """Limit what is left of the transaction of a run: its result, and its commit.

    Args:
        connection: in its outermost transaction.
    """
    if connection.vendor == "postgresql":
        _execute(connection, _POSTGRESQL_END.format(lock=LOCK, statement=STATEMENT))


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
        # A connection that is lost has nothing to be put back.
        with suppress(Error):
            _execute(connection, _MYSQL_AS_BEFORE)


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
