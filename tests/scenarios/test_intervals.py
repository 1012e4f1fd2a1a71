"""``@every`` (002 Interval Expression): elapsed time, counted from the registration."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from django_declarative_cron import theory
from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.testing import Simulation
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


# --- policies of retries ---------------------------------------------------------------


def retried(sim: Simulation, outcomes: list[Any], **retry: Any) -> Job:
    job = sim.job(outcomes)
    sim.initialize(every(job, "0 * * * *", options={"retry": retry}))
    return job


def test_attempts_are_counted_with_the_first_run(simulation: Started) -> None:
    sim = simulation("10:00:00")
    retried(sim, ["fail"], initial_interval="PT1M", backoff_coefficient=3, jitter=False)
    sim.advance_to("2024-01-01T10:59:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("10:01"), utc("10:04")]
    last = sim.runs("t")[-1]
    assert last.detail == {"given_up": "attempts", "ends_as": "discard", "max_attempts": 3}
    assert (sim.task("t").pending_retry_until, sim.task("t").failures) == (None, 3)


def test_no_interval_is_longer_than_the_longest(simulation: Started) -> None:
    sim = simulation("10:00:00")
    policy = {"max_attempts": 5, "initial_interval": "PT2M", "max_interval": "PT3M"}
    retried(sim, ["fail"], jitter=False, **policy)
    sim.advance_to("2024-01-01T10:59:00Z")
    assert [f"{start:%H:%M}" for start in sim.starts("t")] == [
        "10:00", "10:02", "10:05", "10:08", "10:11",
    ]  # fmt: skip


def test_jitter_is_the_same_for_the_same_run(simulation: Started) -> None:
    sim = simulation("10:00:00")
    retried(sim, ["fail"], initial_interval="PT10M", max_interval="PT1H", max_attempts=2)
    pending = sim.task("t").pending_retry_until
    assert pending is not None
    assert timedelta(minutes=5) <= pending - utc("10:00") < timedelta(minutes=15)
    sim.advance_to("2024-01-01T10:20:00Z")
    assert sim.starts("t")[1] == pending


@pytest.mark.parametrize(
    "named",
    ["ValueError", "builtins.ValueError", "builtins.*", "Exception"],
)
def test_some_errors_are_not_tried_again(simulation: Started, named: str, told: Any) -> None:
    sim = simulation("10:00:00")
    policy = {"non_retryable_errors": [named], "on_exhaustion": "dead_letter"}
    retried(sim, [ValueError("no")], **policy)
    sim.advance_to("2024-01-01T10:59:00Z")
    [run] = sim.runs("t")
    assert run.outcome == "failed"
    assert run.detail == {
        "given_up": "non_retryable", "ends_as": "dead_letter", "max_attempts": 3,
    }  # fmt: skip
    [event] = [each for each in told if type(each).__name__ == "TaskRetriesExhausted"]
    assert (event.level, event.ends_as, event.run, event.attempt) == (
        "ERROR", "dead_letter", run.pk, 1,
    )  # fmt: skip


def test_another_error_is_tried_again(simulation: Started) -> None:
    sim = simulation("10:00:00")
    retried(sim, [ValueError("no"), "ok"], non_retryable_errors=["KeyError", "value.*"])
    sim.advance_to("2024-01-01T10:01:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["failed", "succeeded"]


def test_the_policy_stays_through_a_change_of_it(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = retried(sim, ["fail"], initial_interval="PT30M", jitter=False, max_interval="PT1H")
    pending = sim.task("t").pending_retry_until
    policy = RetryPolicy(max_attempts=7).as_data()
    sim.initialize(every(job, "0 * * * *", options={"retry": policy}))
    assert sim.task("t").pending_retry_until == pending == utc("10:30")
    assert sim.task("t").run_count == 1


@pytest.mark.requirement("002 CRON-20")
def test_cron_20_runs_carry_the_name_of_their_task(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "ok"])
    meta = {"site": 7, "cron_name": "another"}
    sim.initialize(every(job, "0 * * * *", options={"meta": meta}))
    sim.advance_to("2024-01-01T10:10:00Z")
    expected = {"site": 7, "cron_name": "t", "cron_triggered_at": "2024-01-01T10:00:00Z"}
    assert [run.meta for run in job.runs] == [expected, expected]
    assert [(run.attempt, run.max_attempts) for run in job.runs] == [(1, 3), (2, 3)]
