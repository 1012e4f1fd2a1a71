"""Catch-up (CU): one run for all that was missed, and a row for the rest."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.models import TaskRun

from .conftest import FIVE_MINUTES, Started, utc


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


# How often each task has started at the start, and at each moment.
CASES: dict[str, tuple[str, str, list[str], dict[str, list[int]]]] = {
    "st01 hourly at half past": (
        "advance_to", "00:05", ["00:30", "01:30", "02:30"], {"30 * * * *": [0, 1, 2, 3]}
    ),
    "st02 from the full hour on": (
        "advance_to", "10:00", ["11:00", "12:00", "13:00"], {"0 * * * *": [1, 2, 3, 4]}
    ),
    "st03 a day away": (
        "jump_to", "01:00", ["02:00", "03:00", "2024-01-02T02:00"],
        {"0 * * * *": [1, 2, 3, 4], "0 2 * * *": [0, 1, 1, 2]},
    ),
    "st04 daily at midnight": (
        "jump_to", "00:00", [f"2024-01-{at}:00" for at in ("02T00", "02T12", "03T00", "04T00")],
        {"0 0 * * *": [1, 2, 2, 3, 4]},
    ),
    "st16 monthly": (
        "jump_to", "2025-01-14T10:00", [f"2025-01-{day}T10:00" for day in (18, 19, 20, 21)],
        {"0 0 20 * *": [0, 0, 0, 1, 1]},
    ),
    "st18 either day field": (
        "jump_to", "2025-01-12T11:59", ["2025-01-13T12:00", "2025-02-13T12:00"],
        {"0 12 13 * 1": [0, 1, 2]},
    ),
    "cu02 three hours": ("jump_to", "01:00", ["04:00"], {"0 * * * *": [1, 2]}),
    "cu03 two days": (
        "jump_to", "02:00", ["2024-01-03T02:00"], {"0 * * * *": [1, 2], "0 6 * * *": [0, 1]}
    ),
    "cu04 half a day": (
        "jump_to", "00:00", ["12:00"],
        {"0,15,30,45 * * * *": [1, 2], "0 * * * *": [1, 2], "0 0,6,12,18 * * *": [1, 2]},
    ),
    "cu05 a week": (
        "jump_to", "00:00", ["2024-01-08T00:00"],
        {"0,30 * * * *": [1, 2], "0 * * * *": [1, 2], "0 9 * * *": [0, 1]},
    ),
    "cu06 then the cadence": (
        "jump_to", "00:00", ["05:00", "06:00", "07:00"], {"0 * * * *": [1, 2, 3, 4]}
    ),
    "cu15 months": (
        "jump_to", "2025-01-02T10:00", ["2025-01-03T10:00", "2025-01-22T10:00", "2025-09-01T12:00"],
        {"0 12 1 * *": [0, 0, 0, 1]},
    ),
}  # fmt: skip


@pytest.mark.requirement(
    "000 Polling Behavior/1",
    "000 Polling Behavior/4",
    "001 Day-of-Month/Day-of-Week Semantics/1",
    "001 No Make-Up Execution Policy/1",
    "001 No Make-Up Execution Policy/2",
    "001 Time Provider and Granularity/3",
    "003 Testable Invariants/6",
)
@pytest.mark.parametrize("case", CASES)
def test_each_task_has_started_so_often_at_each_moment(simulation: Started, case: str) -> None:
    move, start, moments, expected = CASES[case]
    sim = simulation(utc(start).isoformat())
    sim.initialize([(cron, cron, sim.job(), FIVE_MINUTES) for cron in expected])
    counts = {cron: [len(sim.starts(cron))] for cron in expected}
    for moment in moments:
        getattr(sim, move)(utc(moment))
        # However often it looks, nothing starts twice.
        for _ in range(3):
            sim.poll()
        for cron in expected:
            counts[cron].append(len(sim.starts(cron)))
    assert counts == expected


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
