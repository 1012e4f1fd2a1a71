"""Local times that come twice or not at all, lived through by a running scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings

from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.testing import Simulation
from django_declarative_cron.theory import check

from .conftest import FIVE_MINUTES, Started, utc

QUARTER = timedelta(minutes=15)
SECOND_PASS = [f"06:{minute}0" for minute in range(6)]


def _hands_over(sim: Simulation) -> None:
    """Let whoever leads go, as in a deploy."""
    leader = SchedulerState.objects.get().leader_id
    (leading,) = [each for each in (sim[0], sim[1]) if each.scheduler.id == leader]  # type: ignore[union-attr]
    leading.stop()


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
    simulation: Started, fold: str, minutes: list[str]
) -> None:
    sim = simulation("2026-11-01T05:31:00Z")
    task = {"name": "t", "cron": "*/10 * * * *", "callback": sim.job(), "fold": fold}
    sim.initialize([{**task, "timezone": "America/New_York", "retry_delay": FIVE_MINUTES}])
    sim.advance_to("2026-11-01T07:10:00Z", at_least_every=QUARTER)
    assert sim.starts("t") == [utc(f"2026-11-01T{each}") for each in minutes]
    # The second pass is no occurrence where only the first counts: nothing was missed.
    assert sim.task("t").run_count == TaskRun.objects.count() == len(minutes)


@pytest.mark.parametrize("moment", ["05:29:59", "06:29:00", "06:30:00"])
def test_p04_the_lead_that_moves_in_a_repeated_hour_runs_nothing_twice(
    simulation: Started, moment: str
) -> None:
    sim = simulation("2026-10-31T05:45:00Z", instances=2, time_zone="America/New_York")
    sim.initialize([("t", "30 1 * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to(f"2026-11-01T{moment}Z", at_least_every=timedelta(hours=12))
    _hands_over(sim)
    sim.advance_to("2026-11-02T06:30:00Z", at_least_every=timedelta(hours=1))
    assert sim.starts("t") == [utc("2026-11-01T05:30"), utc("2026-11-02T06:30")]


@pytest.mark.requirement(
    "001 Timely Behavior/4", "001 Timely Behavior/6", "001 Timely Behavior/7", "002 CRON-16"
)
def test_p08_the_others_run_on_time_where_one_local_time_is_left_out(simulation: Started) -> None:
    sim = simulation("2027-03-14T06:30:30Z", time_zone="America/New_York")
    others = [f"t{n}" for n in range(49)]
    sim.initialize(
        [
            ("lost", "30 2 * * *", sim.job(), FIVE_MINUTES),
            *((name, "0,10 * * * *", sim.job(), FIVE_MINUTES) for name in others),
        ]
    )
    sim.advance_to("2027-03-14T07:15:00Z", at_least_every=QUARTER)
    on_time = [utc("2027-03-14T07:00"), utc("2027-03-14T07:10")]
    assert [sim.starts(name) for name in others] == [on_time] * 49
    (lost,) = sim.runs("lost")
    assert (lost.outcome, lost.reason) == ("skipped", "dst_skip")
    assert lost.detail == {"local_time": "2027-03-14T02:30:00"}
    assert sim.task("lost").next_run_at == utc("2027-03-15T06:30")


@pytest.mark.parametrize("use_tz", [True, False])
def test_p16_one_run_a_local_day_whatever_times_the_project_keeps(
    simulation: Started, settings: Any, use_tz: bool
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Shanghai"
    sim = simulation("2026-12-01T01:00:00Z", time_zone=settings.TIME_ZONE)
    sim.initialize([("t", "30 17 * * *", sim.job(), FIVE_MINUTES)])
    for day in range(1, 15):
        sim.advance_to(f"2026-12-{day:02}T23:30:00Z", at_least_every=timedelta(hours=8))
    expected = [datetime.fromisoformat(f"2026-12-{day:02}T17:30:00+08:00") for day in range(1, 15)]
    assert [run.scheduled_for for run in sim.runs("t")] == expected


@pytest.mark.requirement("001 Timely Behavior/5", "002 CRON-17")
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


@pytest.mark.requirement("002 CRON-16")
def test_cron_16_a_gap_is_told_also_where_nobody_was_there(simulation: Started) -> None:
    sim = simulation("2027-03-14T06:00:00Z")
    entry = {"name": "t", "cron": "*/20 2 * * *", "callback": sim.job()}
    tasks = [{**entry, "timezone": "America/New_York", "retry_delay": FIVE_MINUTES}]
    sim.initialize(tasks)
    sim.stop()
    sim.jump_to("2027-03-14T12:00:00Z")
    sim.initialize(tasks)
    assert [(row.reason, row.count) for row in sim.runs("t")] == [("dst_skip", 3)]


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
def test_an_odd_zone_has_a_run_each_local_day(simulation: Started, zone: str) -> None:
    begin = datetime.fromisoformat(ODD[zone]).replace(tzinfo=ZoneInfo(zone))
    sim: Simulation = simulation(begin.isoformat())
    entry = {"name": "daily", "cron": "17 4 * * *", "timezone": zone, "callback": sim.job()}
    sim.initialize([entry])
    sim.advance_to(begin + timedelta(days=4), timedelta(hours=6))
    starts = [at.astimezone(begin.tzinfo) for at in sim.starts("daily")]
    assert {(at.hour, at.minute) for at in starts} == {(4, 17)}
    days = [at.date() for at in starts]
    assert days == sorted(set(days))
    assert len(days) == (3 if zone in ("Pacific/Apia", "Pacific/Kiritimati") else 4)
    assert check(sim.trace()) == []


# --- projects without aware times ---

TEN = timedelta(minutes=10)
OFTEN = "0,10,20,30,40,50 * * * *"

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


def _every_ten(begin: datetime, end: datetime) -> list[datetime]:
    return [begin + TEN * number for number in range(1, (end - begin) // TEN + 1)]


@pytest.mark.slow
def test_nothing_runs_twice_or_not_at_all(simulation: Started, begin: datetime) -> None:
    """A task fails once, and leaders die before, in and after the hour of the change."""
    sim = simulation(begin.isoformat())
    failing = ("failing", "0 * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)
    tasks = [("steady", OFTEN, sim.job(), FIVE_MINUTES), failing]
    sim.initialize(tasks)
    for minute in (55, 65, 95, 125):
        sim.advance_to(begin + timedelta(minutes=minute), TEN)
        sim.crash()
        sim.initialize(tasks)
    end = begin + timedelta(minutes=140)
    sim.advance_to(end, TEN)
    starts = [at for at in sim.starts("steady") if at > begin]
    assert starts == _every_ten(begin, end)
    runs = TaskRun.objects.filter(task_name="steady").order_by("id")
    told = list(runs.values_list("scheduled_for", "outcome"))
    assert [at for at, _ in told if at > begin] == starts
    assert {outcome for _, outcome in told} == {"succeeded"}
    assert list(runs.order_by("started_at")) == list(runs)
    first, second = [at for at in sim.starts("failing") if at >= begin][:2]
    assert second - first == FIVE_MINUTES


def test_who_was_away_for_the_change_catches_up_once(simulation: Started, begin: datetime) -> None:
    sim = simulation(begin.isoformat())
    task = ("steady", OFTEN, sim.job(), FIVE_MINUTES)
    sim.initialize([task])
    sim.advance_to(begin + timedelta(minutes=45), TEN)
    sim.crash()
    back = begin + timedelta(minutes=115)
    sim.jump_to(back)
    sim.initialize([task])
    [missed] = TaskRun.objects.filter(outcome="missed")
    assert (missed.scheduled_from, missed.count) == (begin + 5 * TEN, 6)
    assert missed.scheduled_for == begin + 10 * TEN
    [late] = TaskRun.objects.filter(scheduled_for=begin + 11 * TEN)
    assert (late.started_at, late.outcome) == (back, "succeeded")
    assert sim.task("steady").next_run_at == begin + 12 * TEN
