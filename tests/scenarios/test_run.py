"""What a run is told of itself and its task, and keeps to itself."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from django_declarative_cron import Run
from django_declarative_cron.testing import SimulatedFailure

from .conftest import FIVE_MINUTES, Started, utc


def test_each_run_is_given_what_was_declared(simulation: Started) -> None:
    given: list[Any] = []

    def take(rows: list[Any], run: Run) -> None:
        given.append(deepcopy((run.task_name, rows, run.meta["of"])))
        rows.append({"more": 1})
        run.meta["of"].append("this run")

    said = {"callback": take, "args": [[{"id": 7}]], "options": {"meta": {"of": ["all"]}}}
    # Alike, so that they are read as one.
    tasks = [{"name": name, "cron": "0 * * * *", **said} for name in ("a", "b")]
    before = deepcopy([(each["args"], each["options"]) for each in tasks])
    sim = simulation("10:30:00")
    sim.initialize(tasks)
    sim.advance_to(utc("12:30"))
    assert sorted(name for name, *_ in given) == ["a", "a", "b", "b"]
    assert [each[1:] for each in given] == [([{"id": 7}], ["all"])] * 4
    assert [(each["args"], each["options"]) for each in tasks] == before


def test_p25_a_run_knows_which_occurrence_it_is_for_in_each_attempt(simulation: Started) -> None:
    sim = simulation("10:59:30")
    seen: list[Run] = []

    def report(run: Run) -> None:
        seen.append(run)
        if run.attempt < 3:
            raise SimulatedFailure("the bank is closed")

    entry = {"name": "report", "cron": "0 12 * * *", "callback": report}
    sim.initialize([{**entry, "timezone": "Europe/Berlin", "retry_delay": FIVE_MINUTES}])
    sim.clock.advance(utc("11:00:45"))
    sim.advance_to("2024-01-01T11:12:00Z")
    assert [(r.attempt, r.reason, r.started_at.replace(microsecond=0)) for r in seen] == [
        (1, "due", utc("11:00:45")),
        (2, "retry", utc("11:05:45")),
        (3, "retry", utc("11:10:45")),
    ]
    assert {(run.task_name, run.scheduled_for, run.timezone) for run in seen} == {
        ("report", utc("11:00"), "Europe/Berlin")
    }


@pytest.mark.requirement("002 CRON-20")
def test_cron_20_runs_carry_the_name_of_their_task(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "ok"])
    meta = {"site": 7, "cron_name": "another"}
    sim.initialize([{"name": "t", "cron": "0 * * * *", "callback": job, "options": {"meta": meta}}])
    sim.advance_to("2024-01-01T10:10:00Z")
    expected = {"site": 7, "cron_name": "t", "cron_triggered_at": "2024-01-01T10:00:00Z"}
    assert [run.meta for run in job.runs] == [expected, expected]
    assert [(run.attempt, run.max_attempts) for run in job.runs] == [(1, 3), (2, 3)]
