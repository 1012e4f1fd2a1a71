"""What 002 leaves to the scheduler: the next run, the number of runs (System-Managed Fields)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from .conftest import Started, utc


def hourly(job: Job, **keys: Any) -> list[dict[str, Any]]:
    return [{"name": "t", "cron": "0 * * * *", "callback": job, **keys}]


def next_run(sim: Simulation) -> datetime | None:
    return sim.task("t").next_run_at


@pytest.mark.requirement("002 CRON-07")
def test_cron_07_the_next_run_is_known_from_the_registration_on(simulation: Started) -> None:
    sim = simulation("10:20:00")
    sim.initialize(hourly(sim.job()))
    assert next_run(sim) == utc("11:00")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert next_run(sim) == utc("12:00")


@pytest.mark.requirement("002 CRON-07")
@pytest.mark.parametrize("policy", ["skip", "allow", "cancel_previous", "enqueue", "coalesce"])
def test_cron_07_it_moves_on_with_each_occurrence_during_a_run(
    simulation: Started, policy: str
) -> None:
    sim = simulation("10:20:00")
    sim.initialize(hourly(sim.job(duration=timedelta(minutes=150)), overlap_policy=policy))
    sim.advance_to("2024-01-01T12:10:00Z")
    # What coalesces is not looked at before the end of its run: 12:00 is still to be served.
    assert next_run(sim) == (utc("12:00") if policy == "coalesce" else utc("13:00"))


@pytest.mark.requirement("002 CRON-28")
def test_cron_28_a_task_that_is_disabled_has_none(simulation: Started) -> None:
    sim = simulation("10:20:00")
    job = sim.job()
    sim.initialize(hourly(job))
    sim.initialize(hourly(job, enabled=False))
    assert next_run(sim) is None
    sim.initialize(hourly(job))
    assert next_run(sim) == utc("11:00")


@pytest.mark.requirement("002 CRON-28")
def test_cron_28_a_pause_without_end_has_none(simulation: Started) -> None:
    sim = simulation("10:20:00")
    sim.initialize(hourly(sim.job()))
    operator_actions.pause(["t"], operator_actions.Act("ada", sim.now))
    assert next_run(sim) is None
    operator_actions.pause(["t"], operator_actions.Act("ada", sim.now), until=utc("13:30"))
    assert next_run(sim) == utc("14:00")


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


# --- civil time by the dialect ojs -------------------------------------------------------


def local(job: Job, cron: str, **keys: Any) -> list[dict[str, Any]]:
    zone = {"timezone": "America/New_York", "retry_delay": timedelta(minutes=5)}
    return [{"name": "t", "cron": cron, "callback": job, **zone, **keys}]


@pytest.mark.requirement("002 CRON-16")
def test_cron_16_a_local_time_that_does_not_exist_is_skipped(simulation: Started) -> None:
    sim = simulation("2027-03-14T06:00:00Z")
    sim.initialize(local(sim.job(), "30 2 * MAR SUN,MON"))
    sim.advance_to("2027-03-14T08:00:00Z")
    [row] = sim.runs("t")
    assert (row.outcome, row.reason) == ("skipped", "dst_skip")
    assert row.scheduled_for == utc("2027-03-14T07:00:00")
    assert row.detail == {"local_time": "2027-03-14T02:30:00"}
    assert next_run(sim) == utc("2027-03-15T06:30:00")


@pytest.mark.requirement("002 CRON-16")
def test_cron_16_it_is_told_also_where_nobody_was_there(simulation: Started) -> None:
    sim = simulation("2027-03-14T06:00:00Z")
    tasks = local(sim.job(), "*/20 2 * * *")
    sim.initialize(tasks)
    sim.stop()
    sim.jump_to("2027-03-14T12:00:00Z")
    sim.initialize(tasks)
    assert [(row.reason, row.count) for row in sim.runs("t")] == [("dst_skip", 3)]


@pytest.mark.requirement("002 CRON-17")
def test_cron_17_a_local_time_that_comes_twice_counts_the_first_time(simulation: Started) -> None:
    sim = simulation("2026-11-01T05:00:00Z")
    sim.initialize(local(sim.job(), "30 1 * * *"))
    sim.advance_to("2026-11-01T07:00:00Z")
    sim.advance_to("2026-11-02T07:00:00Z", at_least_every=timedelta(hours=1))
    assert sim.starts("t") == [utc("2026-11-01T05:30:00"), utc("2026-11-02T06:30:00")]
