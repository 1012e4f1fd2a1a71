"""More is due at one instant than one transaction takes: nothing is left over, nothing twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import claims, database
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

NAMES = [f"t{number}" for number in range(10)]


@pytest.fixture
def crowd(simulation: Started, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Ten hourly tasks of which one transaction starts three."""
    monkeypatch.setattr(claims, "BATCH", 3)
    sim = simulation("10:30:00")
    sim.initialize([(name, "0 * * * *", sim.job(), FIVE_MINUTES) for name in NAMES])
    return sim


def _starts(sim: Simulation) -> list[list[str]]:
    return [[f"{start:%H:%M:%S}" for start in sim.starts(name)] for name in NAMES]


def test_all_that_is_due_at_an_instant_starts_at_it(crowd: Simulation) -> None:
    crowd.advance_to(utc("11:00"), at_least_every=timedelta(minutes=30))
    assert _starts(crowd) == [["11:00:00"]] * 10
    crowd.advance_to(utc("12:30"), at_least_every=timedelta(minutes=30))
    assert _starts(crowd) == [["11:00:00", "12:00:00"]] * 10
    assert TaskRun.objects.filter(outcome="succeeded").count() == TaskRun.objects.count() == 20


def test_all_that_was_missed_is_caught_up_at_once(crowd: Simulation) -> None:
    crowd.jump_to(utc("13:30"))
    assert _starts(crowd) == [["13:30:00"]] * 10
    missed = TaskRun.objects.filter(outcome="missed").values_list("task_name", "count")
    assert sorted(missed) == [(name, 2) for name in NAMES]


@pytest.mark.beyond_the_theory
def test_where_one_row_spoils_its_batch_all_the_others_start(
    crowd: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(real: Callable[..., None]) -> Callable[..., None]:
        def insert(using: str, rows: Any, *rest: Any) -> None:
            if any(getattr(row, "task_name", "") == "t4" for row in rows):
                raise IntegrityError("a trigger of the project refuses t4")
            real(using, rows, *rest)

        return insert

    monkeypatch.setattr(database, "insert", refusing(database.insert))
    crowd.advance_to(utc("11:00"), at_least_every=timedelta(minutes=30))
    assert _starts(crowd) == [[] if name == "t4" else ["11:00:00"] for name in NAMES]
