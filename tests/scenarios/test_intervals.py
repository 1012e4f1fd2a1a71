"""``@every`` (002 Interval Expression): elapsed time, counted from the registration."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from django_declarative_cron import theory
from django_declarative_cron.testing.callables import Job

from .conftest import Started, utc


def every(job: Job, cron: str = "@every 90m", **keys: Any) -> list[dict[str, Any]]:
    return [{"name": "t", "cron": cron, "callback": job, **keys}]


def governed(job: Job, cron: str = "@every 90m", **keys: Any) -> list[dict[str, Any]]:
    rules = {"overlap_policy": "coalesce", "retry_delay": timedelta(minutes=5)}
    return every(job, cron, **rules, **keys)


@pytest.mark.requirement("002 CRON-S02")
@pytest.mark.parametrize("declare", [every, governed])
def test_cron_s02_the_first_run_is_an_interval_after_the_registration(
    simulation: Started, declare: Any
) -> None:
    sim = simulation("10:07:10")
    sim.initialize(declare(sim.job()))
    assert sim.task("t").next_run_at == utc("11:37:10")
    sim.advance_to("2024-01-01T13:10:00Z")
    assert sim.starts("t") == [utc("11:37:10"), utc("13:07:10")]
    assert sim.task("t").next_run_at == utc("14:37:10")


@pytest.mark.requirement("002 CRON-S02")
@pytest.mark.parametrize("declare", [every, governed])
def test_after_an_absence_one_run_catches_up_and_the_phase_stays(
    simulation: Started, declare: Any
) -> None:
    sim = simulation("10:00:00")
    tasks = declare(sim.job(), "@every 10m")
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:15:00Z")
    sim.stop()
    sim.jump_to("2024-01-01T10:44:00Z")
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:51:00Z")
    assert sim.starts("t") == [utc("10:10"), utc("10:44"), utc("10:50")]
    assert [(run.reason, run.scheduled_for, run.count) for run in sim.runs("t")] == [
        ("due", utc("10:10"), 1),
        ("no_scheduler", utc("10:30"), 2),
        ("due", utc("10:40"), 1),
        ("due", utc("10:50"), 1),
    ]


def test_an_override_begins_a_new_phase(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job()
    sim.initialize(governed(job, "@every 10m"))
    sim.advance_to("2024-01-01T10:13:00Z")
    sim.initialize(governed(job, "@every  10m"))
    sim.advance_to("2024-01-01T10:24:00Z")
    assert sim.starts("t") == [utc("10:10"), utc("10:23")]


def test_p18_restarts_do_not_begin_it_anew(simulation: Started) -> None:
    sim = simulation("00:00:00")
    tasks = every(sim.job(), "@every 24h")
    for day in range(1, 4):
        for hour in (6, 12, 18):
            sim.initialize(tasks)
            sim.jump_to(f"2024-01-{day:02}T{hour:02}:00:00Z")
            sim.stop()
    assert [f"{start:%d %H:%M}" for start in sim.starts("t")] == ["02 06:00", "03 06:00"]
    assert [f"{run.scheduled_for:%d %H:%M}" for run in sim.runs("t")] == ["02 00:00", "03 00:00"]


def test_p05_the_clock_on_the_wall_does_not_touch_it(simulation: Started) -> None:
    sim = simulation("2026-11-01T08:18:00Z", time_zone="America/Los_Angeles")
    sim.initialize(governed(sim.job(), "@every 10m", timezone="America/Los_Angeles"))
    sim.advance_to("2026-11-01T11:00:00Z")
    starts = sim.starts("t")
    assert len(starts) == 16
    assert starts[0] == utc("2026-11-01T08:28:00")
    assert {later - sooner for sooner, later in pairwise(starts)} == {timedelta(minutes=10)}


@pytest.mark.requirement("002 CRON-08")
def test_seconds_come_first_of_six_fields(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize(governed(sim.job(), "*/20 * * * * *"))
    sim.advance_to("2024-01-01T10:00:45Z", at_least_every=timedelta(seconds=5))
    assert sim.starts("t") == [utc("10:00:00"), utc("10:00:20"), utc("10:00:40")]


def test_a_policy_puts_a_task_outside_the_theory(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "fail", "ok"])
    sim.initialize(every(job, "0 * * * *", overlap_policy="coalesce"))
    sim.advance_to("2024-01-01T10:10:00Z")
    assert [run.attempt for run in sim.runs("t")] == [1, 2, 3]
    assert theory.check(sim.trace()) == []
