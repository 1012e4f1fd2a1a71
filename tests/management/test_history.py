"""``cron history``, ``cron show`` and ``cron prune``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.management.cli import subcommand
from django_declarative_cron.management.cli.table import columns
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
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


def test_history_tells_the_newest_first(cron: Cron, three: Simulation) -> None:
    found = cron("history", "--format", "json", clock=three.clock).data["runs"]
    told = [(run["name"], run["outcome"], run["reason"], run["attempt"]) for run in found]
    assert told[:3] == [
        ("quarter", "succeeded", "due", 1),
        ("flaky", "succeeded", "retry", 2),
        ("flaky", "failed", "due", 1),
    ]


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


def test_show_says_why_what_comes_and_what_was(cron: Cron, three: Simulation) -> None:
    answer = cron("show", "flaky", clock=three.clock)
    assert f"The next run starts at {local_time('2024-01-01 12:00')}." in " ".join(
        answer.out.split()
    )
    assert "retry, attempt 2" in answer.out
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
    assert "is no instant" in cron("history", "--since", "1x", clock=three.clock).err


def test_the_distances_of_what_show_dates_stand_below_each_other(
    cron: Cron, three: Simulation
) -> None:
    three.advance_to("2024-01-01T11:40:10Z")
    lines = cron("show", "flaky", clock=three.clock).lines
    dated = lines[lines.index(next(line for line in lines if line.startswith("next"))) :][:6]
    places = {re.search(r"(in )?[0-9]+ (s|min|h|d)( ago)?$", line).start() for line in dated}
    assert len(places) == 1, "\n".join(dated)
    assert {len(line) - len(line.rstrip()) for line in dated} == {0}


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
    assert "is no number" in cron("prune", *words, clock=three.clock).err


def test_a_terminal_is_told_how_far_the_pruning_is(
    cron: Cron, three: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subcommand, "_PROGRESS_INTERVAL", 0)
    told = cron("prune", "--runs", "1", clock=three.clock, is_terminal=True).err
    assert "\rchecking flaky" in told
    assert cron("prune", "--runs", "1", clock=three.clock).err == ""
