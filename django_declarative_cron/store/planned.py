"""Questions that PostgreSQL plans once: it takes longer to plan the idle look than to answer it.

By ``PREPARE``, which a session of the server keeps. Poolers give each transaction another
session, so nothing is kept unless the connection is with the server itself: then the process
that answers is the one that was named to the driver as it connected, and a pooler names none
of the server's. What the project says against it holds: ``DISABLE_SERVER_SIDE_CURSORS``, and
``prepare_threshold`` where it is set to ``None``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

from django.db import Error
from django.db.backends.base.base import BaseDatabaseWrapper

from . import limits

AGAIN = 1000
"""After so many answers it is planned anew, should nobody have counted the rows of late."""

_BEFORE = 2
"""So often it is asked as it is: who looks twice and leaves has nothing planned."""

_MOST = 50
"""So many statements a session keeps: what is written is worded by which columns have changed."""

_COUNTED = 500
"""So many are counted that may be kept."""

_GONE = {"26000", "42P05", "0A000"}
"""What the server says of a name that it does not know, or knows otherwise, or cannot keep."""


@dataclass(slots=True)
class _Session:
    """What is known of a connection.

    Args:
        is_ours: whether it is with one session of the server; ``None`` before that is needed.
        kept: how questions are worded that the session keeps, by their texts.
        answers: how many each of them had since it was planned; those asked once have an entry.
    """

    is_ours: bool | None = None
    kept: dict[str, str] = field(default_factory=dict)
    answers: Counter[str] = field(default_factory=Counter)


_sessions: WeakKeyDictionary[Any, _Session] = WeakKeyDictionary()


def first_row(connection: BaseDatabaseWrapper, sql: str, parameters: tuple[Any, ...] | None) -> Any:
    """Ask a question; from the third time on, have it kept where that can be.

    Args:
        connection: to any database.
        sql: with its values inside, or with places for them.
        parameters: the values, ``None`` where they are inside.

    Returns:
        the first row of the answer, ``None`` where it has none.
    """
    # Where a transaction is open, a name that is not known any more would be its end.
    if parameters is not None or not connection.get_autocommit() or not _may(connection):
        return _fetched(connection, sql, parameters)
    session = _sessions.setdefault(connection.connection, _Session())
    try:
        return _fetched(connection, _worded(connection, session, sql), None)
    except Error as error:
        if getattr(error.__cause__, "sqlstate", None) not in _GONE:
            raise
    # Somebody else has had a word with the session.
    session.is_ours = False
    return _fetched(connection, sql, None)


def inside(connection: BaseDatabaseWrapper, sql: str) -> str:
    """Give the words of a question that goes with others, and with their parameters.

    Args:
        connection: in a transaction; ``is_forgotten`` tells of its failure whether to do it again.
        sql: with its values inside.
    """
    session = _sessions.get(connection.connection)
    kept = None if session is None or not session.is_ours else session.kept.get(sql)
    return kept or sql.replace("%", "%%")


def with_places(connection: BaseDatabaseWrapper, sql: str) -> str:
    """Give the words of a statement with places, that goes with others and with their parameters.

    From the third time on the session keeps it, on the way of that: what it reads and writes is
    planned for any values.

    Args:
        connection: in a transaction; ``is_forgotten`` tells of its failure whether to do it again.
        sql: with places for values, whose types it tells.
    """
    raw = connection.connection
    session = _sessions.get(raw) if limits.is_drivers_own(raw) else None
    if session is None or not session.is_ours:
        return sql
    session.answers[sql] += 1
    if sql in session.kept:
        if session.answers[sql] < AGAIN:
            return session.kept[sql]
    elif session.answers[sql] <= _BEFORE or len(session.kept) >= _MOST:
        _forget_counts(session)
        return sql
    first, *others = sql.split("%s")
    numbered = first + "".join(f"${number}{rest}" for number, rest in enumerate(others, 1))
    values = f"({', '.join(['%s'] * len(others))})" if others else ""
    prepare = _prepare(session, sql, numbered)
    session.kept[sql], session.answers[sql] = f"EXECUTE {_name(sql)}{values}", _BEFORE
    return f"{prepare}; {session.kept[sql]}"


def _forget_counts(session: _Session) -> None:
    """Let statements be forgotten that are worded otherwise each time."""
    if len(session.answers) > _COUNTED:
        session.answers = Counter({sql: session.answers[sql] for sql in session.kept})


def is_forgotten(connection: BaseDatabaseWrapper, error: Error) -> bool:
    """Tell whether the session has forgotten its words; then it is asked by them no more.

    Args:
        connection: in no transaction any more.
        error: what has ended it.
    """
    if getattr(error.__cause__, "sqlstate", None) not in _GONE:
        return False
    raw = connection.connection
    session = _sessions.get(raw) if limits.is_drivers_own(raw) else None
    if session is None or not session.is_ours:
        return False
    session.is_ours = False
    return True


def _may(connection: BaseDatabaseWrapper) -> bool:
    said = connection.settings_dict
    is_against = said.get("DISABLE_SERVER_SIDE_CURSORS") or (
        said["OPTIONS"].get("prepare_threshold", "") is None
    )
    if is_against or not limits.takes_several(connection):
        return False
    # What stands in for it, as pools of others do, need not tell which process it is with.
    return limits.is_drivers_own(connection.connection)


def _worded(connection: BaseDatabaseWrapper, session: _Session, sql: str) -> str:
    """Give the words by which the session knows a question."""
    if session.is_ours is False:
        return sql
    session.answers[sql] += 1
    if session.answers[sql] < AGAIN and sql in session.kept:
        return session.kept[sql]
    if session.answers[sql] <= _BEFORE:
        return sql
    if session.is_ours is None:
        session.is_ours = _is_with_the_server(connection)
    return _keep(connection, session, sql) if session.is_ours else sql


def _keep(connection: BaseDatabaseWrapper, session: _Session, sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(_prepare(session, sql, sql))
    session.kept[sql], session.answers[sql] = f"EXECUTE {_name(sql)}", _BEFORE
    return session.kept[sql]


def _prepare(session: _Session, sql: str, numbered: str) -> str:
    name = _name(sql)
    forget = f"DEALLOCATE {name}; " if sql in session.kept else ""
    return f"{forget}PREPARE {name} AS {numbered}"


def _name(sql: str) -> str:
    # Named by what is asked: nobody's session answers something else to that name.
    return f"declarative_cron_{sha256(sql.encode()).hexdigest()[:32]}"


def _is_with_the_server(connection: BaseDatabaseWrapper) -> bool:
    raw: Any = connection.connection
    return bool(_fetched(connection, "SELECT pg_backend_pid()", None)[0] == raw.info.backend_pid)


def _fetched(connection: BaseDatabaseWrapper, sql: str, parameters: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchone()
