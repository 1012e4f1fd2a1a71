"""Whole stories (ST): how often each task has started at each moment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

HOURLY = "0 * * * *"


def _counts(sim: Simulation, *names: str) -> list[int]:
    return [len(sim.starts(name)) for name in names]


@pytest.mark.requirement("001 Time Provider and Granularity/3", "000 Polling Behavior/4")
def test_st01_once_an_hour_at_half_past(simulation: Started) -> None:
    sim = simulation("00:05:00")
    sim.initialize([("t", "30 * * * *", sim.job(), FIVE_MINUTES)])
    counts = _counts(sim, "t")
    for moment in ("00:30", "01:30", "02:30"):
        sim.advance_to(utc(moment))
        counts += _counts(sim, "t")
    assert counts == [0, 1, 2, 3]


@pytest.mark.requirement("000 Polling Behavior/1")
def test_st02_from_the_full_hour_on(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    counts = _counts(sim, "t")
    for moment in ("11:00", "12:00", "13:00"):
        sim.advance_to(utc(moment))
        counts += _counts(sim, "t")
    assert counts == [1, 2, 3, 4]


def test_st03_hourly_beside_daily_and_a_day_away(simulation: Started) -> None:
    sim = simulation("01:00:00")
    sim.initialize(
        [("h", HOURLY, sim.job(), FIVE_MINUTES), ("d", "0 2 * * *", sim.job(), FIVE_MINUTES)]
    )
    counts = [_counts(sim, "h", "d")]
    for moment in ("02:00", "03:00", "2024-01-02T02:00"):
        sim.jump_to(utc(moment))
        counts.append(_counts(sim, "h", "d"))
    assert counts == [[1, 0], [2, 1], [3, 1], [4, 2]]


def test_st04_daily_at_midnight(simulation: Started) -> None:
    sim = simulation("00:00:00")
    sim.initialize([("t", "0 0 * * *", sim.job(), FIVE_MINUTES)])
    counts = _counts(sim, "t")
    for hours in (24, 12, 12, 24):
        sim.jump_to(sim.now + timedelta(hours=hours))
        counts += _counts(sim, "t")
    assert counts == [1, 2, 2, 3, 4]


def test_st06_every_second_and_every_fourth_hour(simulation: Started) -> None:
    sim = simulation("00:00:00")
    even, fourth = ",".join(map(str, range(0, 24, 2))), ",".join(map(str, range(0, 24, 4)))
    sim.initialize(
        [
            ("even", f"0 {even} * * *", sim.job(), FIVE_MINUTES),
            ("fourth", f"0 {fourth} * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    counts = [_counts(sim, "even", "fourth")]
    for moment in ("02:00", "04:00", "06:00", "08:00"):
        sim.advance_to(utc(moment))
        counts.append(_counts(sim, "even", "fourth"))
    assert counts == [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3]]


def test_st09_half_a_day_away(simulation: Started) -> None:
    sim = simulation("00:00:00")
    second = ",".join(map(str, range(0, 24, 2)))
    sim.initialize(
        [
            ("two", f"0 {second} * * *", sim.job(), FIVE_MINUTES),
            ("six", "0 0,6,12,18 * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    assert _counts(sim, "two", "six") == [1, 1]
    sim.jump_to(utc("12:00"))
    assert _counts(sim, "two", "six") == [2, 2]


def test_st10_a_failure_is_made_good_after_a_leap(simulation: Started) -> None:
    sim = simulation("00:00:00")
    short = timedelta(milliseconds=100)
    sim.initialize(
        [
            ("stable", "0,30 * * * *", sim.job(), short),
            ("flaky", "0,45 * * * *", sim.job(["fail", "ok"]), short),
        ]
    )
    assert _counts(sim, "stable", "flaky") == [1, 1]
    sim.jump_to(utc("02:00"))
    assert _counts(sim, "stable", "flaky") == [2, 2]
    assert sim.task("flaky").pending_retry_until is None


@pytest.mark.requirement("001 Override Resolution/1")
def test_st11_tasks_that_join_with_each_restart(simulation: Started) -> None:
    sim = simulation("00:05:00")
    tasks = [(f"t{n}", HOURLY, sim.job(), FIVE_MINUTES) for n in (1, 2, 3)]
    for known in (1, 2, 3):
        sim.initialize(tasks[:known])
        sim.stop()
    sim.initialize(tasks)
    sim.advance_to(utc("01:00"))
    assert _counts(sim, "t1", "t2", "t3") == [1, 1, 1]


@pytest.mark.requirement("001 Subsequent Restarts/1", "003 Testable Invariants/7")
def test_st14_a_restart_in_between(simulation: Started) -> None:
    sim = simulation("14:00:00")
    registrations = [("t", HOURLY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    counts = _counts(sim, "t")
    sim.advance_to(utc("15:00"))
    counts += _counts(sim, "t")
    sim.stop()
    sim.advance_to(utc("16:00"))
    sim.initialize(registrations)
    counts += _counts(sim, "t")
    sim.advance_to(utc("17:00"))
    assert [*counts, *_counts(sim, "t")] == [1, 2, 3, 4]


def test_st16_once_a_month_looked_at_daily(simulation: Started) -> None:
    sim = simulation("2025-01-14T10:00:00Z")
    sim.initialize([("t", "0 0 20 * *", sim.job(), FIVE_MINUTES)])
    days = {}
    for day in range(15, 24):
        sim.jump_to(f"2025-01-{day}T10:00:00Z")
        days[day] = len(sim.starts("t"))
    assert days == {day: int(day >= 20) for day in range(15, 24)}


@pytest.mark.requirement("001 Day-of-Month/Day-of-Week Semantics/1")
def test_st18_either_day_field_and_a_month_away(simulation: Started) -> None:
    sim = simulation("2025-01-12T11:59:00Z")
    sim.initialize([("t", "0 12 13 * 1", sim.job(), FIVE_MINUTES)])
    counts = _counts(sim, "t")
    for moment in ("2025-01-13T12:00", "2025-02-13T12:00"):
        sim.jump_to(utc(moment))
        counts += _counts(sim, "t")
    assert counts == [0, 1, 2]
    (missed,) = [run for run in sim.runs("t") if run.outcome == "missed"]
    assert missed.count == 4, "the Mondays in between are one row"


@pytest.mark.requirement("001 Parallel Execution/3")
def test_pa05_a_task_that_is_polled_while_it_runs_starts_once(simulation: Started) -> None:
    sim = simulation("00:00:00")
    sim.initialize([("t", "* * * * *", sim.job(duration=timedelta(minutes=10)), FIVE_MINUTES)])
    for second in range(60, 600):
        sim.clock.advance(utc("00:00") + timedelta(seconds=second))
        sim.poll()
    assert _counts(sim, "t") == [1]
    sim.advance_to(utc("00:10"))
    assert sim.starts("t") == [utc("00:00"), utc("00:10")]
