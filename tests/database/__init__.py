"""The database under test, as the environment names it.

``DDC_TEST_DATABASE`` is ``sqlite``, ``postgres`` or ``mariadb``; ``DATABASE_URL`` names
a server, and where it is missing one is started: PostgreSQL from a wheel, MariaDB from
what the machine has installed. A process that a test starts gets the database of that
test by the same two names. ``DDC_TEST_ISOLATION`` is the isolation level that the project
asks for, such as ``repeatable read``, where that is not Django's default.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from . import mariadb, postgres

_SCHEMES = {"postgres": ("postgres://", "postgresql://"), "mariadb": ("mysql://", "mariadb://")}


def from_environment() -> dict[str, Any]:
    """Return the entry for ``DATABASES``, with a server behind it where it needs one."""
    url = os.environ.get("DATABASE_URL", "")
    kind = os.environ.get("DDC_TEST_DATABASE") or _kind_of(url)
    if kind == "sqlite":
        return _sqlite(url)
    if kind not in _SCHEMES:
        raise ValueError(f"DDC_TEST_DATABASE is {kind!r}; it may be sqlite, postgres or mariadb.")
    if url and not url.startswith(_SCHEMES[kind]):
        raise ValueError(
            f"DATABASE_URL has to be like {_SCHEMES[kind][0]}user:password@host:5432/name."
        )
    if not url:
        started = postgres.start() if kind == "postgres" else mariadb.start()
        url = os.environ["DATABASE_URL"] = started
    return _postgres(url) if kind == "postgres" else _mariadb(url)


def _kind_of(url: str) -> str:
    if not url:
        return "sqlite"
    return "mariadb" if url.startswith(_SCHEMES["mariadb"]) else "postgres"


def for_children(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment in which a child process uses the database of ``settings``."""
    name = str(settings["NAME"])
    if settings["ENGINE"].endswith("sqlite3"):
        return {"DDC_TEST_DATABASE": "sqlite", "DATABASE_URL": f"sqlite:///{quote(name)}"}
    login = ":".join(quote(settings[key], safe="") for key in ("USER", "PASSWORD"))
    if settings["ENGINE"].endswith("mysql"):
        socket = quote(settings["OPTIONS"].get("unix_socket", ""), safe="")
        where = f"{settings['HOST']}:{settings['PORT']}" if settings["HOST"] else ""
        url = f"mysql://{login}@{where}/{quote(name, safe='')}?socket={socket}"
        return {"DDC_TEST_DATABASE": "mariadb", "DATABASE_URL": url}
    query = f"host={quote(settings['HOST'], safe='')}&port={settings['PORT']}"
    url = f"postgres://{login}@/{quote(name, safe='')}?{query}"
    return {"DDC_TEST_DATABASE": "postgres", "DATABASE_URL": url}


def _sqlite(url: str) -> dict[str, Any]:
    named = unquote(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else ""
    # A file, because threads and child processes share it; nobody needs it after a crash.
    shared = Path(tempfile.gettempdir()) / f"ddc-test-{os.getpid()}.sqlite3"
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": named or ":memory:",
        "TEST": {"NAME": str(shared)},
        "OPTIONS": {"timeout": 20, "init_command": "PRAGMA synchronous = OFF"},
    }


def _postgres(url: str) -> dict[str, Any]:
    entry, query = _server(url)
    return {
        **entry,
        "ENGINE": "django.db.backends.postgresql",
        "HOST": query.pop("host", entry["HOST"]),
        "PORT": query.pop("port", entry["PORT"]),
        "OPTIONS": query | _isolation("postgres"),
    }


def _mariadb(url: str) -> dict[str, Any]:
    entry, query = _server(url)
    options: dict[str, Any] = {"unix_socket": query["socket"]} if query.get("socket") else {}
    # The tests compare texts with what Python has; a server may have another default.
    entry["TEST"] |= {"CHARSET": "utf8mb4"}
    options |= _isolation("mariadb")
    return {**entry, "ENGINE": "django.db.backends.mysql", "OPTIONS": options}


def _isolation(kind: str) -> dict[str, Any]:
    level = os.environ.get("DDC_TEST_ISOLATION", "")
    if not level:
        return {}
    if kind == "mariadb":
        return {"isolation_level": level}
    from psycopg import IsolationLevel

    return {"isolation_level": IsolationLevel[level.upper().replace(" ", "_")]}


def _server(url: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a URL: the entry's common part, and what the query says."""
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/")) or "ddc"
    # Several environments may test on one server at once.
    environment = re.sub(r"\W", "_", os.environ.get("TOX_ENV_NAME", ""))
    entry = {
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "TEST": {"NAME": f"test_{name}_{environment}".rstrip("_")},
    }
    return entry, {key: values[-1] for key, values in parse_qs(parts.query).items()}
