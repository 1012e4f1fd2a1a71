"""``cron verify`` on rows that somebody damaged."""

from __future__ import annotations

import pytest
from django.db import connection

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
        ("started_at", "2124-01-01 00:00:00"),
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


@pytest.mark.parametrize("value", ["5", "[null, 3]", NAMELESS])
def test_a_set_that_is_torn_keeps_what_can_be_read(
    cron: Cron, history: Simulation, value: str
) -> None:
    _damage("registrationset", "tasks", value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["not_judged"]["rows"]) == ([], 10)


@pytest.mark.parametrize("delay", ['"x"', "99999999999999999999999"])
def test_a_delay_that_is_none_is_for_the_judge(cron: Cron, history: Simulation, delay: str) -> None:
    _damage("registrationset", "tasks", ENTRY.format(delay))
    answer = cron("verify", "--format", "json", clock=history.clock)
    assert answer.code == 1
    assert "S5" in {each["axiom"] for each in answer.data["violations"]}


@pytest.mark.parametrize("value", ['["x"]', "5"])
def test_what_no_verdict_needs_may_be_damaged(cron: Cron, history: Simulation, value: str) -> None:
    _damage("schedulerinstance", "lapses", value)
    data = cron("verify", "--format", "json", clock=history.clock).data
    assert (data["violations"], data["runs"]) == ([], 10)
