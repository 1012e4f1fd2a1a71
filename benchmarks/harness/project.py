"""The Django project of a contender: its apps, and a database of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .contenders import Contender

DATABASE = "BENCHMARK_DATABASE"
"""Names the variable that holds where the database is, as libpq's parameters in JSON."""

STANDARD = ("admin", "auth", "contenttypes", "messages", "sessions")
"""The apps of ``django.contrib`` that every project here has, as most projects do."""


def dsn() -> dict[str, Any]:
    """Give libpq's parameters of the contender's database."""
    found: dict[str, Any] = json.loads(os.environ[DATABASE])
    return found


def url() -> str:
    """Give the contender's database as SQLAlchemy names it."""
    where = dsn()
    return (
        f"postgresql+psycopg://{where['user']}@/{where['dbname']}"
        f"?host={where.get('host', '')}&port={where.get('port', '')}"
    )


def set_up(contender: Contender, *, lean: bool = False) -> None:
    """Configure Django and make the tables.

    Args:
        contender: whose project it is.
        lean: make the tables in a child process: what that needs is not in this one's memory.
    """
    import django
    from django.conf import settings
    from django.core.management import call_command

    given = dict(contender.settings)
    is_file = given.pop("SQLITE", False)
    settings.configure(
        INSTALLED_APPS=[*(f"django.contrib.{name}" for name in STANDARD), *(contender.apps or ())],
        DATABASES={"default": _sqlite() if is_file else _postgres(dsn())},
        SECRET_KEY="for benchmarks only",
        USE_TZ=True,
        TIME_ZONE="UTC",
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        LOGGING={"version": 1, "root": {"level": "ERROR"}},
        **given,
    )
    django.setup()
    if not lean:
        call_command("migrate", verbosity=0)
    elif child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    else:
        call_command("migrate", verbosity=0)
        os._exit(0)


def _postgres(where: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": where["dbname"],
        "USER": where.get("user", ""),
        "PASSWORD": where.get("password", ""),
        "HOST": where.get("host", ""),
        "PORT": where.get("port", ""),
    }


def _sqlite() -> dict[str, Any]:
    options = {"timeout": 20, "init_command": "PRAGMA journal_mode=wal; PRAGMA synchronous=normal"}
    name = os.environ["BENCHMARK_SQLITE"]
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options}


class Count:
    """How many statements were sent."""

    def __init__(self) -> None:
        self.statements = 0

    def wrapper(self, execute: Callable[..., Any], *rest: Any) -> Any:
        """Count one; what Django's ``execute_wrapper`` calls.

        Args:
            execute: sends it.
            rest: what is sent.
        """
        self.statements += 1
        return execute(*rest)


@contextmanager
def counting() -> Iterator[Count]:
    """Count the statements that this thread sends by Django."""
    from django.db import connection

    count = Count()
    with connection.execute_wrapper(count.wrapper):
        yield count
