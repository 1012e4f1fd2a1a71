"""What 002 leaves to the scheduler: the next run, the number of runs (System-Managed Fields)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from .conftest import Started, utc


def hourly(job: Job, **keys: Any) -> list[dict[str, Any]]:
    return [{"name": "t", "cron": "0 * * * *", "callback": job, **keys}]


def next_run(sim: Simulation) -> datetime | None:
    return sim.task("t").next_run_at


@pytest.mark.requirement("002 CRON-07")
@pytest.mark.parametrize("policy", POLICIES)
def test_cron_07_it_moves_on_with_each_occurrence_during_a_run(
    simulation: Started, policy: str
) -> None:
    sim = simulation("10:20:00")
    sim.initialize(hourly(sim.job(duration=timedelta(minutes=150)), overlap_policy=policy))
    sim.advance_to("2024-01-01T12:10:00Z")
    # What coalesces is not looked at before the end of its run: 12:00 is still to be served.
    assert next_run(sim) == (utc("12:00") if policy == "coalesce" else utc("13:00"))


@pytest.mark.requirement("002 CRON-26")
def test_cron_26_registering_again_keeps_what_was_counted(simulation: Started) -> None:
    sim = simulation("10:20:00")
    job = sim.job()
    sim.initialize(hourly(job))
    sim.advance_to("2024-01-01T12:20:00Z")
    before = sim.task("t")
    sim.initialize(hourly(job, description="Another text.", overlap_policy="allow"))
    after = sim.task("t")
    assert (before.pk, before.run_count) == (after.pk, 2)
    assert (after.run_count, after.registered_at) == (2, before.registered_at)
    sim.initialize(hourly(job, cron="30 * * * *"))
    assert (sim.task("t").pk, sim.task("t").run_count) == (before.pk, 2)
    assert ScheduledTask.objects.count() == 1


@pytest.mark.requirement("002 CRON-06")
def test_cron_06_what_a_client_says_of_them_is_ignored(simulation: Started) -> None:
    sim = simulation("10:20:00")
    sim.initialize(hourly(sim.job(), run_count=99, next_run_at="2030-01-01T00:00:00Z"))
    assert (sim.task("t").run_count, next_run(sim)) == (0, utc("11:00"))


@pytest.mark.requirement("002 CRON-24")
def test_cron_24_nothing_is_due_more_often_than_once_a_second(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([{"name": "t", "cron": "@every 100ms", "callback": sim.job()}])
    sim.advance_to("2024-01-01T10:00:05Z", at_least_every=timedelta(milliseconds=100))
    assert sim.starts("t") == [utc(f"10:00:0{second}") for second in range(1, 6)]
