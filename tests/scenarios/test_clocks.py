"""Clocks that step, and local times that come twice or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import OperationalError
from django.test import override_settings

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.store import operator_actions, reconcile

from .conftest import (
    DAILY,
    FIVE_MINUTES,
    HOUR,
    MINUTELY,
    Start,
    act,
    entry,
    governed,
    job,
    restart,
    scheduler_of,
    task,
)
from .observed import runs, starts, utc

NOON = "0 12 * * *"


def _steps(told: list[Event]) -> list[float]:
    return [event.seconds for event in told if isinstance(event, events.ClockStepped)]


def test_a_small_step_back_repeats_nothing(start: Start, told: list[Event]) -> None:
    sim = start("10:00", task("t", MINUTELY))
    sim.advance_to(utc("10:10"))
    before = len(sim.starts("t"))
    sim.jump_to(utc("10:06"))
    sim.advance_to(utc("10:10:30"))
    assert len(sim.starts("t")) == before
    sim.advance_to(utc("10:11"))
    assert len(sim.starts("t")) == before + 1
    assert _steps(told) == [-240.0]


@pytest.mark.requirement("003 Test Methodology/4")
@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("is_running", [True, False], ids=["running", "at a restart"])
def test_p81_after_a_step_back_of_hours_the_schedule_goes_on_from_now(
    start: Start, told: list[Event], is_running: bool
) -> None:
    registration = task("t", MINUTELY)
    sim = start("12:00", registration)
    if not is_running:
        sim.stop()
    sim.jump_to(utc("10:00:30"))
    sim.initialize([registration])
    assert [type(event) for event in told].count(events.TaskHighWaterMarkReset) == 1
    sim.advance_to(utc("10:01"))
    assert starts(sim) == ["12:00", "10:01"]


@pytest.mark.requirement(
    "001 Time Provider and Granularity/1", "001 Assumptions & Notes/1", "004 Safety Axioms/1"
)
def test_a_step_forward_gives_one_catch_up_for_each_task_and_passing_time_is_none(
    start: Start, told: list[Event]
) -> None:
    sim = start("02:00", task("a"), task("b", MINUTELY, delay=HOUR))
    sim.advance_to(utc("02:10"))
    assert _steps(told) == []
    before = len(sim.starts("b"))
    sim.jump_to(utc("12:10"))
    assert (starts(sim, "a"), starts(sim, "b")[before:]) == (["02:00", "12:10"], ["12:10"])
    assert _steps(told) == [36_000.0]


@pytest.mark.beyond_the_theory
def test_an_occurrence_that_comes_a_second_time_is_a_row_of_its_own(start: Start) -> None:
    sim = start("12:00", task("t", NOON))
    sim.jump_to(utc("10:00"))
    sim.advance_to(utc("12:00"), at_least_every=FIVE_MINUTES)
    assert runs(sim, "scheduled_for outcome") == [("12:00", "succeeded")] * 2


@pytest.mark.beyond_the_theory
def test_what_is_owed_at_once_does_not_wait_for_the_old_time_after_a_step_back(
    start: Start,
) -> None:
    asked, cut = task("asked", NOON), task("cut", DAILY, lasts=9 * HOUR)
    sim = start("10:00", asked, cut)
    sim.advance_to(utc("10:30"))
    operator_actions.request_run(["asked"], act(sim))
    restart(sim, asked, cut, at="10:27")
    assert runs(sim, "reason", "asked") == ["manual"]
    assert runs(sim, "reason", "cut") == ["boot", "orphaned"]


@pytest.mark.beyond_the_theory
def test_a_retry_neither_waits_for_the_old_time_nor_uses_up_attempts_of_what_comes_again(
    start: Start,
) -> None:
    sim = start("12:00", task("t", NOON, "fail", delay=timedelta(minutes=10)))
    sim.jump_to(utc("11:40"))
    sim.advance_to(utc("12:25"))
    assert runs(sim, "scheduled_for attempt started_at") == [
        ("12:00", 1, "12:00"),
        ("11:40", 2, "11:50"),
        ("12:00", 1, "12:00"),
        ("12:00", 2, "12:10"),
        ("12:00", 3, "12:20"),
    ]
    assert sim.task("t").broken_reason == ""


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("policy", "outcome"), [("coalesce", "fail"), ("skip", "ok"), ("enqueue", "ok")]
)
def test_a_run_that_goes_on_as_the_clock_steps_back_silences_nothing_after_its_end(
    start: Start, policy: str, outcome: str
) -> None:
    long = job(outcome, timedelta(minutes=7))
    sim = start("11:55", governed("t", "*/10 * * * *", long, overlap_policy=policy))
    sim.advance_to(utc("12:01"))
    sim.jump_to(utc("10:01"))
    # It takes as long as it takes: its end is told by the hands of the new time.
    sim._ends[:] = [replace(end, at=utc("10:07")) for end in sim._ends]
    long.duration, long.outcomes = timedelta(0), ["ok"]
    sim.advance_to(utc("10:30"), at_least_every=FIVE_MINUTES)
    assert starts(sim)[1:] == ["10:10", "10:20", "10:30"]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("how", ["in one process", "with a crash between"])
def test_a_clock_that_was_years_ahead_for_a_minute_leaves_nothing_behind(
    start: Start, how: str
) -> None:
    often = task("often", "0,20,40 * * * *", "fail ok")
    tasks = [often, task("daily", "0 11 * * *"), entry("every", "@every 30m")]
    sim = start("10:15:30", *tasks)
    for moment in ("2030-01-01T00:00:10", "2024-01-01T10:16:00"):
        if how == "with a crash between":
            sim.crash()
        sim.jump_to(utc(moment))
        sim.initialize(tasks)
    sim.advance_to(utc("11:00"), at_least_every=FIVE_MINUTES)
    # The failure ahead of time is tried again five minutes after the clock is right again.
    assert starts(sim, "often")[1:] == ["10:20", "10:40", "11:00"]
    assert (starts(sim, "daily")[1:], starts(sim, "every")[1:]) == (["11:00"], ["10:45:30"])


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(("cron", "at"), [("@every 10m", "10:10:30"), ("30 10 * * *", "10:30")])
def test_a_task_that_was_registered_ahead_of_time_does_not_wait_for_that_time(
    start: Start, cron: str, at: str
) -> None:
    sim = start("12:00", entry("t", cron))
    sim.jump_to(utc("10:00:30"))
    sim.advance_to(utc("10:31"), at_least_every=FIVE_MINUTES)
    assert starts(sim)[0] == at


@pytest.mark.beyond_the_theory
def test_a_step_back_is_reconsidered_when_the_database_answers_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    sim = start("12:30", task())

    def refuse(*_: object) -> None:
        raise OperationalError("the server is gone")

    with monkeypatch.context() as patched:
        patched.setattr(reconcile, "reconsider", refuse)
        sim.jump_to(utc("08:30"))
    sim.advance_to(utc("09:00"))
    assert starts(sim) == ["09:00"]
    assert len(_steps(told)) == 1


# --- local times, lived through by a running scheduler ---

NEW_YORK = "America/New_York"
QUARTER = timedelta(minutes=15)
SECOND_PASS = [f"06:{minute}0" for minute in range(6)]


@pytest.mark.requirement(
    "001 Time Provider and Granularity/3", "001 Timely Behavior/6", "001 Timely Behavior/8"
)
@pytest.mark.parametrize(
    ("fold", "minutes"),
    [
        ("first", ["05:40", "05:50", "07:00", "07:10"]),
        ("both", ["05:40", "05:50", *SECOND_PASS, "07:00", "07:10"]),
    ],
)
def test_p02_a_repeated_hour_runs_once_or_twice_as_declared(
    start: Start, fold: str, minutes: list[str]
) -> None:
    said = {"fold": fold, "timezone": NEW_YORK, "retry_delay": timedelta(minutes=5)}
    sim = start("2026-11-01T05:31", entry("t", "*/10 * * * *", **said))
    sim.advance_to(utc("2026-11-01T07:10"), at_least_every=QUARTER)
    # The second pass is no occurrence where only the first counts: nothing was missed.
    assert runs(sim, "started_at") == [f"2026-11-01T{each}" for each in minutes]
    assert sim.task("t").run_count == len(minutes)


@pytest.mark.parametrize("moment", ["05:29:59", "06:29:00", "06:30:00"])
def test_p04_the_lead_that_moves_in_a_repeated_hour_runs_nothing_twice(
    start: Start, moment: str
) -> None:
    one_thirty = task("t", "30 1 * * *")
    sim = start("2026-10-31T05:45", one_thirty, instances=2, time_zone=NEW_YORK)
    sim.advance_to(utc(f"2026-11-01T{moment}"), at_least_every=12 * HOUR)
    leader = SchedulerState.objects.get().leader_id
    next(sim[n] for n in (0, 1) if scheduler_of(sim, n).id == leader).stop()
    sim.advance_to(utc("2026-11-02T06:30"), at_least_every=HOUR)
    assert starts(sim) == ["2026-11-01T05:30", "2026-11-02T06:30"]


@pytest.mark.requirement(
    "001 Timely Behavior/4", "001 Timely Behavior/6", "001 Timely Behavior/7", "002 CRON-16"
)
def test_p08_the_others_run_on_time_where_one_local_time_is_left_out(start: Start) -> None:
    others = [f"t{n}" for n in range(49)]
    tasks = [task("lost", "30 2 * * *"), *(task(name, "0,10 * * * *") for name in others)]
    sim = start("2027-03-14T06:30:30", *tasks, time_zone=NEW_YORK)
    sim.advance_to(utc("2027-03-14T07:15"), at_least_every=QUARTER)
    on_time = ["2027-03-14T07:00", "2027-03-14T07:10"]
    assert [starts(sim, name) for name in others] == [on_time] * 49
    told = {"local_time": "2027-03-14T02:30:00"}
    assert runs(sim, "outcome reason detail", "lost") == [("skipped", "dst_skip", told)]
    assert sim.task("lost").next_run_at == utc("2027-03-15T06:30")


@pytest.mark.parametrize("use_tz", [True, False])
def test_p16_one_run_a_local_day_whatever_times_the_project_keeps(
    start: Start, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Shanghai"
    sim = start("2026-12-01T01:00", task("t", "30 17 * * *"), time_zone=settings.TIME_ZONE)
    sim.advance_to(utc("2026-12-14T23:30"), at_least_every=8 * HOUR)
    expected = [datetime.fromisoformat(f"2026-12-{day:02}T17:30:00+08:00") for day in range(1, 15)]
    assert [run.scheduled_for for run in sim.runs("t")] == expected


@pytest.mark.requirement("001 Timely Behavior/5", "002 CRON-17")
def test_ds11_a_daily_task_in_the_fold_runs_once_also_when_restarted(start: Start) -> None:
    one_thirty = task("t", "30 1 * * *")
    sim = start("2024-11-02T05:00", one_thirty, time_zone=NEW_YORK)
    sim.advance_to(utc("2024-11-03T05:15"), at_least_every=HOUR)
    for moment in ("05:45", "06:15", "06:30"):
        sim.advance_to(utc(f"2024-11-03T{moment}"))
        restart(sim, one_thirty)
    sim.advance_to(utc("2024-11-03T12:00"), at_least_every=HOUR)
    assert starts(sim) == ["2024-11-02T05:30", "2024-11-03T05:30"]


def test_ds21_a_retry_delay_is_elapsed_time_across_a_gap(start: Start) -> None:
    failing = task("t", "58 1 * * *", "fail", delay=timedelta(minutes=10))
    sim = start("2024-03-10T06:58", failing, time_zone=NEW_YORK)
    assert sim.task("t").pending_retry_until == utc("2024-03-10T07:08")


@pytest.mark.requirement("002 CRON-16")
def test_cron_16_a_gap_is_told_also_where_nobody_was_there(start: Start) -> None:
    registration = entry("t", "*/20 2 * * *", timezone=NEW_YORK, retry_delay=QUARTER)
    sim = start("2027-03-14T06:00", registration)
    sim.stop()
    sim.jump_to(utc("2027-03-14T12:00"))
    sim.initialize([registration])
    assert runs(sim, "reason count") == [("dst_skip", 3)]


# --- zones with odd offsets and changes: a day is scheduled once in each ---

ODD = {
    "Africa/Casablanca": "2026-02-14",  # It is behind itself in Ramadan.
    "Africa/El_Aaiun": "2026-03-21",
    "America/Nuuk": "2026-03-28",  # Its clocks change on the evening before.
    "America/St_Johns": "2026-03-07",
    "America/Caracas": "2016-04-30",
    "Antarctica/Troll": "2026-03-28",  # Its clocks change by two hours.
    "Asia/Gaza": "2026-03-27",
    "Asia/Kathmandu": "2026-03-28",
    "Asia/Pyongyang": "2015-08-14",
    "Asia/Tehran": "2022-03-21",  # A day began at one o'clock.
    "Australia/Lord_Howe": "2026-04-04",  # Its clocks change by half an hour.
    "Etc/GMT+12": "2026-03-28",
    "Europe/Dublin": "2026-03-28",  # Its winter is the time that is changed.
    "Pacific/Apia": "2011-12-29",  # It has no 30 December 2011.
    "Pacific/Chatham": "2026-04-04",
    "Pacific/Kiritimati": "1994-12-30",
}


@pytest.mark.parametrize("zone", ODD)
def test_an_odd_zone_has_a_run_each_local_day(start: Start, zone: str) -> None:
    begin = datetime.fromisoformat(ODD[zone]).replace(tzinfo=ZoneInfo(zone))
    sim = start(begin, governed("daily", "17 4 * * *", timezone=zone))
    sim.advance_to(begin + timedelta(days=4), at_least_every=6 * HOUR)
    local = [at.astimezone(begin.tzinfo) for at in sim.starts("daily")]
    assert {(at.hour, at.minute) for at in local} == {(4, 17)}
    days = [at.date() for at in local]
    assert days == sorted(set(days))
    assert len(days) == (3 if zone in ("Pacific/Apia", "Pacific/Kiritimati") else 4)


# --- projects without aware times ---

TEN = timedelta(minutes=10)
EVERY_TEN = "0,10,20,30,40,50 * * * *"

# The change of the clocks lies an hour after each of them.
CHANGES = [
    ("America/New_York", "2026-03-08T06:00:00+00:00"),
    ("America/New_York", "2026-11-01T05:00:00+00:00"),
    ("Australia/Lord_Howe", "2026-04-04T14:00:00+00:00"),
]


@pytest.fixture(params=CHANGES, ids=str)
def begin(request: pytest.FixtureRequest) -> Iterator[datetime]:
    """Keep local times in a zone, an hour before its clocks change."""
    zone, at = request.param
    with override_settings(USE_TZ=False, TIME_ZONE=zone):
        yield datetime.fromisoformat(at)


@pytest.mark.slow
def test_nothing_runs_twice_or_not_at_all(start: Start, begin: datetime) -> None:
    """A task fails once, and leaders die before, in and after the hour of the change."""
    tasks = [task("steady", EVERY_TEN), task("failing", "0 * * * *", "fail ok")]
    sim = start(begin, *tasks)
    for minute in (55, 65, 95, 125):
        sim.advance_to(begin + timedelta(minutes=minute), TEN)
        restart(sim, *tasks)
    sim.advance_to(begin + timedelta(minutes=140), TEN)
    later = [run for run in sim.runs("steady") if run.scheduled_for > begin]
    every_ten = [begin + TEN * number for number in range(1, 15)]
    assert [run.scheduled_for for run in later] == every_ten
    assert [run.started_at for run in later] == every_ten
    assert {run.outcome for run in sim.runs("steady")} == {"succeeded"}
    oldest_first = TaskRun.objects.filter(task_name="steady").order_by("started_at")
    assert list(oldest_first) == sim.runs("steady")
    first, second = [at for at in sim.starts("failing") if at >= begin][:2]
    assert second - first == timedelta(minutes=5)


def test_who_was_away_for_the_change_catches_up_once(start: Start, begin: datetime) -> None:
    sim = start(begin, task("steady", EVERY_TEN))
    sim.advance_to(begin + timedelta(minutes=45), TEN)
    sim.crash()
    back = begin + timedelta(minutes=115)
    sim.jump_to(back)
    sim.initialize([task("steady", EVERY_TEN)])
    [missed] = TaskRun.objects.filter(outcome="missed")
    assert (missed.scheduled_from, missed.count) == (begin + 5 * TEN, 6)
    assert missed.scheduled_for == begin + 10 * TEN
    [late] = TaskRun.objects.filter(scheduled_for=begin + 11 * TEN)
    assert (late.started_at, late.outcome) == (back, "succeeded")
    assert sim.task("steady").next_run_at == begin + 12 * TEN
