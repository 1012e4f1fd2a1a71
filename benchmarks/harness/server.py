"""The PostgreSQL server of a run, and a database in it for each contender's process."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tests import postgres

from .project import DATABASE

LOOSE = ("fsync", "full_page_writes", "synchronous_commit")
"""What the tests' server leaves out; on with ``--durable``."""


class Server:
    """The server of the tests, or that of ``DATABASE_URL``.

    Args:
        is_durable: let it wait for the disk at each commit, as PostgreSQL does unless told.
    """

    def __init__(self, *, is_durable: bool) -> None:
        where = conninfo_to_dict(os.environ.get("DATABASE_URL") or postgres.start())
        self._where: dict[str, Any] = {**where, "dbname": "postgres"}
        self._numbers = itertools.count(1)
        if is_durable:
            for name in LOOSE:
                self._execute(f"ALTER SYSTEM SET {name} = on")
            self._execute("SELECT pg_reload_conf()")

    def version(self) -> str:
        """Give its version."""
        with psycopg.connect(**self._where) as connection:
            return str(connection.execute("SHOW server_version").fetchall()[0][0])

    def facts(self) -> dict[str, str]:
        """Give what decides how durable a commit is."""
        with psycopg.connect(**self._where) as connection:
            return {
                name: connection.execute(_text(f"SHOW {name}")).fetchall()[0][0] for name in LOOSE
            }

    def new_database(self) -> dict[str, str]:
        """Make a database; give the environment in which a process uses it."""
        name = f"bench_{os.getpid()}_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name}")
        return {DATABASE: json.dumps({**self._where, "dbname": name})}

    def drop(self, environment: dict[str, str]) -> None:
        """Remove a database.

        Args:
            environment: as ``new_database`` gave it.
        """
        name = json.loads(environment[DATABASE])["dbname"]
        self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(**self._where, autocommit=True) as connection:
            connection.execute(_text(statement))


def _text(statement: str) -> sql.SQL:
    return sql.SQL(statement)
