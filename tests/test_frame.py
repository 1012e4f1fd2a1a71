"""The frame the tests stand in: databases, child processes, and the guard of the real clock."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection
from freezegun import freeze_time

from django_declarative_cron.runtime.clock import system_clock

from .conftest import CHECKOUT, REAL_CLOCK
from .database import for_children, from_environment
from .process import run_python
from .real_clock import NOON, REFUSED, readings

TESTS = Path(__file__).parent
FROZEN = {"admin"}

COUNT_USERS = """
import django; django.setup()
from django.contrib.auth.models import User
print(User.objects.count())
"""


def test_a_child_process_sees_the_database_of_the_test(child_environment: dict[str, str]) -> None:
    User.objects.create_user("anyone")
    child = run_python("-c", COUNT_USERS, env=child_environment)
    assert (child.stdout.strip(), child.stderr) == ("1", "")


@pytest.mark.parametrize(
    "settings",
    [
        {"ENGINE": "django.db.backends.sqlite3", "NAME": "/a b/c.sqlite3"},
        {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "shop",
            "USER": "me@home",
            "PASSWORD": "p:/w",
            "HOST": "/a socket",
            "PORT": "5433",
        },
        {
            "ENGINE": "django.db.backends.mysql",
            "NAME": "shop",
            "USER": "me@home",
            "PASSWORD": "p:/w",
            "HOST": "",
            "PORT": "",
            "OPTIONS": {"unix_socket": "/a socket"},
        },
    ],
)
def test_a_database_is_named_to_children_without_loss(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in for_children(settings).items():
        monkeypatch.setenv(name, value)
    assert settings.items() <= from_environment().items()


def test_a_server_is_named_by_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DDC_TEST_DATABASE", raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:p%40ss@db.example:5433/shop?sslmode=prefer")
    monkeypatch.setenv("TOX_ENV_NAME", "py312-dj60-postgres")
    assert from_environment() == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "prefer"},
        "TEST": {"NAME": "test_shop_py312_dj60_postgres"},
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("DDC_TEST_DATABASE", "oracle"), ("DATABASE_URL", "oracle://localhost/shop")],
)
def test_another_database_is_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DDC_TEST_DATABASE", raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        from_environment()


@pytest.mark.django_db
def test_the_database_asked_for_is_the_one_tested() -> None:
    names = {"postgresql": "postgres", "mysql": "mariadb"}
    asked = os.environ.get("DDC_TEST_DATABASE") or names.get(connection.vendor, connection.vendor)
    assert names.get(connection.vendor, connection.vendor) == asked
    assert "test" in str(connection.settings_dict["NAME"])


def test_the_check_on_every_change_runs_the_command_that_the_readme_gives() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    script = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [line for line in readme if "pip install --quiet tox-uv" in line]
    assert len(commands) == 1
    assert commands[0] in [line.strip() for line in script]


# --- the real clock ---


def test_reading_the_real_clock_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="reads the real clock") as caught:
        system_clock.now()
    assert caught.value.msg == REFUSED


def test_reading_a_clock_that_stands_still_does_not(still_clock: None) -> None:
    assert system_clock.now() == NOON


@pytest.mark.real_clock
def test_reading_it_with_the_mark_does_not() -> None:
    assert system_clock.now() > datetime(2026, 1, 1, tzinfo=UTC)


def test_reading_a_clock_that_is_controlled_does_not() -> None:
    with freeze_time(NOON):
        assert system_clock.now() == NOON
    with time_machine.travel(NOON, tick=False):
        assert system_clock.now() == NOON


def test_modules_that_read_the_real_clock_say_so() -> None:
    found: list[str] = []
    for path in sorted(TESTS.rglob("*.py")):
        folder = path.relative_to(TESTS).parts[0]
        if folder in REAL_CLOCK | FROZEN or "real_clock" in path.read_text(encoding="utf-8"):
            continue
        found += readings(path)
    assert found == []
