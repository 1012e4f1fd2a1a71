"""The frame the tests stand in: databases, child processes, the server out of the wheel."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.contrib.auth.models import User
from django.db import connection

from .database import for_children

COUNT_USERS = """
import django; django.setup()
from django.contrib.auth.models import User
print(User.objects.count())
"""


def test_a_child_process_sees_the_database_of_the_test(child_environment: dict[str, str]) -> None:
    User.objects.create_user("anyone")
    child = subprocess.run(
        [sys.executable, "-c", COUNT_USERS],
        env=child_environment,
        capture_output=True,
        text=True,
    )
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
    ],
)
def test_a_database_is_named_to_children_without_loss(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from .database import from_environment

    for name, value in for_children(settings).items():
        monkeypatch.setenv(name, value)
    assert settings.items() <= from_environment().items()


@pytest.mark.django_db
def test_the_database_asked_for_is_the_one_tested() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT version()" if connection.vendor == "postgresql" else "SELECT 1")
        (answer,) = cursor.fetchone()
    assert answer == 1 or answer.startswith("PostgreSQL")
