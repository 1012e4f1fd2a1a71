"""``cron verify``: what it says of a history, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.management.cli import subcommand, verify
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Cron, run_child

HOURLY = "0 * * * *"


@pytest.fixture
def history(sim: Simulation) -> Simulation:
    """Two tasks, half a minute past ten to half past one; one of them pauses at eleven."""
    failing = ("b", HOURLY, sim.job(["fail"]), timedelta(hours=3))
    sim.initialize([("a", HOURLY, sim.job(), DELAY), failing])
    sim.advance_to("2024-01-01T11:02:00Z")
    operator_actions.pause(["b"], Act(author="an operator", at=sim.now))
    sim.advance_to("2024-01-01T12:30:00Z")
    operator_actions.request_run(["b"], Act(author="an operator", at=sim.now))
    sim.advance_to("2024-01-01T13:30:00Z")
    _beat(sim)
    return sim


def _beat(sim: Simulation) -> None:
    assert sim[0].scheduler is not None
    sim[0].scheduler.beat()


def test_before_any_scheduler_it_says_what_to_do(cron: Cron, sim: Simulation) -> None:
    answer = cron("verify", clock=sim.clock)
    assert answer.code == 0
    assert "No scheduler of deployment 'default' was ever initialised." in answer.out
    data = cron("verify", "--format", "json", clock=sim.clock).data
    assert (data["ok"], data["runs"], data["checked"]) == (True, 0, 0)


def test_a_healthy_history(cron: Cron, history: Simulation) -> None:
    answer = cron("verify", clock=history.clock)
    assert (answer.code, answer.err) == (0, "")
    since, until = local_time("2024-01-01 10:00:30"), local_time("2024-01-01 13:30")
    assert answer.lines == [
        f"0 violations in 6 checked runs from {since} to {until}.",
        "The longest wait for a start: 0 s.",
        "Not checked: 1 of 7 runs.",
        "Not checked, because people had paused, run or cleared their tasks: 1 run.",
        "Not checked, until their next occurrence: 'b'.",
    ]


def test_a_history_that_breaks_the_theory(cron: Cron, history: Simulation) -> None:
    run = TaskRun.objects.get(task_name="a", scheduled_for=datetime(2024, 1, 1, 12, tzinfo=UTC))
    TaskRun.objects.filter(pk=run.pk).update(started_at=run.started_at - timedelta(minutes=2))
    answer = cron("verify", "--format", "json", clock=history.clock)
    assert (answer.code, answer.err) == (1, "The history has 3 violations.")
    data = answer.data
    violations = data["violations"]
    assert (data["ok"], data["worst_start_latency"]) == (False, 3600.0)
    assert (data["runs"], data["checked"]) == (7, 6)
    assert (data["not_judged"]["people"], data["not_judged"]["out_of_sight"]) == (1, ["b"])
    assert [(each["axiom"], each["task"], each["owner"]) for each in violations] == [
        ("S1", "a", "scheduler"),
        ("S2", "a", "scheduler"),
        ("L1", "a", "scheduler"),
    ]
    assert violations[0]["at"] == "2024-01-01T11:58:00Z"
    assert "DuePending false" in violations[0]["explanation"]


def test_of_much_that_is_still_open_the_rest_is_counted(cron: Cron, sim: Simulation) -> None:
    sim.initialize([(f"t{number:02}", HOURLY, sim.job(), DELAY) for number in range(13)])
    sim.clock.advance(datetime(2024, 1, 1, 11, 1, tzinfo=UTC))
    _beat(sim)
    answer = cron("verify", clock=sim.clock)
    assert (answer.code, answer.lines[-2:]) == (
        0,
        [
            f"Still open: L1 't09' since {local_time('2024-01-01 11:00')}.",
            "Still open: 3 more.",
        ],
    )
    data = cron("verify", "--format", "json", clock=sim.clock).data
    assert [each["owner"] for each in data["open_obligations"]] == ["inconclusive"] * 13


@pytest.mark.requirement("001 Assumptions & Notes/1")
def test_what_came_late_as_nothing_could_work_is_said(cron: Cron, sim: Simulation) -> None:
    sim.initialize([("a", HOURLY, sim.job(), DELAY)])
    sim.jump_to("2024-01-01T12:30:00Z")
    _beat(sim)
    answer = cron("verify", clock=sim.clock)
    assert answer.code == 0
    assert "The longest wait for a start: 1 h 30 min." in answer.lines
    assert answer.lines[-1].startswith("Late as nothing could work")
    [late] = cron("verify", "--format", "json", clock=sim.clock).data["late"]
    assert (late["task"], late["frozen"]) == ("a", 5400.0)


def test_a_part_of_it(cron: Cron, history: Simulation, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    answer = cron("verify", "--since", "2024-01-01T12:30", clock=history.clock)
    assert answer.lines[0] == (
        "0 violations in 2 checked runs from 2024-01-01 12:30 CET to 2024-01-01 14:30 CET."
    )


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("yesterday", "is not a time: write 2h, 2030-01-31 or 2030-01-31T07:00"),
        ("2024-01-01T13:30:01Z", "is yet to come"),
    ],
)
def test_wrong_use(cron: Cron, history: Simulation, since: str, why: str) -> None:
    answer = cron("verify", "--since", since, clock=history.clock)
    assert answer.code == 2
    assert why in answer.err


def test_another_deployment_is_not_ours(cron: Cron, history: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "other"}
    assert "deployment 'other'" in cron("verify", clock=history.clock).out


def test_names_of_tasks_are_shown_safely(cron: Cron, sim: Simulation) -> None:
    sim.initialize([("evil\u202e", HOURLY, sim.job(), DELAY)])
    operator_actions.pause(["evil\u202e"], Act(author="an operator", at=sim.now))
    _beat(sim)
    assert "\u202e" not in cron("verify", clock=sim.clock).out


def test_long_work_shows_on_a_terminal_how_far_it_is(
    cron: Cron, history: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_BATCH", 2)
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0.0)
    shown = cron("verify", clock=history.clock, is_terminal=True).err.split("\r")
    until = local_time("2024-01-01 13:00")[:-2]
    assert any(line.startswith(f"7 runs read, up to {until}") for line in shown)
    assert shown[-2:] == [" " * len(shown[-2]), ""]
    assert cron("verify", clock=history.clock).err == ""


@pytest.mark.slow
def test_a_real_scheduler_leaves_a_history_that_breaks_nothing(
    child_environment: dict[str, str],
) -> None:
    for _ in range(2):
        scheduler = run_child("runscheduler", "--once", env=child_environment)
        assert scheduler.returncode == 0, scheduler.stderr
    answer = run_child("cron", "verify", env=child_environment)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("0 violations in ")


# --- how much it takes ---------------------------------------------------------


def test_rows_are_read_a_little_at_a_time(
    cron: Cron, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim.initialize([(f"t{number}", "* * * * *", sim.job(), DELAY) for number in range(5)])
    sim.advance_to("2024-01-01T10:04:30Z")
    _beat(sim)
    monkeypatch.setattr("django_declarative_cron.store.trace_reading.CHUNK", 5)
    read = 0

    def watch(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal read
        if "started_at" in sql and "ORDER BY" in sql and "GROUP BY" not in sql:
            assert "LIMIT 5" in sql
            read += 1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        answer = cron("verify", clock=sim.clock)
    assert answer.lines[0].startswith("0 violations in 25 checked runs")
    assert read == 6


# --- tasks with policies of their own ---


@pytest.mark.parametrize("policy", POLICIES)
def test_runs_that_wait_or_never_began_are_no_violations(
    cron: Cron, sim: Simulation, policy: str
) -> None:
    job = sim.job(duration=timedelta(minutes=8))
    entry = {"name": "t", "callback": job, "overlap_policy": policy}
    plain = ("u", "0 * * * *", sim.job(), timedelta(minutes=5))
    sim.initialize([{**entry, "cron": "*/5 * * * *"}, plain])
    sim.advance_to("2024-01-01T11:31:00Z")
    sim.initialize([{**entry, "cron": "*/4 * * * *"}, plain])
    sim.advance_to("2024-01-01T12:06:00Z")
    data = cron("verify", "--format", "json", clock=sim.clock).data
    assert data["violations"] == []
    assert data["not_judged"]["outside_the_theory"] == ["t"]


def test_runs_outside_of_the_theory_are_not_counted_as_checked(cron: Cron, sim: Simulation) -> None:
    entry = {"name": "t", "cron": "*/10 * * * *", "callback": sim.job()}
    sim.initialize([entry])
    sim.advance_to("2024-01-01T10:31:00Z")
    answer = cron("verify", clock=sim.clock)
    assert answer.lines[0].startswith("0 violations in 0 checked runs from ")
    assert "Not checked: 4 of 4 runs." in answer.lines
    assert answer.lines[-1].endswith("retry policy or excluded occurrences: 't'.")
    data = cron("verify", "--format", "json", clock=sim.clock).data
    assert (data["runs"], data["checked"]) == (4, 0)
