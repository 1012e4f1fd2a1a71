"""Classify errors of the database by its own codes, and limit its waits.

=============  =========================  =======================  =====================
kind           PostgreSQL (SQLSTATE)      MariaDB, MySQL (number)  SQLite
=============  =========================  =======================  =====================
lock timeout   55P03                      1205, 3572               BUSY, LOCKED
conflict       40001, 40P01               1213, 1020               (none)
stopped        57014                      1969, 3024               (none)
=============  =========================  =======================  =====================

After a conflict the same transaction may succeed immediately. After a lock timeout, another
transaction has locked a row, or on SQLite the file. After everything else that is not
about the data, the connection is not to be trusted: a server that was made read-only by
a failover still answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from itertools import islice
from math import ceil
from typing import Any, ParamSpec, TypeVar

from django.apps import apps
from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connections,
    models,
    router,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.models import F
from django.db.models.functions import Now

from ..fields import InstantField
from ..models import ScheduledTask, SchedulerState
from .silent_connections import watchdog

_LOCK_TIMEOUTS = {"55P03", 1205, 3572, "SQLITE_BUSY", "SQLITE_LOCKED"}
_CONFLICTS = {"40001", "40P01", 1213, 1020}
_STOPPED = {"57014", 1969, 3024}
_ABOUT_THE_DATA = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether a statement waited for a lock and did not get it."""
    return _code(error) in _LOCK_TIMEOUTS


def is_conflict(error: BaseException) -> bool:
    """Return whether two transactions got into each other's way, and this one was rolled back."""
    return _code(error) in _CONFLICTS


def was_stopped(error: BaseException) -> bool:
    """Return whether a statement took longer than it was allowed to."""
    return _code(error) in _STOPPED


def spoils_connection(error: BaseException) -> bool:
    """Return whether to go on with a new connection."""
    if not isinstance(error, Error) or isinstance(error, _ABOUT_THE_DATA):
        return False
    return not is_lock_timeout(error) and not is_conflict(error)


def worded(error: BaseException) -> str:
    """Return why a task is set aside, without any text of the database."""
    if isinstance(error, DatabaseError):
        return "The database refused to store a run of this task. The log shows its answer."
    return f"{type(error).__name__}: {error}"


def _code(error: BaseException) -> Any:
    """Return the driver's code of an error: a name by psycopg and sqlite3, a number by others."""
    cause: Any = error.__cause__
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):
        code = getattr(cause, name, None)
        if code is not None:
            # SQLite tells apart more than matters here: SQLITE_BUSY_SNAPSHOT and the like.
            return "_".join(code.split("_")[:2]) if name == "sqlite_errorname" else code
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


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
    """Limit the waits of the outermost transaction, as its first statements."""
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
    """Limit the waits of a whole transaction where that cannot be done inside it."""
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

    SQLite has no server and no such limit: a reader blocks nobody.
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


_CHUNK = 1000
_TRIES = 5

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


M = TypeVar("M", bound=models.Model)


class DatabaseNow(Now):
    """The database's time as an aware UTC instant, on every database."""

    output_field = InstantField()

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Word the server's clock for PostgreSQL: this instant, not that of the transaction."""
        return self.as_sql(compiler, connection, template="CLOCK_TIMESTAMP()", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """Word the server's clock for MySQL and MariaDB, in UTC with microseconds."""
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


def alias() -> str:
    """Return the alias that decides and writes; replicas are never asked."""
    return router.db_for_write(ScheduledTask)


@contextmanager
def atomic(using: str, idle: float = IDLE) -> Iterator[None]:
    """Open one transaction of ours, with durable commits and limited waits.

    Inside a transaction of the caller's it is a part of that, without limits of its own.
    """
    connection = connections[using]
    if _is_callers(connection):
        with transaction.atomic(using=using):
            yield
        return
    with direct(using), around(connection, idle), transaction.atomic(using=using):
        limit(connection, idle)
        yield


@contextmanager
def direct(using: str) -> Iterator[None]:
    """Query the database with limited waits, and leave no transaction open."""
    connection = connections[using]
    if connection.in_atomic_block:
        yield
        return
    with watchdog.watching(connection), committing(connection):
        yield


def _is_callers(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a transaction is open already, by ``atomic`` or by the caller's own hands."""
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
        # A lost connection cannot begin a transaction; let the original error through.
        with suppress(Error):
            connection.set_autocommit(False)
        raise
    connection.set_autocommit(False)


def again_after_conflict(
    function: Callable[P, R],
) -> Callable[P, R]:
    """Retry a transaction that failed with a deadlock or a serialization error."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(_TRIES - 1):
            try:
                return function(*args, **kwargs)
            except Error as error:
                if not is_conflict(error) or connections[_using(args)].in_atomic_block:
                    raise
        return function(*args, **kwargs)

    return call


def _using(args: tuple[Any, ...]) -> str:
    """Return the alias of the member that a function is called for, if it is called for one."""
    using: str = getattr(args[0], "using", None) or alias() if args else alias()
    return using


def lock(
    using: str, rows: models.QuerySet[M], field: str, expected: Collection[Any]
) -> tuple[list[M], set[Any]]:
    """Lock rows in the order of their keys; leave out locked ones.

    Returns:
        the rows, and the values of those that another transaction has locked.
    """
    found = list(lockable(using, rows.order_by("pk")))
    if len(found) == len(expected) or not _skips_locked(using):
        return found, set()
    there = set(rows.values_list(field, flat=True))
    return found, there - {getattr(row, field) for row in found}


def lockable(using: str, rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """Lock rows as they are read; leave out locked ones.

    A database that cannot leave them out waits for them, within its limit.
    """
    if _skips_locked(using):
        return rows.select_for_update(skip_locked=True)
    return current(using, rows)


def current(using: str, rows: models.QuerySet[M]) -> models.QuerySet[M]:
    """Lock rows as they are read, so that they are read as they are stored.

    A plain read inside a caller's transaction may show what was stored when that began;
    values that are written back have to be read like this.
    """
    can_lock = connections[using].features.has_select_for_update
    return rows.select_for_update() if can_lock else rows


def _skips_locked(using: str) -> bool:
    return connections[using].features.has_select_for_update_skip_locked


def chunks(names: Iterable[T], size: int = 0) -> Iterator[list[T]]:
    """Return names or ids in lists that fit into one statement."""
    iterator = iter(names)
    while chunk := list(islice(iterator, size or _CHUNK)):
        yield chunk


_BATCH = 5000


def insert(using: str, rows: Iterable[models.Model]) -> None:
    """Insert new rows of one model; where the database returns ids, they get theirs."""
    rows = list(rows)
    if rows:
        type(rows[0])._base_manager.using(using).bulk_create(rows, batch_size=_BATCH)


def upsert(using: str, rows: Iterable[models.Model], fields: Sequence[str]) -> None:
    """Write rows of one model by primary key; of rows that are stored already, only ``fields``.

    Django's ``bulk_update`` builds a CASE for each value, which takes it about a second for a
    thousand tasks; an insert that updates on conflict takes a few hundredths.
    """
    rows = list(rows)
    if not rows or not fields:
        return
    has_target = connections[using].features.supports_update_conflicts_with_target
    type(rows[0])._base_manager.using(using).bulk_create(
        rows,
        batch_size=_BATCH,
        update_conflicts=True,
        update_fields=list(fields),
        unique_fields=["id"] if has_target else None,
    )


_NAMED = 10


class HeldError(OperationalError):
    """Raised if rows stayed locked by another transaction; nothing was changed."""

    def __init__(self, text: str, names: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.names = tuple(names)


@contextmanager
def naming_what_is_held(using: str, deployment: str) -> Iterator[None]:
    """Name the locked rows if a wait for a lock times out.

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
        f"rows{what} are locked by another transaction, which did not end within {LOCK} s;"
        " end it, then try again",
        names,
    )


def _held(using: str, deployment: str) -> tuple[bool, list[str]]:
    """Return a text that names the locked rows: the deployment's own row, or tasks."""
    states = SchedulerState.objects.using(using).filter(deployment=deployment)
    tasks = ScheduledTask.objects.using(using).filter(scheduler__in=states.values("pk"))
    with atomic(using):
        _, held = lock(using, states, "deployment", [deployment])
        if held:
            return True, []
        _, names = lock(using, tasks, "name", range(tasks.count()))
    return False, sorted(names)[:_NAMED]


AWAY = "The database does not answer."
REFUSED = "The database refused. `--traceback` shows its answer."


def flaw_of_tables(using: str) -> str | None:
    """Return in one sentence why the tables cannot be used and what to run, or ``None``."""
    if _are_there(using):
        loader = MigrationLoader(connections[using])
        known = {key for key in loader.graph.nodes if key[0] == ScheduledTask._meta.app_label}
        if known <= loader.applied_migrations.keys():
            return None
        state = "older than the code"
    else:
        state = "not there yet"
    where = "" if using == DEFAULT_DB_ALIAS else f" --database {using}"
    return (
        f"The tables of scheduled tasks are {state}: run `python manage.py migrate{where}` first."
    )


def _are_there(using: str) -> bool:
    models = apps.get_app_config(ScheduledTask._meta.app_label).get_models()
    needed = {model._meta.db_table for model in models}
    return needed <= set(connections[using].introspection.table_names())


def why_unavailable(using: str) -> str | None:
    """Return in one sentence why the database cannot be used, ``None`` if it can."""
    try:
        return flaw_of_tables(using)
    except DatabaseError:
        return AWAY
