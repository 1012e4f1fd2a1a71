"""Startup (SU): what runs at a first coming, and what never does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from .conftest import FIVE_MINUTES, Started, utc

TUESDAY = "2024-01-02T15:30:00Z"


@pytest.mark.requirement(
    "000 Polling Behavior/2",
    "001 First Startup/1",
    "001 First Startup/2",
    "003 Testable Invariants/4",
    "004 Stateful/1",
)
def test_su01_su04_su07_su08_every_new_task_whose_minute_it_is_runs_at_once_and_no_other(
    simulation: Started,
) -> None:
    sim = simulation(TUESDAY)
    now = ("30 15 * * 2", "30 15 * * *", "0,15,30,45 * * * *", "30 * * * *")
    later = ("20 15 * * *", "40 15 * * *", "30 15 * * 3")
    sim.initialize([(cron, cron, sim.job(), FIVE_MINUTES) for cron in (*now, *later)])
    for cron in now:
        assert sim.starts(cron) == [utc("2024-01-02T15:30")]
        assert sim.task(cron).last_attempt_at == utc("2024-01-02T15:30")
    assert [sim.starts(cron) for cron in later] == [[]] * len(later)


@pytest.mark.requirement(
    "001 First Startup/2", "001 Timestamp Management/2", "003 Testable Invariants/5"
)
def test_su02_su09_ad01_a_new_task_in_another_minute_invents_no_history(
    simulation: Started,
) -> None:
    sim = simulation(TUESDAY)
    sim.initialize([("t", "20 15 * * 2", sim.job(), FIVE_MINUTES)])
    task = sim.task("t")
    assert sim.starts("t") == []
    assert (task.last_attempt_at, task.last_success_at, task.pending_retry_until) == (None,) * 3
    assert task.registered_at == utc("2024-01-02T15:30")


@pytest.mark.requirement(
    "001 Time Provider and Granularity/3", "001 First Startup/3", "002 CRON-07"
)
def test_su03_it_runs_at_its_first_occurrence(simulation: Started) -> None:
    sim = simulation(TUESDAY)
    sim.initialize([("t", "35 15 * * 2", sim.job(), FIVE_MINUTES)])
    assert sim.task("t").next_run_at == utc("2024-01-02T15:35")
    sim.advance_to("2024-01-02T15:34:59Z")
    assert sim.starts("t") == []
    sim.jump_to("2024-01-02T15:35:00Z")
    assert sim.starts("t") == [utc("2024-01-02T15:35")]
    assert sim.task("t").next_run_at == utc("2024-01-09T15:35")


@pytest.mark.parametrize("start", ["1970-01-01T12:00:00Z", "2100-01-15T12:00:00Z"])
def test_su14_far_dates_are_dates_like_others(simulation: Started, start: str) -> None:
    sim = simulation(start)
    sim.initialize([("t", "0 12 * * *", sim.job(), FIVE_MINUTES)])
    assert len(sim.starts("t")) == 1


def test_the_boot_obligation_stays_until_it_starts(simulation: Started) -> None:
    sim = simulation("10:00:00", instances=2)
    jobs = [("t", "0 10 * * *", sim.job(), FIVE_MINUTES)]
    sim[0].initialize([])
    sim[0].scheduler.request_stop()  # it leads and will start nothing
    sim[1].initialize(jobs)
    assert sim.starts("t") == [utc("10:00")]


@pytest.mark.requirement("004 S2")
def test_a_name_that_succeeded_this_minute_does_not_run_again_when_it_returns(
    simulation: Started,
) -> None:
    sim = simulation("10:00:05")
    registrations = [("t", "0 10 * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.initialize([])
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.initialize(registrations)
    assert len(sim.starts("t")) == 1
    sim.advance_to("2024-01-02T10:00:00Z", at_least_every=timedelta(hours=1))
    assert len(sim.starts("t")) == 2


def test_a_name_that_failed_this_minute_runs_again_when_it_returns(simulation: Started) -> None:
    sim = simulation("10:00:05")
    registrations = [("t", "0 10 * * *", sim.job(["fail", "ok"]), timedelta(hours=1))]
    sim.initialize(registrations)
    sim.initialize([])
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.initialize(registrations)
    assert [run.outcome for run in sim.runs("t")] == ["failed", "succeeded"]
