"""What becomes of an occurrence when something goes wrong, as the table in the docs says (P102)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from django_declarative_cron.store import results
from django_declarative_cron.testing import SimulatedCrash, Simulation

from .conftest import FIVE_MINUTES, Started, utc

pytestmark = pytest.mark.beyond_the_theory

Row = tuple[str, str, int]
RESTARTED: list[Row] = [("interrupted", "due", 1), ("succeeded", "orphaned", 2)]
AGAIN_AND_AGAIN = pytest.mark.parametrize("catch_up_window", [None, 0], ids=["always", "never"])


def _tasks(
    sim: Simulation, catch_up_window: int | None, outcomes: list[Any]
) -> list[dict[str, Any]]:
    task = {"name": "t", "cron": "0 * * * *", "timezone": "UTC", "callback": sim.job(outcomes)}
    return [{**task, "retry_delay": FIVE_MINUTES, "catch_up_window": catch_up_window}]


def _rows(sim: Simulation) -> list[Row]:
    assert {run.scheduled_for for run in sim.runs("t")} == {utc("11:00")}
    return [(run.outcome, run.reason, run.attempt) for run in sim.runs("t")]


@pytest.mark.parametrize(
    ("catch_up_window", "row"), [(None, ("succeeded", "due", 1)), (0, ("missed", "too_late", 0))]
)
def test_nobody_was_there_at_the_occurrence(
    simulation: Started, catch_up_window: int | None, row: Row
) -> None:
    sim = simulation("10:30:00")
    tasks = _tasks(sim, catch_up_window, ["ok"])
    sim.initialize(tasks)
    sim.stop()
    sim.advance_to(utc("11:30"))
    sim.initialize(tasks)
    assert _rows(sim) == [row]


@AGAIN_AND_AGAIN
@pytest.mark.parametrize("moment", ["during the run", "before its success is written"])
def test_the_process_died(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, catch_up_window: int | None, moment: str
) -> None:
    def gone(*_: object) -> None:
        raise SimulatedCrash

    sim = simulation("10:59:30")
    dies = moment == "during the run"
    tasks = _tasks(sim, catch_up_window, [SimulatedCrash(), "ok"] if dies else ["ok"])
    sim.initialize(tasks)
    with monkeypatch.context() as patched:
        if not dies:
            patched.setattr(results, "_record", gone)
        sim.advance_to(utc("11:00"))
    sim.advance_to(utc("11:40"))
    sim.initialize(tasks)
    assert _rows(sim) == RESTARTED


@AGAIN_AND_AGAIN
def test_its_success_was_written_late(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, catch_up_window: int | None
) -> None:
    def refuse(*_: object) -> None:
        raise OperationalError("the server is gone")

    sim = simulation("10:59:30")
    sim.initialize(_tasks(sim, catch_up_window, ["ok"]))
    with monkeypatch.context() as patched:
        patched.setattr(results, "_record", refuse)
        sim.advance_to(utc("11:20"))
        assert [outcome for outcome, *_ in _rows(sim)] == ["running"]
    sim.advance_to(utc("11:40"))
    assert _rows(sim) == [("succeeded", "due", 1)]
    assert (sim.task("t").last_success_at, sim.task("t").run_count) == (utc("11:00"), 1)
