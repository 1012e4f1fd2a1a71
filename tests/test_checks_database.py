"""What a database lacks is said, and only where a database may be asked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.db import connection

from django_declarative_cron.checks import check_databases, check_pace
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime.connections import CONNECTING, limit_connecting
from django_declarative_cron.store import overview
from django_declarative_cron.testing import Simulation

pytestmark = pytest.mark.usefixtures("still_clock")


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


# --- what takes longer than it may ---


@pytest.fixture
def slow(db: None) -> Simulation:
    """A task of every minute whose runs take 90 seconds, and one that is quick."""
    sim = Simulation(start="2024-01-01T10:00:30Z")
    long = sim.job(duration=timedelta(seconds=90))
    sim.initialize(
        [
            ("slow", "* * * * *", long, timedelta(minutes=5)),
            ("quick", "* * * * *", sim.job(duration=timedelta(seconds=2)), timedelta(minutes=5)),
        ]
    )
    return sim


def too_slow() -> list[Any]:
    return list(check_pace(databases=["default"]))


def test_what_takes_longer_than_it_may_is_told_from_five_runs_on(slow: Simulation) -> None:
    slow.advance_to("2024-01-01T10:06:45Z")
    assert too_slow() == []
    slow.advance_to("2024-01-01T10:08:15Z")
    [message] = too_slow()
    assert message.obj == "task 'slow'"
    assert message.msg == (
        "its last 5 runs took 1 min 30 s on average, and `* * * * *` comes every 1 min"
    )
    assert str(message.hint).endswith("More in docs/checks.md#w072.")
    assert check_pace(databases=None) == []
    assert "W072" not in str(run_checks(tags=["declarative_cron"]))
    assert message in run_checks(databases=["default"])


def test_what_is_switched_off_is_left_alone(slow: Simulation) -> None:
    slow.advance_to("2024-01-01T10:09:30Z")
    ScheduledTask.objects.update(enabled=False)
    assert too_slow() == []


def test_it_takes_a_handful_of_queries(
    slow: Simulation, django_assert_max_num_queries: Any
) -> None:
    slow.advance_to("2024-01-01T10:09:30Z")
    with django_assert_max_num_queries(5):
        assert len(too_slow()) == 1


def test_tables_that_are_not_there_are_no_reason_to_fail(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        overview, "paces", lambda *given: connection.cursor().execute("SELECT a FROM b")
    )
    assert too_slow() == []
    assert not TaskRun.objects.exists()
