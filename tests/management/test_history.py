"""``cron history``, ``cron show`` and ``cron prune``."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.management.cli import subcommand
from django_declarative_cron.management.cli.table import columns
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import DELAY, Cron


@pytest.fixture
def three(sim: Simulation) -> Simulation:
    """Two tasks; one failed at eleven and succeeded after its retry."""
    sim.initialize(
        [
            ("flaky", "0 * * * *", sim.job(outcomes=["ok", "fail", "ok"]), DELAY),
            ("quarter", "15 * * * *", sim.job(), DELAY),
        ]
    )
    sim.advance_to("2024-01-01T11:40Z")
    return sim


def test_history_is_narrowed_by_name_outcome_time_and_number(cron: Cron, three: Simulation) -> None:
    def number(*words: str) -> int:
        return len(cron("history", *words, "--format", "json", clock=three.clock).data["runs"])

    assert number("flaky", "--outcome", "failed") == 1
    assert number("flaky", "-n", "1") == 1
    assert number("--since", "2024-01-01T11:15Z") == 1
    assert number("quarter", "--outcome", "failed") == 0


def test_which_of_two_runs_it_was_stands_where_the_clocks_show_two(
    cron: Cron, db: None, settings: Any
) -> None:
    settings.TIME_ZONE = "America/New_York"
    sim = Simulation("2026-11-01T05:10Z", time_zone="UTC")
    sim.initialize([("half", "0,30 * * * *", sim.job(), DELAY)])
    sim.advance_to("2026-11-01T07:00Z")
    lines = cron("history", clock=sim.clock).lines[1:5]
    times = ["01:30 EST", "01:00 EST", "01:30 EDT"]
    for line, at in zip(lines, ["02:00  ", *times], strict=True):
        assert f"2026-11-01 {at}" in line


@pytest.mark.usefixtures("eighty_columns")
@pytest.mark.parametrize("words", [("history",), ("history", "flaky"), ("show", "flaky")])
def test_tables_fit_the_width_of_a_terminal(
    cron: Cron, three: Simulation, words: tuple[str, ...]
) -> None:
    TaskRun.objects.update(error="a long story " * 40)
    answer = cron(*words, clock=three.clock, is_terminal=True)
    assert answer.code == 0
    assert max(map(columns, answer.lines)) <= 80


def test_the_history_of_a_name_outlives_its_task(cron: Cron, three: Simulation) -> None:
    three.initialize([])
    assert not ScheduledTask.objects.exists()
    assert cron("history", "flaky", clock=three.clock).code == 0
    assert cron("history", "nobody", clock=three.clock).code == 2


def test_show_tells_programs_what_comes_and_what_was(cron: Cron, three: Simulation) -> None:
    data = cron("show", "flaky", "--format", "json", clock=three.clock).data
    assert data["next"][:2] == ["2024-01-01T12:00:00Z", "2024-01-01T13:00:00Z"]
    assert [run["outcome"] for run in data["runs"]][:2] == ["succeeded", "failed"]


def test_since_may_be_a_length_before_now(cron: Cron, three: Simulation) -> None:
    def starts(since: str) -> list[str]:
        words = ("history", "--since", since, "--format", "json")
        return [run["scheduled_for"] for run in cron(*words, clock=three.clock).data["runs"]]

    an_hour_ago = three.now - timedelta(hours=1)
    assert starts("1h") == starts("60m") == starts(an_hour_ago.isoformat())
    assert len(starts("0s")) < len(starts("1h")) < len(starts("1d"))
    assert starts("2024-01-01") == starts("1d")
    for refused in ("yesterday", "1w", "10"):
        answer = cron("history", "--since", refused, clock=three.clock)
        forms = "write 2h, 2030-01-31 or 2030-01-31T07:00."
        assert (answer.code, answer.err) == (2, f"--since {refused!r} is not a time: {forms}")


def test_prune_keeps_the_newest_success_and_failure(cron: Cron, three: Simulation) -> None:
    three.advance_to("2024-01-01T18:40Z")
    before = TaskRun.objects.count()
    answer = cron("prune", "--runs", "2", "--format", "json", clock=three.clock).data
    assert answer["kept"] == TaskRun.objects.count() == before - answer["deleted"]
    assert answer["deleted"] > 5
    assert TaskRun.objects.filter(task_name="flaky", outcome="failed").count() == 1
    assert TaskRun.objects.filter(task_name="quarter").count() == 2


def test_prune_forgets_what_is_old(cron: Cron, three: Simulation) -> None:
    three.clock.advance(three.now + timedelta(days=5))
    answer = cron("prune", "--days", "4", clock=three.clock)
    assert "deleted" in answer.out
    assert TaskRun.objects.filter(task_name="quarter").count() == 1


@pytest.mark.parametrize("words", [("--days", "0"), ("--runs", "-1"), ("--runs", "many")])
def test_prune_refuses_what_is_no_number(
    cron: Cron, three: Simulation, words: tuple[str, ...]
) -> None:
    assert "is not a number" in cron("prune", *words, clock=three.clock).err


def test_a_terminal_is_told_how_far_the_pruning_is(
    cron: Cron, three: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0)
    told = cron("prune", "--runs", "1", clock=three.clock, is_terminal=True).err
    assert "\rchecking flaky" in told
    assert cron("prune", "--runs", "1", clock=three.clock).err == ""


# --- retry policies ---

POLICY = {"max_attempts": 3, "initial_interval": "PT1M", "jitter": False}


def failing(sim: Simulation) -> None:
    entry: dict[str, Any] = {"name": "t", "cron": "0 * * * *", "callback": sim.job(["fail"])}
    sim.initialize([{**entry, "options": {"retry": POLICY}}])


def test_the_policy_and_the_attempt_to_come_are_shown(cron: Cron, sim: Simulation) -> None:
    failing(sim)
    text = "\n".join(cron("show", "t", clock=sim.clock).lines)
    assert "3 attempts, PT1M, ×2 each, PT5M at most" in text
    assert "next attempt  2 of 3" in text


def test_show_says_where_a_run_takes_place_and_what_ends_it(cron: Cron, sim: Simulation) -> None:
    entry: dict[str, Any] = {"name": "t", "cron": "0 * * * *", "callback": sim.job([])}
    sim.initialize([{**entry, "runner": "thread", "atomic": True, "options": {"timeout": 90}}])
    facts = [" ".join(line.split()) for line in cron("show", "t", clock=sim.clock).lines]
    assert "runner thread, in one transaction" in facts
    assert "timeout 1 min 30 s" in facts
    assert "overlap skip" in facts


def test_history_counts_attempts_and_says_why_nothing_follows(cron: Cron, sim: Simulation) -> None:
    failing(sim)
    sim.advance_to("2024-01-01T10:30:00Z")
    text = "\n".join(cron("history", "t", clock=sim.clock).lines)
    assert "retry, attempt 2 of 3" in text
    assert "retry, attempt 3 of 3" in text
    assert "given up: attempts" in text


@pytest.mark.usefixtures("eighty_columns")
@pytest.mark.parametrize("words", [("history",), ("show", "flaky")])
def test_an_error_has_one_line_below_its_run(
    cron: Cron, three: Simulation, words: tuple[str, ...]
) -> None:
    long = f"ConnectionError: {'no route ' * 40}"
    TaskRun.objects.filter(outcome="failed").update(error=f"{long}\nmore")
    answer = cron(*words, clock=three.clock, is_terminal=True)
    shown = [line for line in answer.lines if "no route" in line]
    assert shown == [f"  {long[:77].rstrip()}…"]
    assert answer.lines[answer.lines.index(shown[0]) - 1].startswith("failed ")
    piped = cron(*words, clock=three.clock).out
    assert f"due, {long.strip()}\n" in piped


@pytest.mark.usefixtures("eighty_columns")
def test_wide_lines_are_those_of_a_pipe(cron: Cron, three: Simulation) -> None:
    TaskRun.objects.filter(outcome="failed").update(error="no route " * 40)
    wide = cron("history", "--wide", clock=three.clock, is_terminal=True).lines
    table = cron("history", clock=three.clock).lines
    assert wide[: len(table)] == table
