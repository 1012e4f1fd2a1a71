"""What a database lacks is said, and only where a database may be asked."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from django_declarative_cron.checks import check_databases
from django_declarative_cron.runtime.connections import CONNECTING, limit_connecting


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    def lack(vendor: str, **features: bool) -> None:
        monkeypatch.setattr(connection, "vendor", vendor)
        for name, value in features.items():
            monkeypatch.setattr(type(connection.features), name, value)
            monkeypatch.setitem(connection.features.__dict__, name, value)

    return lack


@pytest.mark.django_db
def test_a_database_that_is_tested_lacks_nothing() -> None:
    assert check_databases(databases=["default"]) == []
    call_command("check", "--database", "default", "--tag", "declarative_cron")


@pytest.mark.parametrize(
    ("vendor", "features", "said"),
    [
        ("mysql", {"supports_transactions": False, "has_select_for_update": False}, ["E030"]),
        (
            "mysql",
            {
                "supports_transactions": True,
                "has_select_for_update": True,
                "has_select_for_update_skip_locked": False,
            },
            ["W011"],
        ),
        ("sqlite", {"has_select_for_update": False}, []),
    ],
)
def test_what_it_lacks_is_said(
    vendor: str, features: dict[str, bool], said: list[str], without: Any
) -> None:
    without(vendor, **features)
    found = check_databases(databases=["default"])
    assert [message.id for message in found] == [f"declarative_cron.{each}" for each in said]
    assert check_databases(databases=None) == []


@pytest.mark.parametrize(
    ("vendor", "given", "limited"),
    [
        ("postgresql", {}, {"connect_timeout": CONNECTING}),
        ("mysql", {"connect_timeout": 3}, {"connect_timeout": 3}),
        ("sqlite", {}, {}),
    ],
)
def test_connecting_is_limited_where_the_project_says_nothing(
    vendor: str,
    given: dict[str, int],
    limited: dict[str, int],
    without: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(vendor)
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", given)
    limit_connecting("default")
    assert connection.settings_dict["OPTIONS"] == limited
