"""Options of a schedule: spread, calendars, intervals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pytest_django import Settings as SettingsWrapper

from django_declarative_cron import theory
from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.store import operator_actions

from .conftest import HALF_AN_HOUR, HOUR, SECOND, Start, act, entry, governed
from .observed import names, runs, starts, text_of, unserved, utc

# --- spread: sha256("t") decides, 389 s of 1800 ---

OFFSET_OF_T = timedelta(minutes=6, seconds=29)


def test_a_spread_moves_every_occurrence_by_the_same_time(start: Start) -> None:
    sim = start("09:30", governed(spread=HALF_AN_HOUR))
    assert sim.task("t").next_run_at == utc("10:06:29")
    sim.advance_to(utc("12:00"))
    assert runs(sim, "scheduled_for started_at") == [(at, at) for at in ("10:06:29", "11:06:29")]


def test_tasks_of_one_minute_start_apart(start: Start) -> None:
    sim = start("09:59", *(governed(f"t{n}", spread=1800) for n in range(40)))
    at = [sim.task(f"t{n}").next_run_at for n in range(40)]
    assert len(set(at)) == 40
    assert utc("10:00") <= min(at) and max(at) < utc("10:30")


def test_a_spread_task_comes_within_its_own_minute_or_not_at_all(start: Start) -> None:
    sim = start(utc("10:00:10") + OFFSET_OF_T, governed(spread=1800))
    assert runs(sim, "reason") == ["boot"]


def test_p100_an_identical_set_moves_no_occurrence_that_is_spread(start: Start) -> None:
    registration = governed("t", "20 12 * * *", spread=60)
    at = utc("12:20") + offset_of("t", timedelta(minutes=1))
    assert at > utc("12:20:02")
    sim = start("12:10", registration)
    sim.advance_to(at - 2 * SECOND)
    sim.initialize([registration])
    sim.advance_to(at - SECOND)
    sim.stop()
    sim.initialize([registration])
    assert sim.task("t").next_run_at == at
    sim.advance_to(utc("12:40"))
    assert runs(sim, "scheduled_for started_at") == [(text_of(at), text_of(at))]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("before", "changed_at", "after", "until", "expected"),
    [
        (0, "10:10", 1800, "12:30", ["10:00", "11:06:29", "12:06:29"]),
        (1800, "11:03", 0, "12:30", ["10:06:29", "11:03", "12:00"]),
        (1, "10:00:10", 36_000, "14:00", ["10:00"]),
    ],
    ids=["its state is kept", "what moves to the past runs at once", "what ran does not run again"],
)
def test_another_spread(
    start: Start, before: int, changed_at: str, after: int, until: str, expected: list[str]
) -> None:
    sim = start("09:30", governed(spread=before))
    sim.advance_to(utc(changed_at))
    succeeded_at = sim.task("t").last_success_at
    assert succeeded_at == sim.starts("t")[0]
    sim.initialize([governed(spread=after)])
    sim.advance_to(utc(until))
    assert starts(sim) == expected
    later = offset_of("t", timedelta(seconds=after))
    assert sim.task("t").next_run_at == utc("11:00" if len(expected) == 1 else "13:00") + later


@pytest.mark.beyond_the_theory
def test_an_occurrence_that_is_skipped_moves_with_its_author(start: Start) -> None:
    sim = start("09:30", governed())
    operator_actions.skip_next(["t"], act(sim, "inventory"))
    sim.initialize([governed(spread="PT30M")])
    sim.advance_to(utc("12:10"))
    said = {"author": "an operator", "note": "inventory"}
    assert runs(sim, "reason scheduled_for detail") == [
        ("skip_next", "10:06:29", said),
        ("due", "11:06:29", None),
        ("due", "12:06:29", None),
    ]
    assert not TaskOverride.objects.filter(ended_at=None).exists()


# --- calendars ---


def closed(day: date) -> bool:
    return day in (date(2024, 1, 2), date(2024, 1, 3))


def broken(day: date) -> bool:
    raise LookupError("no such year")


def asks_wrongly(day: date) -> bool:
    return TaskRun.objects.extra(where=["no_such_column = 1"]).exists()


def _holidays(settings: SettingsWrapper, calendar: Callable[[date], bool]) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": calendar}}


@pytest.mark.beyond_the_theory
def test_excluded_days_have_rows_and_no_runs(start: Start, settings: SettingsWrapper) -> None:
    _holidays(settings, closed)
    sim = start("23:30", governed("t", "0 9,17 * * *", exclude_calendars="holidays"))
    assert sim.task("t").next_run_at == utc("2024-01-04T09:00")
    sim.advance_to(utc("2024-01-03T12:00"), at_least_every=HOUR)
    assert unserved(sim) == [("skipped", "excluded", 2, "2024-01-02T17:00")]
    assert runs(sim, "scheduled_from detail") == [("2024-01-02T09:00", {"calendar": "holidays"})]
    sim.advance_to(utc("2024-01-04T10:00"), at_least_every=HOUR)
    assert starts(sim) == ["2024-01-04T09:00"]
    assert sum(runs(sim, "count")) == 5


@pytest.mark.beyond_the_theory
def test_a_day_is_that_of_the_tasks_zone_before_its_spread(
    start: Start, settings: SettingsWrapper
) -> None:
    _holidays(settings, closed)
    late: dict[str, Any] = {"timezone": "America/New_York", "spread": 1800}
    sim = start("12:00", governed("t", "50 23 * * *", exclude_calendars=["holidays"], **late))
    sim.advance_to(utc("2024-01-05T12:00"), at_least_every=HOUR)
    # 23:50 on the 1st and the 4th in New York, which is the 2nd and the 5th in UTC.
    assert starts(sim) == [f"2024-01-0{day}T04:56:29" for day in (2, 5)]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("calendar", "reason"),
    [
        (broken, "calendar 'holidays' gives no answer for 2024-01-01: LookupError"),
        (asks_wrongly, "no_such_column"),
    ],
    ids=["it raises", "its query fails"],
)
def test_a_calendar_without_an_answer_sets_its_tasks_aside_and_no_others(
    start: Start,
    settings: SettingsWrapper,
    told: list[Event],
    calendar: Callable[[date], bool],
    reason: str,
) -> None:
    _holidays(settings, calendar)
    tasks = [governed(exclude_calendars="holidays"), governed("other")]
    sim = start("09:30", *tasks)
    sim.advance_to(utc("10:10"))
    assert (starts(sim), starts(sim, "other")) == ([], ["10:00"])
    assert sim.task("t").broken_reason.startswith("CalendarError: ")
    assert reason in sim.task("t").broken_reason
    assert "TaskBroken" in names(told)
    _holidays(settings, closed)
    sim.initialize(tasks)
    sim.advance_to(utc("10:20"))
    assert len(sim.starts("t")) == 1
    assert sim.task("t").broken_reason == ""


@pytest.mark.beyond_the_theory
def test_excluded_days_while_nobody_was_there_are_told_apart(
    start: Start, settings: SettingsWrapper
) -> None:
    _holidays(settings, closed)
    sim = start("23:30", governed("t", "0 9 * * *", exclude_calendars="holidays"))
    sim.jump_to(utc("2024-01-05T12:00"))
    assert unserved(sim) == [
        *(("skipped", "excluded", 1, f"2024-01-0{day}T09:00") for day in (2, 3)),
        ("missed", "held_up", 1, "2024-01-04T09:00"),
    ]
    assert runs(sim, "scheduled_for")[-1] == "2024-01-05T09:00"


@pytest.mark.beyond_the_theory
def test_a_task_of_which_every_day_is_excluded_never_runs(
    start: Start, settings: SettingsWrapper
) -> None:
    _holidays(settings, lambda day: True)
    sim = start("08:30", governed("t", "0 9 * * *", exclude_calendars="holidays"))
    assert sim.task("t").next_run_at is None
    sim.advance_to(utc("2024-01-02T12:00"), at_least_every=HOUR)
    assert runs(sim, "reason") == ["excluded", "excluded"]


# --- intervals (002 Interval Expression): elapsed time, counted from the registration ---


@pytest.mark.requirement("002 CRON-S02")
@pytest.mark.parametrize("declare", [entry, governed])
def test_cron_s02_the_first_run_is_an_interval_after_the_registration(
    start: Start, declare: Any
) -> None:
    sim = start("10:07:10", declare("t", "@every 90m"))
    assert sim.task("t").next_run_at == utc("11:37:10")
    sim.advance_to(utc("13:10"))
    assert starts(sim) == ["11:37:10", "13:07:10"]
    assert sim.task("t").next_run_at == utc("14:37:10")


@pytest.mark.requirement("002 CRON-S02")
@pytest.mark.parametrize("declare", [entry, governed])
def test_after_an_absence_one_run_catches_up_and_the_phase_stays(
    start: Start, declare: Any
) -> None:
    registration = declare("t", "@every 10m")
    sim = start("10:00", registration)
    sim.advance_to(utc("10:15"))
    sim.stop()
    sim.jump_to(utc("10:44"))
    sim.initialize([registration])
    sim.advance_to(utc("10:51"))
    assert runs(sim, "reason scheduled_for count started_at") == [
        ("due", "10:10", 1, "10:10"),
        ("no_scheduler", "10:30", 2, None),
        ("due", "10:40", 1, "10:44"),
        ("due", "10:50", 1, "10:50"),
    ]


def test_p18_restarts_do_not_begin_it_anew_but_an_override_does(start: Start) -> None:
    sim = start("00:00")
    for day in range(1, 4):
        for hour in ("06", "12", "18"):
            sim.initialize([entry("t", "@every 24h")])
            sim.jump_to(utc(f"2024-01-{day:02}T{hour}:00"))
            sim.stop()
    assert runs(sim, "scheduled_for started_at") == [
        (f"2024-01-{day}T00:00", f"2024-01-{day}T06:00") for day in ("02", "03")
    ]
    sim.initialize([entry("t", "@every  24h")])
    assert sim.task("t").next_run_at == utc("2024-01-04T18:00")


def test_p05_the_clock_on_the_wall_does_not_touch_it(start: Start) -> None:
    sim = start("2026-11-01T08:18", governed("t", "@every 10m", timezone="America/Los_Angeles"))
    sim.advance_to(utc("2026-11-01T11:00"), at_least_every=HALF_AN_HOUR)
    instants = sim.starts("t")
    assert len(instants) == 16
    assert instants[0] == utc("2026-11-01T08:28:00")
    assert {later - sooner for sooner, later in pairwise(instants)} == {timedelta(minutes=10)}


@pytest.mark.requirement("002 CRON-08")
def test_seconds_come_first_of_six_fields(start: Start) -> None:
    sim = start("10:00", governed("t", "*/20 * * * * *"))
    sim.advance_to(utc("10:00:45"), at_least_every=5 * SECOND)
    assert starts(sim) == ["10:00", "10:00:20", "10:00:40"]


@pytest.mark.requirement("002 CRON-24")
def test_cron_24_nothing_is_due_more_often_than_once_a_second(start: Start) -> None:
    sim = start("10:00", entry("t", "@every 100ms"))
    sim.advance_to(utc("10:00:05"), at_least_every=SECOND / 10)
    assert starts(sim) == [f"10:00:0{second}" for second in range(1, 6)]


def test_a_retry_policy_puts_a_task_outside_the_theory(start: Start) -> None:
    sim = start("10:00", entry(outcomes="fail fail ok", overlap_policy="coalesce"))
    sim.advance_to(utc("10:10"))
    assert runs(sim, "attempt") == [1, 2, 3]
    assert theory.check(sim.trace()) == []
