"""What the command line says of tasks that are operated: verify, explain, show, skip."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.formatting import format_duration
from django_declarative_cron.models import TaskOverride
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from ..timezones import local_time
from .conftest import DELAY, Cron

HOUR = timedelta(hours=1)
HOLIDAYS = {"CALENDARS": {"holidays": lambda day: day == date(2024, 1, 2)}}


def _task(sim: Simulation, name: str, **said: Any) -> dict[str, Any]:
    task = {"name": name, "cron": "0 * * * *", "callback": sim.job(), "retry_delay": DELAY}
    return {**task, "overlap_policy": "coalesce", **said}


def _beat(sim: Simulation) -> None:
    assert sim[0].scheduler is not None
    sim[0].scheduler.beat()


@pytest.fixture
def operated(sim: Simulation, settings: Any) -> Simulation:
    """Three days of tasks that are spread, excluded, skipped, too late, and pause themselves."""
    settings.DECLARATIVE_CRON = HOLIDAYS
    tasks = [
        _task(sim, "excluded", exclude_calendars="holidays"),
        _task(sim, "failing", callback=sim.job(["fail"]), pause_after_failures=2),
        _task(sim, "prompt", catch_up_window=0),
        _task(sim, "skipped"),
        _task(sim, "spread", spread=1800),
    ]
    sim.initialize(tasks)
    operator_actions.skip_next(["skipped"], Act(author="ada", at=sim.now, note="inventory"))
    sim.advance_to("2024-01-01T14:30:00Z", at_least_every=HOUR)
    sim.stop()
    sim.clock.advance(sim.now + 3 * HOUR)
    sim.initialize(tasks)
    sim.advance_to("2024-01-02T03:30:00Z", at_least_every=HOUR)
    _beat(sim)
    return sim


def test_a_history_with_all_of_it_is_judged_and_explained(cron: Cron, operated: Simulation) -> None:
    runs = {name: len(operated.starts(name)) for name in operated.task_names}
    assert runs == {"excluded": 12, "failing": 2, "prompt": 15, "skipped": 15, "spread": 16}
    answer = cron("verify", clock=operated.clock)
    assert answer.code == 0, answer.out
    assert answer.lines[0].startswith("0 violations in ")
    for name, at, said in EXPLAINED:
        words = ["explain", name] if at is None else ["explain", name, "--at", at]
        assert " ".join(cron(*words, clock=operated.clock).out.split()).startswith(said)
    following = operated.task("spread").next_run_at
    # The minute of a spread occurrence means it.
    asked = following.replace(second=0).isoformat()
    answer = cron("explain", "spread", "--at", asked, clock=operated.clock)
    assert answer.out.startswith("It will run at ")
    [*_, late] = [run for run in operated.runs("spread") if run.started_at is not None]
    late.delete()
    # The judge still sees a run that is missing.
    answer = cron("verify", clock=operated.clock)
    assert (answer.code, "spread" in answer.out) == (1, True)


EXPLAINED = [
    (
        "excluded",
        "2024-01-02T02:00Z",
        "The calendar “holidays” excludes the day of 2024-01-02 02:00 UTC; "
        "it runs next at 2024-01-03 00:00 UTC.",
    ),
    (
        "excluded",
        "2024-01-02T09:00Z",
        "The calendar “holidays” excludes the day of 2024-01-02 09:00 UTC; "
        "it runs next at 2024-01-03 00:00 UTC.",
    ),
    (
        "prompt",
        "2024-01-01T17:00Z",
        "The occurrence of 2024-01-01 17:00 UTC was missed, and too old to be caught up at "
        "2024-01-01 17:30 UTC.",
    ),
    (
        "skipped",
        "2024-01-01T11:00Z",
        "The occurrence of 2024-01-01 11:00 UTC does not run because ada skipped it (inventory).",
    ),
    (
        "failing",
        None,
        "It does not run because failures in a row paused it, until someone resumes it "
        "(SimulatedFailure: fail).",
    ),
    ("spread", "2024-01-02T09:59Z", "It is not due between"),
]


def test_a_skip_to_come_is_explained_and_taken_back(cron: Cron, sim: Simulation) -> None:
    sim.initialize([_task(sim, "a")])
    answer = cron("skip", "a", "--note", "moving", "--user", "Ada", clock=sim.clock)
    assert (answer.code, answer.lines) == (0, ["Next run skipped: a"])
    answer = cron("skip", "a", clock=sim.clock)
    said = f"'a' skips its run of {local_time('2024-01-01 11:00')} already: one at a time."
    assert (answer.code, answer.lines) == (0, [said])
    answer = cron("explain", "a", "--at", "2024-01-01T11:00Z", clock=sim.clock)
    assert "does not run because" in answer.lines[0]
    assert "Next run: 2024-01-01 12:00 UTC" in answer.lines
    assert cron("skip", "a", "--undo", clock=sim.clock).lines == ["Next run no longer skipped: a"]
    assert cron("skip", "a", "--undo", clock=sim.clock).lines == ["'a' has no skipped run."]
    kinds = list(TaskOverride.objects.order_by("id").values_list("kind", "author"))
    assert kinds[0] == ("skip", "Ada")
    assert [kind for kind, _ in kinds] == ["skip", "unskip"]


def test_show_says_how_a_task_is_operated(cron: Cron, sim: Simulation, settings: Any) -> None:
    settings.DECLARATIVE_CRON = HOLIDAYS
    said = {
        "spread": 1800,
        "catch_up_window": "PT2H",
        "exclude_calendars": "holidays",
        "pause_after_failures": 5,
    }
    sim.initialize([_task(sim, "a", **said)])
    lines = [" ".join(line.split()) for line in cron("show", "a", clock=sim.clock).lines]
    assert "spread by less than 30 min" in lines
    assert "catch-up occurrences at most 2 h late" in lines
    assert "not on days of holidays" in lines
    assert "paused after 5 failures in a row" in lines


@pytest.mark.parametrize(
    ("said", "told"),
    [({"catch_up_window": 0}, "never"), ({}, "missed occurrences, however late")],
    ids=["nothing", "unsaid"],
)
def test_p27_show_says_how_late_an_occurrence_may_start(
    cron: Cron, sim: Simulation, said: dict[str, Any], told: str
) -> None:
    sim.initialize([_task(sim, "a", **said)])
    lines = [" ".join(line.split()) for line in cron("show", "a", clock=sim.clock).lines]
    assert f"catch-up {told}" in lines


def test_next_says_what_moves_its_instants_and_leaves_some_out(
    cron: Cron, sim: Simulation, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = HOLIDAYS
    moved = _task(sim, "b", spread=1800, exclude_calendars="holidays")
    settings.SCHEDULED_TASKS = [_task(sim, "a"), moved]
    sim.initialize(settings.SCHEDULED_TASKS)
    cron("skip", "a", clock=sim.clock)
    data = cron("next", "a", "-n", "1", "--format", "json", clock=sim.clock).data
    assert data["notes"] == ["Its run of 2024-01-01 11:00 UTC is skipped."]
    assert data["occurrences"][0]["at"] == "2024-01-01T12:00:00Z"
    data = cron("next", "b", "-n", "20", "--format", "json", clock=sim.clock).data
    offset = offset_of("b", timedelta(seconds=1800))
    assert data["notes"] == [
        f"Each is later by {format_duration(offset)}: it is spread.",
        "Days that its calendars exclude are left out.",
    ]
    found = [datetime.fromisoformat(each["at"]) for each in data["occurrences"]]
    hours = [(at - offset).strftime("%d %H") for at in found]
    assert hours[12:16] == ["01 22", "01 23", "03 00", "03 01"]
