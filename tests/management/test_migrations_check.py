"""Before ``migrate``: one sentence, and exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from django_declarative_cron.management.migrations_check import require_tables

from .conftest import Cron, run_child

NEED_TABLES = [
    ("list",),
    ("plan",),
    ("run", "fine"),
    ("pause", "fine"),
    ("resume", "fine"),
    ("clear-retry", "fine"),
]


@pytest.mark.parametrize("words", NEED_TABLES, ids=lambda words: words[0])
def test_without_tables_one_sentence_names_the_command(
    words: tuple[str, ...], cron: Cron, monkeypatch: pytest.MonkeyPatch, db: None
) -> None:
    monkeypatch.setattr(connection.introspection, "table_names", lambda *args, **kwargs: [])
    answer = cron(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "The tables of scheduled tasks are not there yet: run `python manage.py migrate` first."
    )


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
    from django_declarative_cron.management import migrations_check

    monkeypatch.setattr(
        migrations_check, "flaw_of_tables", lambda using: "The tables are not there yet"
    )
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
