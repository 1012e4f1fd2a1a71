"""Commands on rows that somebody damaged or edited by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import DELAY, HERE, Cron

ENTRY = '[{{"name": "a", "cron": "0 * * * *", "timezone": "UTC", "retry_delay_us": {}}}]'
VALUES = ["soon", -5, 1e300, [1], {"a": None}]
KEYS = [
    *("timeout", "spread", "catch_up_window", "exclude_calendars", "pause_after_failures"),
    *("overlap_policy", "retry", "dialect", "gap", "fold", "runner", "atomic", "args", "tags"),
]
READERS = [
    *("list", "list --tag x", "show a", "explain a", "explain a --at 2024-01-01T11:00Z"),
    *("plan", "next a", "simulate", "history", "verify", "pause a", "skip a"),
]
RESULTS = ["max_attempts", "given_up", "blocked_by", "local_time", "author", "alive_until"]


@pytest.fixture
def edited(sim: Simulation, settings: Any) -> Simulation:
    """One task that has failed at eleven and waits for its retry."""
    settings.SCHEDULED_TASKS = [
        {"name": "a", "cron": "0 * * * *", "callback": f"{HERE}.fail", "timezone": "UTC"}
    ]
    sim.initialize(settings.SCHEDULED_TASKS)
    sim.advance_to("2024-01-01T11:00:10Z")
    return sim


def _edit(declaration: Any) -> None:
    ScheduledTask.objects.update(declaration=declaration)


@pytest.mark.parametrize("value", VALUES, ids=json.dumps)
@pytest.mark.parametrize("form", ["whole", "each key"])
def test_no_value_of_a_declaration_ends_in_a_traceback(
    cron: Cron, edited: Simulation, form: str, value: Any
) -> None:
    _edit(value if form == "whole" else dict.fromkeys(KEYS, value))
    for words in READERS:
        assert cron(*words.split(), clock=edited.clock).code in (0, 1), words


@pytest.mark.parametrize(
    ("key", "label", "values"),
    [
        ("timeout", "timeout", VALUES[:1] + VALUES[2:]),
        ("spread", "spread", VALUES[:1] + VALUES[2:]),
        ("catch_up_window", "catch-up", VALUES[:1] + VALUES[2:]),
        ("exclude_calendars", "not on days of", [5, [1]]),
        ("pause_after_failures", "paused after", ["soon", [1], {"a": None}]),
    ],
)
def test_show_says_what_cannot_be_read(
    cron: Cron, edited: Simulation, key: str, label: str, values: list[Any]
) -> None:
    for value in values:
        _edit({key: value})
        lines = cron("show", "a", clock=edited.clock).lines
        assert [line.split(label)[1].strip() for line in lines if line.startswith(label)] == [
            "cannot be read"
        ], value


@pytest.mark.parametrize("value", [*VALUES, "2024-01-01T11:00:00"], ids=json.dumps)
def test_no_detail_of_a_run_ends_in_a_traceback(cron: Cron, edited: Simulation, value: Any) -> None:
    for detail in (value, dict.fromkeys(RESULTS, value)):
        TaskRun.objects.update(detail=detail, outcome="interrupted")
        for words in READERS:
            assert cron(*words.split(), clock=edited.clock).code in (0, 1), words


# --- the history that is judged ---

typed = pytest.mark.skipif(connection.vendor != "sqlite", reason="a column has a type elsewhere")


@pytest.fixture
def history(sim: Simulation) -> Simulation:
    """Two tasks, half a minute past ten to half past two."""
    sim.initialize([(name, "0 * * * *", sim.job(), DELAY) for name in ("a", "b")])
    sim.advance_to("2024-01-01T14:30:00Z", at_least_every=DELAY)
    assert sim[0].scheduler is not None
    sim[0].scheduler.beat()
    return sim


def _damage(table: str, column: str, value: object, which: str = "1 = 1") -> None:
    with connection.cursor() as cursor:
        statement = f"UPDATE django_declarative_cron_{table} SET {column} = %s WHERE {which}"
        cursor.execute(statement, [value])


@typed
@pytest.mark.parametrize(
    ("column", "value"), [("started_at", "2124-01-01 00:00:00"), ("finished_at", None)]
)
@pytest.mark.parametrize("hour", [11, 12, 14])
def test_a_run_that_is_torn_is_set_aside_and_nobody_is_blamed(
    cron: Cron, history: Simulation, column: str, value: object, hour: int
) -> None:
    _damage("taskrun", column, value, f"task_name = 'a' AND scheduled_for LIKE '%% {hour}:00:00%%'")
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert data["violations"] == []
    assert data["not_judged"]["rows"] == 1
    assert data["not_judged"]["out_of_sight"] == (["a"] if hour == 14 else [])


@typed
@pytest.mark.parametrize("value", ["5", "[null, 3]", '[{"cron": "0 * * * *"}]'])
def test_a_set_that_is_torn_keeps_what_can_be_read(
    cron: Cron, history: Simulation, value: str
) -> None:
    _damage("registrationset", "tasks", value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["not_judged"]["rows"]) == ([], 10)


@typed
@pytest.mark.parametrize("delay", ['"x"', "99999999999999999999999"])
def test_a_delay_that_is_none_is_for_the_judge(cron: Cron, history: Simulation, delay: str) -> None:
    _damage("registrationset", "tasks", ENTRY.format(delay))
    answer = cron("verify", "--format", "json", clock=history.clock)
    assert answer.code == 1
    assert "S5" in {each["axiom"] for each in answer.data["violations"]}


@typed
@pytest.mark.parametrize("value", ['["x"]', "5"])
def test_what_no_verdict_needs_may_be_damaged(cron: Cron, history: Simulation, value: str) -> None:
    _damage("schedulerinstance", "lapses", value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["runs"]) == ([], 10)
