"""What is due: at startup (SU), at each occurrence, and after an absence (CU)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import pytest
from pytest_django import Settings as SettingsWrapper

from django_declarative_cron import signals
from django_declarative_cron.testing import Simulation

from .conftest import (
    DAILY,
    FIVE_MINUTES,
    HOUR,
    MINUTELY,
    SECOND,
    Start,
    entry,
    governed,
    job,
    restart,
    scheduler_of,
    task,
)
from .observed import runs, starts, unserved, utc

TUESDAY = "2024-01-02T15:30"


@pytest.mark.requirement(
    "000 Polling Behavior/2",
    "001 First Startup/1",
    "001 First Startup/2",
    "001 Timestamp Management/2",
    "003 Testable Invariants/4",
    "003 Testable Invariants/5",
    "004 Stateful/1",
)
def test_su01_to_su09_new_tasks_whose_minute_it_is_run_at_once_and_others_have_no_history(
    start: Start,
) -> None:
    now = ("30 15 * * 2", "30 15 * * *", "0,15,30,45 * * * *", "30 * * * *")
    later = ("20 15 * * *", "20 15 * * 2", "40 15 * * *", "30 15 * * 3")
    sim = start(TUESDAY, *(task(cron, cron) for cron in (*now, *later)))
    for cron in now:
        assert starts(sim, cron) == [TUESDAY]
        assert sim.task(cron).last_attempt_at == utc(TUESDAY)
    for cron in later:
        row = sim.task(cron)
        assert starts(sim, cron) == []
        assert (row.last_attempt_at, row.last_success_at, row.pending_retry_until) == (None,) * 3
        assert row.registered_at == utc(TUESDAY)


@pytest.mark.requirement(
    "001 Time Provider and Granularity/3", "001 First Startup/3", "002 CRON-07"
)
def test_su03_it_runs_at_its_first_occurrence(start: Start) -> None:
    sim = start(TUESDAY, task("t", "35 15 * * 2"))
    assert sim.task("t").next_run_at == utc("2024-01-02T15:35")
    sim.advance_to(utc("2024-01-02T15:34:59"))
    assert starts(sim) == []
    sim.jump_to(utc("2024-01-02T15:35"))
    assert starts(sim) == ["2024-01-02T15:35"]
    assert sim.task("t").next_run_at == utc("2024-01-09T15:35")


@pytest.mark.parametrize("at", ["1970-01-01T12:00", "2100-01-15T12:00"])
def test_su14_far_dates_are_dates_like_others(start: Start, at: str) -> None:
    assert starts(start(at, task("t", "0 12 * * *"))) == [at]


def test_the_boot_obligation_stays_until_it_starts(start: Start) -> None:
    sim = start("10:00", instances=2)
    sim[0].initialize([])
    scheduler_of(sim).request_stop()  # It leads and will start nothing.
    sim[1].initialize([task("t", DAILY)])
    assert starts(sim) == ["10:00"]


@pytest.mark.requirement("004 S2")
@pytest.mark.parametrize(
    ("outcomes", "after"), [("ok", ["succeeded"]), ("fail ok", ["failed", "succeeded"])]
)
def test_a_name_that_returns_in_its_minute_runs_again_unless_it_succeeded(
    start: Start, outcomes: str, after: list[str]
) -> None:
    registration = task("t", DAILY, outcomes, delay=HOUR)
    sim = start("10:00:05", registration)
    sim.initialize([])
    sim.advance_to(utc("10:00:30"))
    sim.initialize([registration])
    assert runs(sim, "outcome") == after
    sim.advance_to(utc("2024-01-02T10:00"), at_least_every=HOUR)
    assert runs(sim, "outcome") == [*after, "succeeded"]


# --- a registration that begins in one minute and ends in the next ---

BEFORE, AFTER = "10:00:59.900000", "10:01:00.200000"
COLUMNS = "outcome reason scheduled_for started_at"
BOOTED = [("succeeded", "boot", "10:01", AFTER)]


@contextmanager
def stepped(sim: Simulation, signal: str, to: str = AFTER) -> Iterator[None]:
    """Let time pass when an event is published: rows are written, and nothing has started."""

    def step(**_: Any) -> None:
        sim.clock.advance(utc(to))

    signals.SIGNALS[signal].connect(step)
    try:
        yield
    finally:
        signals.SIGNALS[signal].disconnect(step)


@pytest.mark.parametrize(
    ("declared", "occurrence", "begin", "end"),
    [
        (task("t", MINUTELY), "10:01", BEFORE, AFTER),
        (entry("t", MINUTELY), "10:01", BEFORE, AFTER),
        (entry("t", MINUTELY, overlap_policy="enqueue"), "10:01", BEFORE, AFTER),
        (entry("t", MINUTELY, catch_up_window=0), "10:01", BEFORE, AFTER),
        (task("t", DAILY), "10:00", BEFORE, AFTER),
        (entry("t", "* * * * * *"), "10:00:31", "10:00:30.900000", "10:00:31.100000"),
    ],
    ids=["minutely", "by keys", "enqueue", "never catches up", "daily", "each second"],
)
def test_a_new_task_has_one_boot_run(
    start: Start, declared: Any, occurrence: str, begin: str, end: str
) -> None:
    sim = start(begin)
    with stepped(sim, "task_added", end):
        sim.initialize([declared])
    assert runs(sim, COLUMNS) == [("succeeded", "boot", occurrence, end)]


def test_an_interval_has_no_minute_and_runs_one_interval_later(start: Start) -> None:
    sim = start(BEFORE)
    with stepped(sim, "task_added"):
        sim.initialize([entry("t", "@every 1m")])
    sim.advance_to(utc("10:02"))
    assert runs(sim, "reason started_at") == [("due", "10:01:59.900000")]


def test_a_task_that_is_overridden_or_returns_has_one_boot_run(start: Start) -> None:
    sim = start("09:59", task("returns", MINUTELY), task("changed", "0 0 1 1 *"))
    sim.initialize([task("changed", "0 0 1 1 *")])
    sim.advance_to(utc(BEFORE))
    with stepped(sim, "task_overridden"):
        sim.initialize([task("returns", MINUTELY), task("changed", MINUTELY)])
    assert runs(sim, COLUMNS, "changed") == BOOTED
    assert runs(sim, COLUMNS, "returns")[1:] == BOOTED
    sim.advance_to(utc("10:02"))
    assert runs(sim, "reason", "returns") == ["boot", "boot", "due"]


# --- catch-up: one run for all that was missed, a row for the rest ---


@pytest.mark.requirement("001 No Make-Up Execution Policy/2", "002 CRON-25")
def test_of_n_missed_occurrences_the_newest_runs_and_one_row_covers_the_rest(start: Start) -> None:
    sim = start("09:00", task())
    sim.jump_to(utc("12:30"))
    assert runs(sim, "outcome reason count scheduled_from scheduled_for started_at")[1:] == [
        ("missed", "held_up", 2, "10:00", "11:00", None),
        ("succeeded", "due", 1, None, "12:00", "12:30"),
    ]


def test_p20_a_deploy_at_noon_does_not_lose_the_noon_run(start: Start) -> None:
    registration = task("t", "0 12 * * *")
    sim = start("11:30:30", registration)
    sim.advance_to(utc("11:59:59"))
    sim.stop()
    sim.clock.advance(utc("12:00:07"))
    sim.initialize([registration])
    sim.advance_to(utc("12:30"))
    noon = ("12:00", "12:00:07", "succeeded")
    assert runs(sim, "scheduled_for started_at outcome") == [noon]


def test_p22_a_month_of_missed_seconds_is_one_run_and_one_row(start: Start) -> None:
    registration = entry("t", "* * * * * *")
    sim = start("10:00", registration)
    sim.stop()
    sim.clock.advance(utc("2024-01-31T10:00"))
    began = time.process_time()
    sim.initialize([registration])
    took = time.process_time() - began
    missed = [(run.outcome, run.count) for run in sim.runs("t") if run.outcome == "missed"]
    assert missed == [("missed", 30 * 86_400 - 1)]
    sim.advance_to(utc("2024-01-31T10:00:02"))
    assert starts(sim) == ["10:00", *(f"2024-01-31T10:00{s}" for s in ("", ":01", ":02"))]
    # Walking through the seconds would take ten times as long.
    assert took < 2


def test_p70_passes_that_take_longer_than_the_interval_lose_no_occurrence(start: Start) -> None:
    sim = start("10:00:30", task("a", MINUTELY), task("b", MINUTELY))
    for seconds in (90, 180, 270, 360):
        sim.clock.advance(utc("10:00:30") + seconds * SECOND)
        sim.poll()
    for name in ("a", "b"):
        assert runs(sim, "outcome scheduled_for count", name)[1:] == [
            ("missed", "10:01", 1),
            ("succeeded", "10:02", 1),
            ("succeeded", "10:03", 1),
            ("missed", "10:04", 1),
            ("succeeded", "10:05", 1),
            ("succeeded", "10:06", 1),
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
def test_each_task_has_started_so_often_at_each_moment(start: Start, case: str) -> None:
    move, begin, moments, expected = CASES[case]
    sim = start(begin, *(task(cron, cron) for cron in expected))
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
def test_cu10_a_catch_up_just_before_an_occurrence_does_not_swallow_it(start: Start) -> None:
    registration = task("t", DAILY)
    sim = start("09:00", registration)
    restart(sim, registration, at="2024-01-02T09:59:59")
    sim.jump_to(utc("2024-01-02T10:00"))
    assert starts(sim) == ["2024-01-02T09:59:59", "2024-01-02T10:00"]


@pytest.mark.requirement("004 Liveness Axioms/1")
def test_cu13_a_long_run_gets_exactly_one_follow_up_right_after_its_end(start: Start) -> None:
    long = job(lasts=timedelta(minutes=10, seconds=30))
    sim = start("10:00", task("t", MINUTELY, long))
    sim.advance_to(utc("10:10:29"))
    long.duration = timedelta(0)
    sim.advance_to(utc("10:13"))
    assert starts(sim) == ["10:00", "10:10:30", "10:11", "10:12", "10:13"]
    assert unserved(sim) == [("skipped", "coalesced", 9, "10:09")]
    assert runs(sim, "scheduled_for")[2] == "10:10"


# --- the window ---


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("window", "runs_late"),
    [
        ({}, True),
        ({"catch_up_window": 0}, False),
        ({"catch_up_window": HOUR}, False),
        ({"catch_up_window": 2 * HOUR}, True),
    ],
    ids=["no window", "never", "an hour", "two hours"],
)
def test_an_occurrence_older_than_the_window_is_missed(
    start: Start, window: dict[str, Any], runs_late: bool
) -> None:
    registration = governed("t", "0 0,10 * * *", **window)
    sim = start("09:30", registration)
    restart(sim, registration, at="11:30")
    assert starts(sim) == (["11:30"] if runs_late else [])
    assert unserved(sim) == ([] if runs_late else [("missed", "too_late", 1, "10:00")])
    assert sim.task("t").next_run_at == utc("2024-01-02T00:00")


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("window", "row"),
    [
        (0, ("missed", "too_late", "10:00")),
        (HOUR, ("missed", "too_late", "10:00")),
        (2 * HOUR, ("succeeded", "boot", "10:00")),
    ],
)
def test_what_is_owed_since_the_registration_has_the_same_window(
    start: Start, settings: SettingsWrapper, window: object, row: tuple[str, str, str]
) -> None:
    def broken(day: date) -> bool:
        raise LookupError("no such year")

    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": broken}}
    registration = governed("t", DAILY, exclude_calendars="holidays", catch_up_window=window)
    sim = start("10:00:30", registration)
    sim.advance_to(utc("11:29"))
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": lambda day: False}}
    sim.initialize([registration])
    sim.advance_to(utc("11:40"))
    assert runs(sim, "outcome reason scheduled_for") == [row]
    assert sim.task("t").boot_at is None
    assert sim.task("t").next_run_at == utc("2024-01-02T10:00")


def test_never_catching_up_allows_a_start_its_minute_and_the_end_of_a_run(start: Start) -> None:
    sim = start("09:30", governed("t", lasts=timedelta(minutes=90), catch_up_window=0))
    sim.jump_to(utc("10:00:45"))
    sim.advance_to(utc("11:45"))
    assert starts(sim) == ["10:00:45", "11:30:45"]


@pytest.mark.beyond_the_theory
def test_all_that_is_too_late_is_one_row_and_a_retry_comes_however_late(start: Start) -> None:
    late = governed("late", catch_up_window=2 * FIVE_MINUTES)
    failed = governed("failed", DAILY, "fail ok", catch_up_window=0)
    sim = start("09:30", late, failed)
    sim.advance_to(utc("10:01"))
    sim.jump_to(utc("14:30"))
    assert unserved(sim, "late") == [("missed", "too_late", 4, "14:00")]
    assert runs(sim, "reason started_at", "failed") == [("due", "10:00"), ("retry", "14:30")]
    sim.advance_to(utc("15:00"))
    assert starts(sim, "late") == ["10:00", "15:00"]
