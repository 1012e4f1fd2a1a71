"""What a database says when it refuses, told apart by its own codes.

=============  =========================  =======================  =====================
kind           PostgreSQL (SQLSTATE)      MariaDB, MySQL (number)  SQLite
=============  =========================  =======================  =====================
lock timeout   55P03                      1205, 3572               BUSY, LOCKED
conflict       40001, 40P01               1213, 1020               (none)
stopped        57014                      1969, 3024               (none)
=============  =========================  =======================  =====================

After a conflict the same transaction may succeed at once. A lock timeout says that
somebody else holds a row, or on SQLite the file. After everything else that is not
about the data, the connection is not to be trusted: a server that was made read-only by
a failover still answers.
"""

from __future__ import annotations

from typing import Any

from django.db import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
)

_LOCK_TIMEOUTS = {"55P03", 1205, 3572, "SQLITE_BUSY", "SQLITE_LOCKED"}
_CONFLICTS = {"40001", "40P01", 1213, 1020}
_STOPPED = {"57014", 1969, 3024}
_ABOUT_THE_DATA = (DataError, IntegrityError, NotSupportedError, ProgrammingError)


def is_lock_timeout(error: BaseException) -> bool:
    """Tell whether a statement waited for a lock and did not get it.

    Args:
        error: as Django raised it.
    """
    return _code(error) in _LOCK_TIMEOUTS


def is_conflict(error: BaseException) -> bool:
    """Tell whether two transactions got into each other's way, and this one had to give in.

    Args:
        error: as Django raised it.
    """
    return _code(error) in _CONFLICTS


def was_stopped(error: BaseException) -> bool:
    """Return whether a statement took longer than it was allowed to.

    Args:
        error: as Django raised it.
    """
    return _code(error) in _STOPPED


def spoils_connection(error: BaseException) -> bool:
    """Tell whether to go on with a new connection.

    Args:
        error: as Django raised it.
    """
    if not isinstance(error, Error) or isinstance(error, _ABOUT_THE_DATA):
        return False
    return not is_lock_timeout(error) and not is_conflict(error)


def worded(error: BaseException) -> str:
    """Return why a task is set aside, without any text of the database.

    Args:
        error: as it was raised.
    """
    if isinstance(error, DatabaseError):
        return "The database refused to store a run of this task. The log shows its answer."
    return f"{type(error).__name__}: {error}"


def _code(error: BaseException) -> Any:
    """Give the driver's code of an error; psycopg 2 and 3 and sqlite3 name it, the others count."""
    cause: Any = error.__cause__
    for name in ("sqlstate", "pgcode", "sqlite_errorname"):
        code = getattr(cause, name, None)
        if code is not None:
            # SQLite tells apart more than matters here: SQLITE_BUSY_SNAPSHOT and the like.
            return "_".join(code.split("_")[:2]) if name == "sqlite_errorname" else code
    return error.args[0] if error.args and isinstance(error.args[0], int) else None
