"""``cron next``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import OperationalError, connection

from django_declarative_cron.formatting import iso8601
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import ManualClock, Simulation

from ..timezones import PROJECT, instant_of, local_time
from .conftest import DELAY, HERE, START, Cron

Declare = Callable[..., list[Any]]
pytestmark = pytest.mark.django_db


def _at(text: str) -> ManualClock:
    return ManualClock(datetime.fromisoformat(text).astimezone(UTC))


def test_the_list_of_a_task_has_its_zone_and_that_of_the_reader(
    cron: Cron, declare: Declare, at_start: ManualClock
) -> None:
    declare(t="0 7 2 7 *")
    words = ("--timezone", "Asia/Tokyo", "-n", "1")
    header, line = cron("next", "t", *words, clock=at_start).lines[3:5]
    utc = [] if PROJECT == "UTC" else ["UTC"]
    assert header.split() == [PROJECT, "Asia/Tokyo", *utc, "FROM", "NOW"]
    instant = instant_of("2024-07-02 07:00")
    for zone in ("Asia/Tokyo", "UTC"):
        assert f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" in line
    same = cron("next", "t", "-n", "1", clock=at_start).lines[3]
    assert same.split() == [PROJECT, *utc, "FROM", "NOW"]


def test_a_zone_has_one_column(cron: Cron, declare: Declare, at_start: ManualClock) -> None:
    declare({"name": "t", "cron": "0 7 * * *", "timezone": "UTC", "callback": f"{HERE}.nothing"})
    for viewer, others in (("UTC", []), ("Europe/Berlin", ["Europe/Berlin"])):
        header = cron("next", "t", "--timezone", viewer, clock=at_start).lines[3]
        assert header.split() == ["UTC", *others, "FROM", "NOW"]


def test_without_a_zone_it_is_the_projects(
    cron: Cron, settings: Any, at_start: ManualClock
) -> None:
    settings.TIME_ZONE = "America/New_York"
    data = cron("next", "0 7 * * *", "--format", "json", clock=at_start).data
    assert data["timezone"] == "America/New_York"
    assert data["occurrences"][0] == {
        "at": "2024-01-01T12:00:00Z",
        "local": "2024-01-01T07:00:00-05:00",
    }


def test_ten_unless_told_otherwise(cron: Cron, at_start: ManualClock) -> None:
    for words, number in ((), 10), (("-n", "1"), 1), (("-n", "1000"), 1000):
        data = cron("next", "* * * * *", *words, "--format", "json", clock=at_start).data
        assert len(data["occurrences"]) == number


def test_a_declared_task_runs_in_its_own_zone(
    cron: Cron, declare: Declare, at_start: ManualClock
) -> None:
    declare(
        {
            "name": "stock",
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "callback": f"{HERE}.nothing",
        }
    )
    data = cron("next", "stock", "-n", "1", "--format", "json", clock=at_start).data
    assert data == {
        "name": "stock",
        "cron": "30 2 * * *",
        "dialect": "ojs",
        "timezone": "Europe/Berlin",
        "description": "At 02:30",
        "occurrences": [{"at": "2024-01-02T01:30:00Z", "local": "2024-01-02T02:30:00+01:00"}],
        "clock_changes": [],
        "notes": [],
    }


def test_an_expression_of_the_ojs_dialect(cron: Cron, at_start: ManualClock) -> None:
    answer = cron("next", "*/20 0 9 31 * *", "--dialect", "ojs", "-n", "2", clock=at_start)
    assert "Every 20 seconds" in answer.out
    assert "Mind that day 31 does not exist in February, April," in answer.out
    assert [line.split()[2] for line in answer.lines[-2:]] == ["09:00", "09:00:20"]


def test_an_interval_counts_from_now(cron: Cron, at_start: ManualClock) -> None:
    words = ("--dialect", "ojs", "-n", "2", "--format", "json")
    data = cron("next", "@every 90m", *words, clock=at_start).data
    now = at_start.now()
    assert [datetime.fromisoformat(each["at"]) - now for each in data["occurrences"]] == [
        timedelta(minutes=90),
        timedelta(minutes=180),
    ]
    assert (data["dialect"], data["description"]) == ("ojs", "Every 1 hour 30 minutes")


def test_a_row_that_is_no_longer_declared_is_known(
    cron: Cron, declare: Declare, sim: Simulation
) -> None:
    declare()
    sim.initialize([("old", "0 12 * * *", sim.job(), DELAY)])
    assert cron("next", "old", "-n", "1", clock=sim.clock).lines[0] == "old: 0 12 * * *  UTC"


def test_the_declaration_goes_before_the_row_which_is_mentioned(
    cron: Cron, declare: Declare
) -> None:
    sim = Simulation(START, time_zone=PROJECT)
    sim.initialize(declare(t="0 12 * * *"))
    assert cron("next", "t", "--format", "json", clock=sim.clock).data["notes"] == []
    declare(t="0 13 * * *")
    data = cron("next", "t", "--format", "json", clock=sim.clock).data
    assert data["cron"] == "0 13 * * *"
    assert data["notes"] == [
        f"The scheduler still runs it by '0 12 * * *' in {PROJECT}, "
        "until `python manage.py runscheduler` starts anew."
    ]


@pytest.mark.parametrize(
    ("until", "note"),
    [
        (None, "It is paused until it is resumed."),
        (datetime(2024, 1, 9, tzinfo=UTC), f"It is paused until {local_time('2024-01-09 00:00')}."),
    ],
)
def test_a_pause_is_mentioned(
    until: datetime | None, note: str, cron: Cron, declare: Declare, sim: Simulation
) -> None:
    sim.initialize(declare(t="0 12 * * *"))
    operator_actions.pause(["t"], Act(author="an operator", at=sim.now), until=until)
    assert note in cron("next", "t", clock=sim.clock).lines


def test_a_damaged_row_is_named(cron: Cron, declare: Declare, sim: Simulation) -> None:
    declare()
    sim.initialize([("old", "0 12 * * *", sim.job(), DELAY)])
    ScheduledTask.objects.update(cron="nonsense")
    answer = cron("next", "old", clock=sim.clock)
    assert (answer.code, answer.err[:26]) == (1, "The row of 'old' is damage")


CLOCK_CHANGES = [
    (
        ("30 2 * * *", "2024-03-30T12:00Z"),
        "At 2024-03-31 02:00 the clock goes to 2024-03-31 03:00: "
        "1 occurrence between will not run.",
    ),
    (
        ("0 12 * * *", "2024-03-30T12:00Z"),
        "At 2024-03-31 02:00 the clock goes to 2024-03-31 03:00: local times between do not exist.",
    ),
    (
        ("30 2 * * *", "2024-10-26T12:00Z"),
        "At 2024-10-27 03:00 the clock goes to 2024-10-27 02:00: "
        "local times between happen twice, only the first counts.",
    ),
]


@pytest.mark.parametrize(("asked", "note"), CLOCK_CHANGES)
def test_changes_of_the_clock_are_told(asked: tuple[str, str], note: str, cron: Cron) -> None:
    text, now = asked
    answer = cron("next", text, "--timezone", "Europe/Berlin", "-n", "2", clock=_at(now))
    assert " ".join(answer.lines[7:]) == note


@pytest.mark.parametrize(
    ("key", "now", "note"),
    [
        ({"gap": "shift"}, "2024-03-30T12:00Z", "what falls between runs at its end."),
        ({"fold": "both"}, "2024-10-26T12:00Z", "happen twice, both count."),
    ],
)
def test_what_a_task_says_of_them_is_told(
    key: dict[str, str], now: str, note: str, cron: Cron, declare: Declare
) -> None:
    entry = {"name": "t", "cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    declare({**entry, "callback": f"{HERE}.nothing", **key})
    text = " ".join(cron("next", "t", clock=_at(now)).lines)
    assert text.endswith(note)


def test_many_changes_are_counted(cron: Cron, at_start: ManualClock) -> None:
    answer = cron("next", "0 0 29 2 *", "--timezone", "Europe/Berlin", "-n", "3", clock=at_start)
    assert answer.lines[-1] == "12 more changes of the clock until then."


def test_changes_for_machines(cron: Cron) -> None:
    clock = _at("2024-03-30T12:00Z")
    words = ("--timezone", "Europe/Berlin", "--format", "json")
    assert cron("next", "30 2 * * *", *words, clock=clock).data["clock_changes"] == [
        {
            "at": "2024-03-31T01:00:00Z",
            "utc_offset_before": 3600.0,
            "utc_offset_after": 7200.0,
            "lost": 1,
        }
    ]


def test_none_is_said(cron: Cron, at_start: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    from django_declarative_cron.core.schedule import Schedule

    monkeypatch.setattr(Schedule, "next_after", lambda self, instant: None)
    answer = cron("next", "0 7 * * *", clock=at_start)
    assert (answer.code, answer.lines[-1]) == (0, "It does not run within the next 50 years.")
    assert cron("next", "0 7 * * *", "--format", "json", clock=at_start).data["occurrences"] == []


REFUSED = [
    (("*/15 * * * *",), 'write "0,15,30,45 * * * *"'),
    (("*/15 * * * *",), "Entries that are dicts take it as it is; --dialect ojs shows"),
    (("@daily",), 'write "0 0 * * *"'),
    (("0 0 30 2 *",), "matches no date"),
    (
        ("send-digest",),
        "neither the name of a task nor a cron expression. Did you mean 'send-digests'?",
    ),
    (("xyzzy",), 'An expression is written "0 7 * * *".'),
    (("",), "neither the name of a task nor a cron expression"),
    (("5/15 * * * *", "--dialect", "ojs"), 'write "5-59/15"'),
    (("0 7 * * *", "--timezone", "CEST"), 'did you mean "Europe/Berlin"?'),
    (("send-digests", "--dialect", "posix"), "--dialect is for expressions"),
    (("flawed",), "SCHEDULED_TASKS[1] 'flawed': "),
]


@pytest.mark.parametrize(("words", "hint"), REFUSED, ids=lambda value: ascii(value))
def test_wrong_use_is_told_what_to_write(
    words: tuple[str, ...], hint: str, cron: Cron, declare: Declare, at_start: ManualClock
) -> None:
    declare(**{"send-digests": "0 7 * * *", "flawed": "*/5 * * * *"})
    answer = cron("next", *words, clock=at_start)
    assert (answer.code, answer.out) == (2, "")
    assert hint in answer.err


@pytest.mark.parametrize("number", ["0", "-1", "1001", "x", "١"])
def test_numbers_out_of_range_are_refused(number: str, cron: Cron) -> None:
    answer = cron("next", "* * * * *", f"-n{number}")
    assert f"'{number}' is not a number from 1 to 1000" in answer.err


def test_an_expression_needs_no_database_at_all(
    cron: Cron, at_start: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("no such host")

    monkeypatch.setattr(connection.introspection, "table_names", refuse)
    assert cron("next", "0 7 * * *", clock=at_start).code == 0
    answer = cron("list", clock=at_start)
    assert (answer.code, answer.err) == (1, "The database does not answer.")


def test_the_first_instant_is_never_now(cron: Cron) -> None:
    today, tomorrow = instant_of("2024-01-01 07:00"), instant_of("2024-01-02 07:00")
    clock = ManualClock(today)
    data = cron("next", "0 7 * * *", "-n", "1", "--format", "json", clock=clock).data
    assert data["occurrences"][0]["at"] == iso8601(tomorrow)
    clock.advance(clock.now() - timedelta(microseconds=1))
    data = cron("next", "0 7 * * *", "-n", "1", "--format", "json", clock=clock).data
    assert data["occurrences"][0]["at"] == iso8601(today)


def test_a_task_that_counts_from_its_registration(
    cron: Cron, declare: Declare, at_start: ManualClock
) -> None:
    declare({"name": "pulse", "cron": "@every 90m", "callback": f"{HERE}.nothing"})
    data = cron("next", "pulse", "-n", "2", "--format", "json", clock=at_start).data
    first, second = (datetime.fromisoformat(each["at"]) for each in data["occurrences"])
    assert second - first == timedelta(minutes=90)
