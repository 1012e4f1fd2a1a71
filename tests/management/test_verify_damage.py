"""``cron verify`` on rows that somebody damaged: SQLite takes any text for any value."""

from __future__ import annotations

import pytest
from django.db import connection

from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import DELAY, Cron

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="a column has a type elsewhere"),
]

NAMELESS = '[{"cron": "0 * * * *"}]'
ENTRY = '[{{"name": "a", "cron": "0 * * * *", "timezone": "UTC", "retry_delay_us": {}}}]'


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


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("started_at", "abc"),
        ("started_at", 12),
        ("started_at", "2124-01-01 00:00:00"),
        ("finished_at", "abc"),
        ("finished_at", None),
    ],
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


def test_a_run_of_an_instance_that_is_no_name_of_one_is_judged(
    cron: Cron, history: Simulation
) -> None:
    first = TaskRun.objects.earliest("id").pk
    connection.disable_constraint_checking()
    _damage("taskrun", "instance_id", "xyz", f"id = {first}")
    data = cron("verify", "--format", "json", clock=history.clock).data
    _damage("taskrun", "instance_id", None)
    assert (data["violations"], data["runs"]) == ([], 10)


@pytest.mark.parametrize(
    ("column", "value", "aside"),
    [
        ("tasks", "5", 10),
        ("tasks", "[null, 3]", 10),
        ("tasks", NAMELESS, 10),
        ("registered_at", "abc", 0),
        ("after_run", "abc", 0),
    ],
)
def test_a_set_that_is_torn_keeps_what_can_be_read(
    cron: Cron, history: Simulation, column: str, value: str, aside: int
) -> None:
    _damage("registrationset", column, value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["not_judged"]["rows"]) == ([], aside)


@pytest.mark.parametrize("delay", ['"x"', "99999999999999999999999"])
def test_a_delay_that_is_none_is_for_the_judge(cron: Cron, history: Simulation, delay: str) -> None:
    _damage("registrationset", "tasks", ENTRY.format(delay))
    answer = cron("verify", "--format", "json", clock=history.clock)
    assert answer.code == 1
    assert "S5" in {each["axiom"] for each in answer.data["violations"]}


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("schedulerinstance", "lapses", '["x"]'),
        ("schedulerinstance", "lapses", "5"),
        ("schedulerstate", "identifier", "abc"),
        ("schedulerstate", "term", "abc"),
        ("schedulerstate", "history_from", "abc"),
        ("scheduledtask", "history_from", "abc"),
    ],
)
def test_what_no_verdict_needs_may_be_damaged(
    cron: Cron, history: Simulation, table: str, column: str, value: str
) -> None:
    _damage(table, column, value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["runs"]) == ([], 10)


@pytest.mark.parametrize("column", ["heartbeat_at", "initialized_at"])
def test_an_instance_without_its_times_is_left_out(
    cron: Cron, history: Simulation, column: str
) -> None:
    _damage("schedulerinstance", column, "abc")
    answer = cron("verify", clock=history.clock)
    assert (answer.code, answer.err) == (0, "")
