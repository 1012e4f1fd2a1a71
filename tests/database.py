"""The database under test, as the environment names it.

``DDC_TEST_DATABASE`` is ``sqlite`` or ``postgres``; ``DATABASE_URL`` names a
PostgreSQL server, and where it is missing one is started from a wheel. A process
that a test starts gets the database of that test by the same two names.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from . import postgres


def from_environment() -> dict[str, Any]:
    """Return the entry for ``DATABASES``, with a server behind it where it needs one."""
    url = os.environ.get("DATABASE_URL", "")
    kind = os.environ.get("DDC_TEST_DATABASE") or ("postgres" if url else "sqlite")
    if kind == "sqlite":
        return _sqlite(url)
    if kind != "postgres":
        raise ValueError(f"DDC_TEST_DATABASE is {kind!r}; it may be sqlite or postgres.")
    if url and not url.startswith(("postgres://", "postgresql://")):
        raise ValueError("DATABASE_URL has to be like postgres://user:password@host:5432/name.")
    if not url:
        url = os.environ["DATABASE_URL"] = postgres.start()
    return _postgres(url)


def for_children(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment in which a child process uses the database of ``settings``."""
    name = str(settings["NAME"])
    if settings["ENGINE"].endswith("sqlite3"):
        return {"DDC_TEST_DATABASE": "sqlite", "DATABASE_URL": f"sqlite:///{quote(name)}"}
    login = ":".join(quote(settings[key], safe="") for key in ("USER", "PASSWORD"))
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
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    host = query.pop("host", unquote(parts.hostname or ""))
    port = query.pop("port", str(parts.port or ""))
    name = unquote(parts.path.lstrip("/")) or "ddc"
    # Several environments may test on one server at once.
    environment = re.sub(r"\W", "_", os.environ.get("TOX_ENV_NAME", ""))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": port,
        "OPTIONS": query,
        "TEST": {"NAME": f"test_{name}_{environment}".rstrip("_")},
    }
