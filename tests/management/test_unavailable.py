"""Commands without a usable database: an exit code and one line; JSON where it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper

from django_declarative_cron.store import database

MIGRATE = "The tables of scheduled tasks are not there yet: run `python manage.py migrate` first."
COMMANDS = [
    ("list",),
    ("show", "a"),
    ("explain", "a"),
    ("history",),
    ("plan",),
    ("cancel", "a"),
    ("pause", "a"),
    ("resume", "a"),
    ("skip", "a"),
    ("clear-retry", "a"),
    ("health",),
    ("outbox",),
    ("metrics",),
    ("prune",),
    ("token", "list"),
    ("token", "create", "a"),
    ("verify",),
]

# Some commands read the time before the database.
pytestmark = pytest.mark.usefixtures("still_clock")


@pytest.fixture
def refusing(db: None) -> Iterator[None]:
    """Let the database refuse every statement."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OperationalError("connection to 10.0.0.7 refused\nIs the server running?")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", refuse)
        yield


def failed(*command: str) -> tuple[int, str, str]:
    out = StringIO()
    with pytest.raises(CommandError) as error:
        call_command("cron", *command, stdout=out)
    return error.value.returncode, str(error.value), out.getvalue()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_is_away_is_said_in_one_line(
    refusing: None, command: tuple[str, ...]
) -> None:
    code, said, _ = failed(*command)
    assert (code, said) == (1, "The database does not answer.")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_missing_tables_are_said_in_one_line(
    refusing: None, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr(database, "_are_there", lambda using: False)
    code, said, _ = failed(*command)
    assert (code, said) == (2, MIGRATE)


@pytest.mark.parametrize("name", ["list", "health", "metrics", "outbox", "verify", "history"])
def test_an_error_is_json_where_that_is_asked_for(refusing: None, name: str) -> None:
    code, said, out = failed(name, "--format", "json")
    assert code == 1
    assert json.loads(out) == {"error": said}
