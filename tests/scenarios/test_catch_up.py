"""Catch-up (CU): one run for all that was missed, and a row for the rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc


def _jump(sim: Simulation, instant: str, polls: int) -> None:
    sim.jump_to(instant)
    for _ in range(polls - 1):
        sim.poll()


@pytest.mark.requirement("001 No Make-Up Execution Policy/1")
def test_cu01_downtime_gives_one_run_then_the_cadence(simulation: Started) -> None:
    sim = simulation("09:00:00")
    registrations = [("t", "0 * * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.crash()
    sim.jump_to("2024-01-01T12:30:00Z")
    sim.initialize(registrations)
    assert sim.task("t").last_attempt_at == utc("12:30")
    sim.advance_to("2024-01-01T13:30:00Z")
    assert sim.starts("t") == [utc("09:00"), utc("12:30"), utc("13:00")]


@pytest.mark.requirement("001 No Make-Up Execution Policy/2", "002 CRON-25")
def test_of_n_missed_occurrences_the_newest_runs_and_one_row_covers_the_rest(
    simulation: Started,
) -> None:
    sim = simulation("09:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    sim.jump_to("2024-01-01T12:30:00Z")
    caught_up = TaskRun.objects.get(started_at=utc("12:30"))
    missed = TaskRun.objects.get(outcome="missed")
    assert (caught_up.scheduled_for, caught_up.reason) == (utc("12:00"), "due")
    assert (missed.reason, missed.count) == ("held_up", 2)
    assert (missed.scheduled_from, missed.scheduled_for) == (utc("10:00"), utc("11:00"))


@pytest.mark.requirement("001 No Make-Up Execution Policy/1")
def test_p19_a_minutely_task_down_for_a_day_leaves_one_run_and_one_row(
    simulation: Started,
) -> None:
    sim = simulation("00:00:00")
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    sim.jump_to("2024-01-02T00:00:00Z")
    assert len(sim.starts("t")) == 2
    assert TaskRun.objects.get(outcome="missed").count == 1439


def test_p70_passes_that_take_longer_than_the_interval_lose_no_occurrence(
    simulation: Started,
) -> None:
    sim = simulation("10:00:30")
    names = ("a", "b")
    sim.initialize([(name, "* * * * *", sim.job(), FIVE_MINUTES) for name in names])
    for seconds in (90, 180, 270, 360):
        sim.clock.advance(utc("10:00:30") + timedelta(seconds=seconds))
        sim.poll()
    for name in names:
        rows = [(r.outcome, r.scheduled_for, r.count) for r in sim.runs(name)][1:]
        assert rows == [
            ("missed", utc("10:01"), 1),
            ("succeeded", utc("10:02"), 1),
            ("succeeded", utc("10:03"), 1),
            ("missed", utc("10:04"), 1),
            ("succeeded", utc("10:05"), 1),
            ("succeeded", utc("10:06"), 1),
        ]


@pytest.mark.requirement(
    "001 No Make-Up Execution Policy/1",
    "001 No Make-Up Execution Policy/2",
    "003 Testable Invariants/6",
)
@pytest.mark.parametrize(
    ("starts", "tasks", "until", "polls"),
    [
        ("01:00:00", {"0 * * * *": 1}, "2024-01-01T04:00:00Z", 30),
        ("02:00:00", {"0 * * * *": 1, "0 6 * * *": 0}, "2024-01-03T02:00:00Z", 10),
        (
            "00:00:00",
            {"0,15,30,45 * * * *": 1, "0 * * * *": 1, "0 0,6,12,18 * * *": 1},
            "2024-01-01T12:00:00Z",
            3,
        ),
        (
            "00:00:00",
            {"0,30 * * * *": 1, "0 * * * *": 1, "0 9 * * *": 0},
            "2024-01-08T00:00:00Z",
            3,
        ),
    ],
    ids=["cu02 three hours", "cu03 two days", "cu04 half a day", "cu05 a week"],
)
def test_after_a_leap_and_many_polls_each_task_has_caught_up_once(
    simulation: Started, starts: str, tasks: dict[str, int], until: str, polls: int
) -> None:
    sim = simulation(starts)
    sim.initialize([(cron, cron, sim.job(), FIVE_MINUTES) for cron in tasks])
    assert {cron: len(sim.starts(cron)) for cron in tasks} == tasks
    _jump(sim, until, polls)
    caught_up = {cron: number + 1 for cron, number in tasks.items()}
    assert {cron: len(sim.starts(cron)) for cron in tasks} == caught_up


def test_cu06_after_a_catch_up_the_cadence_goes_on(simulation: Started) -> None:
    sim = simulation("00:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    counts = []
    for instant in ("05:00", "06:00", "07:00"):
        sim.jump_to(f"2024-01-01T{instant}:00Z")
        counts.append(len(sim.starts("t")))
    assert counts == [2, 3, 4]


@pytest.mark.requirement("001 Subsequent Restarts/3")
def test_cu10_a_catch_up_just_before_an_occurrence_does_not_swallow_it(
    simulation: Started,
) -> None:
    sim = simulation("09:00:00")
    registrations = [("t", "0 10 * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.crash()
    sim.jump_to("2024-01-02T09:59:59Z")
    sim.initialize(registrations)
    assert sim.starts("t") == [utc("2024-01-02T09:59:59")]
    sim.jump_to("2024-01-02T10:00:00Z")
    assert sim.starts("t")[1:] == [utc("2024-01-02T10:00")]


@pytest.mark.requirement("004 Liveness Axioms/1")
def test_cu13_a_long_run_gets_exactly_one_follow_up_right_after_its_end(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(duration=timedelta(minutes=10, seconds=30))
    quick = [("t", "* * * * *", job, FIVE_MINUTES)]
    sim.initialize(quick)
    sim.advance_to("2024-01-01T10:10:29Z")
    job.duration = timedelta(0)
    sim.advance_to("2024-01-01T10:13:00Z")
    assert sim.starts("t") == [
        utc("10:00"),
        utc("10:10:30"),
        utc("10:11"),
        utc("10:12"),
        utc("10:13"),
    ]
    coalesced = TaskRun.objects.get(outcome="skipped")
    assert (coalesced.reason, coalesced.count) == ("coalesced", 9)
    assert TaskRun.objects.get(started_at=utc("10:10:30")).scheduled_for == utc("10:10")


def test_cu15_a_monthly_task_catches_up_once_after_months(simulation: Started) -> None:
    sim = simulation("2025-01-02T10:00:00Z")
    sim.initialize([("t", "0 12 1 * *", sim.job(), FIVE_MINUTES)])
    for day in range(3, 23):
        sim.jump_to(f"2025-01-{day:02}T10:00:00Z")
    assert sim.starts("t") == []
    _jump(sim, "2025-09-01T12:00:00Z", 3)
    assert len(sim.starts("t")) == 1


@pytest.mark.requirement("001 Day-of-Month/Day-of-Week Semantics/1")
def test_cu17_both_day_fields_are_an_or_and_a_fresh_store_owes_nothing(
    simulation: Started,
) -> None:
    sim = simulation("2025-01-15T10:00:00Z")
    registrations = [("t", "0,15,30,45 * 15 * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    assert len(sim.starts("t")) == 1
    sim.stop()
    sim.initialize([])
    TaskRun.objects.all().delete()
    sim.jump_to("2025-01-16T10:00:00Z")
    sim.initialize(registrations)
    assert sim.starts("t") == []


@pytest.mark.requirement("001 Timely Behavior/4", "001 Timely Behavior/6", "001 Timely Behavior/7")
def test_ds09_ds14_a_gap_and_a_fold_in_a_running_scheduler(simulation: Started) -> None:
    sim = simulation("2024-03-10T06:50:30Z", time_zone="America/New_York")
    sim.initialize(
        [
            ("gap", "30 2 * * *", sim.job(), FIVE_MINUTES),
            ("min", "* * * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    sim.advance_to("2024-03-10T08:00:00Z")
    assert sim.starts("gap") == []
    assert len(sim.starts("min")) == 71
    lost = TaskRun.objects.get(task_name="gap")
    assert (lost.outcome, lost.reason) == ("skipped", "dst_skip")
    assert lost.scheduled_for == utc("2024-03-10T07:00")
    assert lost.detail == {"local_time": "2024-03-10T02:30:00"}
    assert TaskRun.objects.filter(task_name="min", outcome="skipped").count() == 0


@pytest.mark.requirement(
    "001 Time Provider and Granularity/3", "001 Timely Behavior/6", "001 Timely Behavior/8"
)
def test_ds14_a_minutely_task_is_silent_for_the_second_pass(simulation: Started) -> None:
    sim = simulation("2024-11-03T05:50:00Z", time_zone="America/New_York")
    sim.initialize([("min", "* * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-11-03T07:05:00Z")
    expected = [f"05:{m}" for m in range(50, 60)] + [f"07:0{m}" for m in range(6)]
    assert sim.starts("min") == [utc(f"2024-11-03T{each}") for each in expected]


@pytest.mark.requirement("001 Timely Behavior/5")
def test_ds11_a_daily_task_in_the_fold_runs_once_also_when_restarted(
    simulation: Started,
) -> None:
    sim = simulation("2024-11-02T05:00:00Z", time_zone="America/New_York")
    registrations = [("t", "30 1 * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-11-03T05:15:00Z", at_least_every=timedelta(hours=1))
    for restart in ("05:45", "06:15", "06:30"):
        sim.advance_to(f"2024-11-03T{restart}:00Z")
        sim.crash()
        sim.initialize(registrations)
    sim.advance_to("2024-11-03T12:00:00Z")
    assert sim.starts("t") == [utc("2024-11-02T05:30"), utc("2024-11-03T05:30")]


def test_ds21_a_retry_delay_is_elapsed_time_across_a_gap(simulation: Started) -> None:
    sim = simulation("2024-03-10T06:58:00Z", time_zone="America/New_York")
    sim.initialize([("t", "58 1 * * *", sim.job(["fail"]), timedelta(minutes=10))])
    assert sim.task("t").pending_retry_until == utc("2024-03-10T07:08")
