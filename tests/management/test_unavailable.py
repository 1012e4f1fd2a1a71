"""Commands without a usable database, and on rows that somebody else holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.migrations.recorder import MigrationRecorder

from django_declarative_cron.management.cli.deployment_scope import require_tables
from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.store import database
from django_declarative_cron.testing import Simulation

from ..store.conftest import Stranger, impatient, stranger
from .conftest import DELAY, START, Cron, run_child

__all__ = ["impatient", "stranger"]

MIGRATE = "The tables of scheduled tasks are not there yet: run `python manage.py migrate` first."
COMMANDS = [
    ("list",),
    ("show", "a"),
    ("explain", "a"),
    ("history",),
    ("plan",),
    ("run", "a"),
    ("cancel", "a"),
    ("pause", "a"),
    ("resume", "a"),
    ("skip", "a"),
    ("retry", "a", "--now"),
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


# --- which tables are enough ---


def test_one_missing_table_is_enough(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    tables = connection.introspection.table_names()
    tables.remove("django_declarative_cron_taskrun")
    monkeypatch.setattr(connection.introspection, "table_names", lambda *args, **kwargs: tables)
    with pytest.raises(CommandError, match="not there yet"):
        require_tables("default")


def test_an_unapplied_migration_is_named_too(db: None) -> None:
    newest = MigrationRecorder(connection).migration_qs.filter(app="django_declarative_cron").last()
    assert newest is not None
    newest.delete()
    with pytest.raises(CommandError, match=r"older than the code: run `python manage.py migrate`"):
        require_tables("default")


def test_tables_that_are_as_the_code_needs_them_pass(db: None) -> None:
    require_tables("default")


def test_another_database_is_named(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr(database, "_are_there", lambda using: False)
    with pytest.raises(CommandError, match=r"migrate --database second`"):
        require_tables("second")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("cron", "list"), ("runscheduler",)], ids=lambda w: w[0])
def test_a_child_ends_with_2_and_without_traceback(
    words: tuple[str, ...], project_environment: dict[str, str]
) -> None:
    child = run_child(*words, env=project_environment)
    assert child.returncode == 2
    assert child.stderr.splitlines()[-1].endswith("run `python manage.py migrate` first.")
    assert "Traceback" not in child.stderr


def test_an_expression_needs_no_tables(
    cron: Cron,
    monkeypatch: pytest.MonkeyPatch,
    declare: Callable[..., list[Any]],
    at_start: Any,
    db: None,
) -> None:
    declare(fine="0 * * * *")
    monkeypatch.setattr(connection.introspection, "table_names", lambda *args, **kwargs: [])
    assert cron("next", "0 7 * * *", clock=at_start).code == 0
    assert cron("next", "fine", clock=at_start).code == 0


# --- rows that somebody else holds ---


@pytest.mark.usefixtures("impatient")
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
@pytest.mark.parametrize("word", ["pause", "resume", "run", "clear-retry"])
def test_a_row_that_is_held_is_named_and_nothing_is_changed(
    transactional_db: None,
    cron: Cron,
    declare: Callable[..., list[Any]],
    stranger: Stranger,
    word: str,
) -> None:
    sim = Simulation(start=START)
    declare(a="0 * * * *")
    sim.initialize([("a", "0 * * * *", sim.job(outcomes=["fail"]), DELAY)])
    sim.advance_to("2024-01-01T11:00:10Z")
    if word == "resume":
        assert cron("pause", "a", clock=sim.clock).code == 0
    before = TaskOverride.objects.count(), TaskRun.objects.count(), sim.task("a").paused_since
    stranger.hold("scheduledtask", name="a")
    answer = cron(word, "a", clock=sim.clock)
    stranger.let_go()
    assert (answer.code, answer.err) == (
        1,
        "Nothing was changed: rows of task 'a' are locked by another transaction,"
        " which did not end within 1 s; end it, then try again.",
    )
    after = TaskOverride.objects.count(), TaskRun.objects.count(), sim.task("a").paused_since
    assert after == before
