"""``cron simulate``: what would run, by the settings and what was posted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.management.cli import deployment_scope, subcommand
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.testing import ManualClock, Simulation

from ..timezones import zoned
from .conftest import DELAY, Cron

pytestmark = pytest.mark.django_db

Declare = Callable[..., list[Any]]
_COPIED = ("scheduler", "timezone", "registered_at", "callback", "scheduler_identifier")
WEEK = ("--from", "2024-01-01T00:00Z", "--to", "2024-01-08T00:00Z")


def test_a_day_from_now_unless_said_otherwise(
    cron: Cron, declare: Declare, at_start: ManualClock
) -> None:
    declare(hourly="0 * * * *", nightly="0 3 * * *")
    data = cron("simulate", "--format", "json", clock=at_start).data
    assert data["from"] == "2024-01-01T10:00:30Z"
    assert [(task["name"], task["starts"]) for task in data["tasks"]] == [
        ("hourly", 24),
        ("nightly", 1),
    ]


def test_starts_are_listed_in_their_order(cron: Cron, declare: Declare) -> None:
    declare(b="0 6 * * *", a="0 5 * * *")
    answer = cron("simulate", "--from", "2024-01-01", "--to", "2024-01-08", "-n", "3")
    starts = [line.split() for line in answer.lines[1:4]]
    assert starts == [
        [*zoned("2024-01-01 05:00").split(), "a"],
        [*zoned("2024-01-01 06:00").split(), "b"],
        [*zoned("2024-01-02 05:00").split(), "a"],
    ]
    assert answer.err.startswith("14 starts of 2 tasks ")


def test_what_gaps_take_is_counted(cron: Cron, declare: Declare) -> None:
    keys = {"callback": "tests.management.callbacks.nothing", "retry_delay": DELAY}
    declare({"name": "a", "cron": "30 2 * * *", "timezone": "Europe/Berlin", **keys})
    span = ("--from", "2024-03-30T00:00Z", "--to", "2024-04-02T00:00Z")
    data = cron("simulate", *span, "--format", "json").data
    assert (data["starts"], data["tasks"][0]["lost"]) == (2, 1)
    assert "Lost in gaps of the clock: 1 occurrence." in cron("simulate", *span).err


def test_what_is_switched_off_does_not_run(cron: Cron, declare: Declare) -> None:
    keys = {"callback": "tests.management.callbacks.nothing", "retry_delay": DELAY}
    declare({"name": "a", "cron": "* * * * *", "timezone": "UTC", "enabled": False, **keys})
    assert cron("simulate", *WEEK, "--format", "json").data["tasks"] == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--from", "2024-01-02T00:00Z", "--to", "2024-01-01T00:00Z"), "must lie behind"),
        (("--from", "2024-01-02T00:00Z", "--to", "2044-01-01T00:00Z"), "ten years"),
    ],
)
def test_a_span_that_is_none_is_refused(
    cron: Cron, declare: Declare, words: tuple[str, ...], text: str
) -> None:
    declare(a="0 5 * * *")
    answer = cron("simulate", *words)
    assert answer.code == 2
    assert text in answer.err


def test_a_week_of_two_hundred_tasks_is_counted_and_not_gone_through(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(**{f"task-{n}": f"{n % 60} * * * *" if n % 3 else "* * * * *" for n in range(200)})
    asked: Counter[str] = Counter()
    for name in ("next_after", "count_between"):
        monkeypatch.setattr(Schedule, name, _counted(getattr(Schedule, name), asked))
    data = cron("simulate", *WEEK, "--format", "json").data
    assert data["starts"] == 67 * (7 * 24 * 60 + 1) + sum(
        7 * 24 + (n % 60 == 0) for n in range(200) if n % 3
    )
    # However many starts there are, a task costs a few questions.
    assert asked["count_between"] == 200
    assert asked["next_after"] <= 2 * 200


def _counted(method: Any, asked: Counter[str]) -> Any:
    def counted(self: Schedule, *given: Any) -> Any:
        asked[method.__name__] += 1
        return method(self, *given)

    return counted


def test_what_came_over_http_is_simulated_too(
    cron: Cron, declare: Declare, sim: Simulation
) -> None:
    declare(a="0 5 * * *")
    sim.initialize([("a", "0 5 * * *", sim.job(), DELAY)])
    row = ScheduledTask.objects.get(name="a")
    for name, origin, keys in (
        ("posted", "http", {}),
        ("switched-off", "http", {"enabled": False}),
        ("gone-from-settings", "settings", {}),
    ):
        task = ScheduledTask(**{field: getattr(row, field) for field in _COPIED}, **keys)
        task.name, task.origin, task.cron = name, origin, "@every 7h"
        task.declaration = {**row.declaration, "dialect": "ojs"}
        task.save()
    data = cron("simulate", *WEEK, "--format", "json").data
    assert [(each["name"], each["origin"], each["starts"]) for each in data["tasks"]] == [
        ("a", "settings", 7),
        ("posted", "http", 22),
    ]
    # Counted from its registration, which is later than the beginning of the week.
    assert data["tasks"][1]["first"] == "2024-01-01T17:00:30Z"
    assert "@every 7h UTC (over HTTP)" in cron("simulate", *WEEK).out


def test_without_its_tables_the_settings_alone_are_simulated(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(a="0 5 * * *")
    monkeypatch.setattr(deployment_scope, "flaw_of_tables", lambda using: "They are not there yet")
    assert "7 starts of 1 task " in cron("simulate", *WEEK).err


def test_a_terminal_is_told_how_far_it_is(
    cron: Cron, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(a="0 5 * * *", b="0 6 * * *", c="0 7 * * *")
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0)
    assert "2 of 3 tasks" in cron("simulate", *WEEK, is_terminal=True).err
    assert "2 of 3 tasks" not in cron("simulate", *WEEK).err
