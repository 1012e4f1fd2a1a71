"""The database server of a run, and a process with a database of its own for each measurement."""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.database import postgres

from .contenders import CONTENDERS
from .figures import Row

CHECKOUT = Path(__file__).resolve().parents[1]
_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
}
_numbers = itertools.count(1)

Function = Callable[..., list[Row]]


class MeasuringError(Exception):
    """A measurement that failed or took too long."""


@functools.cache
def server() -> dict[str, str]:
    """Return libpq's variables of the server of ``DATABASE_URL``, else of one that this starts."""
    where = conninfo_to_dict(os.environ.get("DATABASE_URL") or postgres.start())
    return {name: str(where[key]) for key, name in _VARIABLES.items() if where.get(key)}


def facts() -> str:
    """Return the version of the server, and whether its commits wait for the disk."""
    with psycopg.connect(_conninfo("postgres")) as connection:
        found = [
            connection.execute(f"SHOW {name}".encode()).fetchall()[0][0]
            for name in ("server_version", "synchronous_commit")
        ]
    return f"PostgreSQL {found[0].split()[0]} with `synchronous_commit` {found[1]}"


class Project:
    """The Django project of a contender with an empty database.

    Args:
        contender: its id.
        folder: for its files.
        environment: names its database.
    """

    def __init__(self, contender: str, folder: Path, environment: dict[str, str]) -> None:
        self._contender, self._folder = contender, folder
        self._environment = {
            **os.environ,
            **environment,
            "BENCHMARK_CONTENDER": contender,
            "BENCHMARK_FOLDER": str(folder),
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
            "PYTHONPATH": str(CHECKOUT),
        }

    def migrate(self) -> None:
        """Make the tables."""
        self._call(60, "django", "migrate", "--verbosity", "0")

    def run(self, function: Function, *, patience: float = 120.0, **arguments: object) -> list[Row]:
        """Call a function in a new process and return its rows.

        Args:
            function: of a module of this package.
            patience: seconds that it may take.
            arguments: of the function.

        Raises:
            MeasuringError: it failed or took too long.
        """
        answer = self._folder / "answer.json"
        answer.unlink(missing_ok=True)
        name = f"{function.__module__}:{function.__qualname__}"
        worker = ("benchmarks.worker", name, json.dumps(arguments), str(answer))
        self._call(patience, *worker)
        rows = [Row(**each) for each in json.loads(answer.read_text())]
        return [replace(row, contender=self._contender) for row in rows]

    def _call(self, patience: float, *module: str) -> None:
        log = self._folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", *module],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            code = process.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise MeasuringError(f"took more than {patience:g} s") from error
        finally:
            # Contenders leave processes behind when they fail, and some when they succeed.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise MeasuringError(f"failed: {lines[-1] if lines else f'exit code {code}'}")


@contextmanager
def project(contender: str, *, sqlite: bool = False) -> Iterator[Project]:
    """Make a project with its tables, and remove its database at the end."""
    with tempfile.TemporaryDirectory(prefix="ddc-bench-") as name:
        folder = Path(name)
        if sqlite:
            made = Project(contender, folder, {"BENCHMARK_SQLITE": str(folder / "db.sqlite3")})
            made.migrate()
            yield made
            return
        database = f"bench_{os.getpid()}_{next(_numbers)}"
        _execute(f"CREATE DATABASE {database} TEMPLATE {_template(contender)}")
        try:
            yield Project(contender, folder, {**server(), "PGDATABASE": database})
        finally:
            _execute(f"DROP DATABASE {database} WITH (FORCE)")


def measured(
    contender: str,
    function: Function,
    *,
    sqlite: bool = False,
    patience: float = 120.0,
    **arguments: object,
) -> list[Row]:
    """Call a function once in a project of its own; an error becomes a note.

    Args:
        contender: its id.
        function: of a module of this package.
        sqlite: use a file instead of the server.
        patience: seconds that it may take.
        arguments: of the function.
    """

    def once() -> list[Row]:
        with project(contender, sqlite=sqlite) as made:
            return made.run(function, patience=patience, **arguments)

    return attempted(contender, once)


def attempted(contender: str, work: Callable[[], list[Row]]) -> list[Row]:
    """Return the rows of a piece of work, or one row that notes why there are none."""
    if CONTENDERS[contender].version is None:
        return [Row(note="is not installed", contender=contender)]
    began = time.monotonic()
    try:
        return work()
    except (MeasuringError, psycopg.Error) as error:
        return [Row(note=" ".join(str(error).split())[:200].rstrip("."), contender=contender)]
    finally:
        # A run of all takes minutes: show that it goes on.
        print(f"{contender}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


@functools.cache
def _template(contender: str) -> str:
    """Return the name of a database with the tables of a contender; to copy it takes less time."""
    database = f"bench_{os.getpid()}_{contender}"
    _execute(f"CREATE DATABASE {database}")
    with tempfile.TemporaryDirectory(prefix="ddc-bench-") as folder:
        Project(contender, Path(folder), {**server(), "PGDATABASE": database}).migrate()
    return database


def _conninfo(database: str) -> str:
    where = {key: server()[name] for key, name in _VARIABLES.items() if name in server()}
    return psycopg.conninfo.make_conninfo(**where, dbname=database)


def _execute(statement: str) -> None:
    with psycopg.connect(_conninfo("postgres"), autocommit=True) as connection:
        connection.execute(statement.encode())
