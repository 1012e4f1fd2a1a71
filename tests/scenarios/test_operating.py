"""How tasks are operated: spread, catch-up windows, calendars, automatic pauses, skipped runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings as SettingsWrapper

from django_declarative_cron.core.decide import decide
from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.events import Event
from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.cron import parse
from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, act, names, utc

HOUR = timedelta(hours=1)


def _task(sim: Simulation, **said: Any) -> dict[str, Any]:
    task = {"name": "t", "cron": "0 * * * *", "callback": sim.job(), "retry_delay": FIVE_MINUTES}
    return {**task, "overlap_policy": "coalesce", **said}


def _unserved() -> list[tuple[str, str, int, Any]]:
    rows = TaskRun.objects.filter(started_at=None).order_by("id")
    return [(row.outcome, row.reason, row.count, row.scheduled_for) for row in rows]


# --- spread ---


def test_a_spread_moves_every_occurrence_by_the_same_time(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, spread=timedelta(minutes=30))])
    # sha256("t") decides: 389 s of 1800.
    first = utc("10:00") + OFFSET_OF_T
    assert sim.task("t").next_run_at == first
    sim.advance_to("2024-01-01T12:00:00Z")
    assert sim.starts("t") == [first, first + HOUR]
    assert [run.scheduled_for for run in sim.runs("t")] == [first, first + HOUR]


OFFSET_OF_T = timedelta(minutes=6, seconds=29)


def test_tasks_of_one_minute_start_apart(simulation: Started) -> None:
    sim = simulation("09:59:00")
    sim.initialize([_task(sim, name=f"t{n}", spread=1800) for n in range(40)])
    at = [sim.task(f"t{n}").next_run_at for n in range(40)]
    assert len(set(at)) == 40
    assert utc("10:00") <= min(at) and max(at) < utc("10:30")


def test_a_spread_task_comes_within_its_own_minute_or_not_at_all(simulation: Started) -> None:
    sim = simulation(f"{(utc('10:00') + OFFSET_OF_T).isoformat()[:19]}Z")
    sim.clock.advance(sim.now + timedelta(seconds=10))
    sim.initialize([_task(sim, spread=1800)])
    assert len(sim.starts("t")) == 1
    assert sim.runs("t")[0].reason == "boot"


@pytest.mark.beyond_the_theory
def test_another_spread_keeps_what_is_known_of_a_task(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    sim.advance_to("2024-01-01T10:10:00Z")
    sim.initialize([_task(sim, spread="PT30M")])
    assert sim.task("t").last_success_at == utc("10:00")
    sim.advance_to("2024-01-01T12:10:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("11:06:29"), utc("12:06:29")]


@pytest.mark.beyond_the_theory
def test_an_occurrence_that_is_skipped_moves_with_its_author(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    operator_actions.skip_next(["t"], act(sim, "inventory"))
    sim.initialize([_task(sim, spread="PT30M")])
    sim.advance_to("2024-01-01T12:10:00Z")
    assert sim.starts("t") == [utc("11:06:29"), utc("12:06:29")]
    row = sim.runs("t")[0]
    assert (row.reason, row.scheduled_for) == ("skip_next", utc("10:06:29"))
    assert row.detail == {"author": "an operator", "note": "inventory"}
    assert not TaskOverride.objects.filter(ended_at=None).exists()


@pytest.mark.beyond_the_theory
def test_an_occurrence_that_moves_to_the_past_runs_at_once(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, spread="PT30M")])
    sim.advance_to("2024-01-01T11:03:00Z")
    sim.initialize([_task(sim)])
    sim.advance_to("2024-01-01T12:30:00Z")
    assert sim.starts("t") == [utc("10:06:29"), utc("11:03"), utc("12:00")]


@pytest.mark.beyond_the_theory
def test_what_ran_does_not_run_again_when_it_moves_ahead(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, spread=1)])
    sim.advance_to("2024-01-01T10:00:10Z")
    sim.initialize([_task(sim, spread=36000)])
    sim.advance_to("2024-01-01T14:00:00Z")
    later = offset_of("t", timedelta(hours=10))
    assert sim.starts("t") == [utc("10:00"), *(utc(f"{h}:00") + later for h in (11, 12))][:1]
    assert sim.task("t").next_run_at == utc("11:00") + later


# --- catch-up ---


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("catch_up_window", "runs"), [(None, True), (0, False), (HOUR, False), (2 * HOUR, True)]
)
def test_what_is_older_than_the_window_is_missed(
    simulation: Started, catch_up_window: object, runs: bool
) -> None:
    sim = simulation("09:30:00")
    said = {} if catch_up_window is None else {"catch_up_window": catch_up_window}
    task = _task(sim, cron="0 0,10 * * *", **said)
    sim.initialize([task])
    sim.crash()
    sim.jump_to("2024-01-01T11:30:00Z")
    sim.initialize([task])
    assert sim.starts("t") == ([utc("11:30")] if runs else [])
    assert _unserved() == ([] if runs else [("missed", "too_late", 1, utc("10:00"))])
    assert sim.task("t").next_run_at == utc("2024-01-02T00:00")


def test_never_catching_up_still_allows_a_start_its_minute(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, catch_up_window=0)])
    sim.jump_to("2024-01-01T10:00:45Z")
    assert sim.starts("t") == [utc("10:00:45")]


@pytest.mark.beyond_the_theory
def test_all_that_is_too_late_is_one_row(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, catch_up_window=timedelta(minutes=10))])
    sim.jump_to("2024-01-01T14:30:00Z")
    assert _unserved() == [("missed", "too_late", 5, utc("14:00"))]
    sim.advance_to("2024-01-01T15:00:00Z")
    assert sim.starts("t") == [utc("15:00")]


def test_what_came_during_a_run_is_no_older_than_its_end(simulation: Started) -> None:
    sim = simulation("09:30:00")
    job = sim.job(duration=timedelta(minutes=90))
    sim.initialize([_task(sim, callback=job, catch_up_window=0)])
    sim.advance_to("2024-01-01T11:45:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("11:30")]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("catch_up_window", "row"),
    [
        (0, ("missed", "too_late")),
        (HOUR, ("missed", "too_late")),
        (2 * HOUR, ("succeeded", "boot")),
    ],
)
def test_what_is_owed_since_the_registration_has_the_same_window(
    simulation: Started, settings: SettingsWrapper, catch_up_window: object, row: tuple[str, str]
) -> None:
    def broken(day: date) -> bool:
        raise LookupError("no such year")

    sim = simulation("10:00:30")
    task = _task(
        sim, cron="0 10 * * *", exclude_calendars="holidays", catch_up_window=catch_up_window
    )
    _calendars(settings, holidays=broken)
    sim.initialize([task])
    sim.advance_to("2024-01-01T11:29:00Z")
    _calendars(settings, holidays=closed)
    sim.initialize([task])
    sim.advance_to("2024-01-01T11:40:00Z")
    assert [(run.outcome, run.reason) for run in sim.runs("t")] == [row]
    assert [run.scheduled_for for run in sim.runs("t")] == [utc("10:00")]
    assert sim.task("t").boot_at is None
    assert sim.task("t").next_run_at == utc("2024-01-04T10:00")


def test_a_run_that_came_later_makes_no_occurrence_younger() -> None:
    state = TaskState(
        "t", utc("08:00"), last_attempt_at=utc("10:50"), freed_at=utc("10:58"), run_count=1
    )
    schedule = Schedule(parse("0 10 * * *"), ZoneInfo("UTC"))
    late = decide(
        state, schedule, FixedDelay(HOUR), utc("11:00"), catch_up_window=timedelta(minutes=15)
    )
    assert late.start is None
    assert [getattr(event, "reason", "") for event in late.events] == ["too_late"]
    during = replace(state, last_attempt_at=utc("09:50"))
    begun = decide(
        during, schedule, FixedDelay(HOUR), utc("11:00"), catch_up_window=timedelta(minutes=15)
    )
    assert begun.start is not None
    assert begun.start.scheduled_time == utc("10:00")


@pytest.mark.beyond_the_theory
def test_a_retry_is_no_occurrence_and_comes_however_late(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize(
        [_task(sim, callback=sim.job(["fail", "ok"]), cron="0 10 * * *", catch_up_window=0)]
    )
    sim.advance_to("2024-01-01T10:01:00Z")
    sim.jump_to("2024-01-01T13:00:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("13:00")]
    assert sim.runs("t")[-1].reason == "retry"


# --- calendars ---


CLOSED = {date(2024, 1, 2), date(2024, 1, 3)}


def closed(day: date) -> bool:
    return day in CLOSED


def _calendars(settings: SettingsWrapper, **calendars: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": calendars}


@pytest.mark.beyond_the_theory
def test_excluded_days_have_rows_and_no_runs(
    simulation: Started, settings: SettingsWrapper
) -> None:
    _calendars(settings, holidays=closed)
    sim = simulation("23:30:00")
    sim.initialize([_task(sim, cron="0 9,17 * * *", exclude_calendars="holidays")])
    assert sim.task("t").next_run_at == utc("2024-01-04T09:00")
    sim.advance_to("2024-01-03T12:00:00Z", at_least_every=HOUR)
    assert _unserved() == [("skipped", "excluded", 2, utc("2024-01-02T17:00"))]
    [row] = sim.runs("t")
    assert row.scheduled_from == utc("2024-01-02T09:00")
    assert row.detail == {"calendar": "holidays"}
    sim.advance_to("2024-01-04T10:00:00Z", at_least_every=HOUR)
    assert sim.starts("t") == [utc("2024-01-04T09:00")]
    assert sum(run.count for run in sim.runs("t")) == 5


@pytest.mark.beyond_the_theory
def test_a_day_is_that_of_the_tasks_zone_before_its_spread(
    simulation: Started, settings: SettingsWrapper
) -> None:
    _calendars(settings, holidays=closed)
    sim = simulation("12:00:00")
    late = {"cron": "50 23 * * *", "timezone": "America/New_York", "spread": 1800}
    sim.initialize([_task(sim, exclude_calendars=["holidays"], **late)])
    sim.advance_to("2024-01-05T12:00:00Z", at_least_every=HOUR)
    # 23:50 on the 1st and the 4th in New York, which is the 2nd and the 5th in UTC.
    assert sim.starts("t") == [utc(f"2024-01-0{d}T04:50") + OFFSET_OF_T for d in (2, 5)]


@pytest.mark.beyond_the_theory
def test_a_calendar_without_an_answer_sets_its_tasks_aside_and_no_others(
    simulation: Started, settings: SettingsWrapper, told: list[Event]
) -> None:
    def broken(day: date) -> bool:
        raise LookupError("no such year")

    _calendars(settings, holidays=broken)
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, exclude_calendars="holidays"), _task(sim, name="other")])
    sim.advance_to("2024-01-01T10:10:00Z")
    assert (sim.starts("t"), sim.starts("other")) == ([], [utc("10:00")])
    reason = "CalendarError: calendar 'holidays' gives no answer for 2024-01-01: LookupError"
    assert sim.task("t").broken_reason.startswith(reason)
    assert "TaskBroken" in names(told)
    _calendars(settings, holidays=closed)
    sim.initialize([_task(sim, exclude_calendars="holidays"), _task(sim, name="other")])
    sim.advance_to("2024-01-01T10:20:00Z")
    assert len(sim.starts("t")) == 1
    assert sim.task("t").broken_reason == ""


@pytest.mark.beyond_the_theory
def test_a_query_that_fails_in_a_calendar_spoils_nothing_else(
    simulation: Started, settings: SettingsWrapper
) -> None:
    def asks(day: date) -> bool:
        return TaskRun.objects.extra(where=["no_such_column = 1"]).exists()

    _calendars(settings, holidays=asks)
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, exclude_calendars="holidays"), _task(sim, name="other")])
    sim.advance_to("2024-01-01T10:01:00Z")
    assert sim.starts("other") == [utc("10:00")]
    assert "no_such_column" in sim.task("t").broken_reason


@pytest.mark.beyond_the_theory
def test_excluded_days_while_nobody_was_there_are_told_apart(
    simulation: Started, settings: SettingsWrapper
) -> None:
    _calendars(settings, holidays=closed)
    sim = simulation("23:30:00")
    sim.initialize([_task(sim, cron="0 9 * * *", exclude_calendars="holidays")])
    sim.jump_to("2024-01-05T12:00:00Z")
    assert _unserved() == [
        *(("skipped", "excluded", 1, utc(f"2024-01-0{day}T09:00")) for day in (2, 3)),
        ("missed", "held_up", 1, utc("2024-01-04T09:00")),
    ]
    assert sim.runs("t")[-1].scheduled_for == utc("2024-01-05T09:00")


@pytest.mark.beyond_the_theory
def test_a_task_of_which_every_day_is_excluded_never_runs(
    simulation: Started, settings: SettingsWrapper
) -> None:
    _calendars(settings, always=lambda day: True)
    sim = simulation("08:30:00")
    sim.initialize([_task(sim, cron="0 9 * * *", exclude_calendars="always")])
    assert sim.task("t").next_run_at is None
    sim.advance_to("2024-01-02T12:00:00Z", at_least_every=HOUR)
    assert [row[1] for row in _unserved()] == ["excluded", "excluded"]


# --- pausing by itself ---


@pytest.mark.beyond_the_theory
def test_failures_in_a_row_pause_a_task_and_say_so(simulation: Started, told: list[Event]) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, callback=sim.job(["fail"]), pause_after_failures=3)])
    sim.advance_to("2024-01-01T12:00:00Z")
    assert sim.starts("t") == [utc(f"10:{minute}") for minute in ("00", "05", "10")]
    act = TaskOverride.objects.get()
    assert (act.kind, act.reason, act.author, act.ended_at) == ("pause", "failures", "", None)
    assert act.note == sim.runs("t")[-1].error
    assert names(told)[-2:] == ["TaskRunFailed", "TaskPausedByFailures"]
    assert sim.task("t").next_run_at is None


@pytest.mark.beyond_the_theory
def test_many_tasks_are_paused_by_as_many_statements_as_one(simulation: Started) -> None:
    sim = simulation("09:30:00")
    failing = [
        _task(sim, name=f"t{n}", callback=sim.job(["fail"]), pause_after_failures=1)
        for n in range(5)
    ]
    sim.initialize(failing)
    with CaptureQueriesContext(connection) as asked:
        sim.advance_to("2024-01-01T10:01:00Z")
    table = TaskOverride._meta.db_table
    asked_of = [query["sql"] for query in asked if table in query["sql"]]
    written = [sql for sql in asked_of if "INSERT" in sql or "UPDATE" in sql]
    assert len(written) == 2
    acts = TaskOverride.objects.order_by("task_name")
    assert [(act.task_name, act.note) for act in acts] == [
        (f"t{n}", sim.runs(f"t{n}")[-1].error) for n in range(5)
    ]


@pytest.mark.beyond_the_theory
def test_a_resumed_task_has_as_many_failures_again(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim, callback=sim.job(["fail"]), pause_after_failures=2)])
    sim.advance_to("2024-01-01T11:30:00Z")
    operator_actions.resume(["t"], act(sim))
    sim.advance_to("2024-01-01T13:00:00Z")
    assert len(sim.starts("t")) == 4
    assert TaskOverride.objects.filter(reason="failures").count() == 2


def test_a_success_ends_the_row(simulation: Started) -> None:
    sim = simulation("09:30:00")
    job = sim.job(["fail", "ok", "fail", "ok"])
    sim.initialize([_task(sim, callback=job, pause_after_failures=2)])
    sim.advance_to("2024-01-01T13:00:00Z")
    assert (TaskOverride.objects.count(), sim.task("t").paused_since) == (0, None)


# --- skipping the next run ---


@pytest.mark.beyond_the_theory
def test_the_skipped_occurrence_is_a_row_with_who_and_why(
    simulation: Started, told: list[Event], django_capture_on_commit_callbacks: Any
) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    with django_capture_on_commit_callbacks(execute=True):
        assert operator_actions.skip_next(["t"], act(sim, "inventory")) == ["t"]
    assert operator_actions.skip_next(["t"], act(sim)) == []
    assert sim.task("t").next_run_at == utc("11:00")
    sim.advance_to("2024-01-01T10:00:00Z")
    [row] = sim.runs("t")
    assert (row.outcome, row.reason, row.scheduled_for) == ("skipped", "skip_next", utc("10:00"))
    assert row.detail == {"author": "an operator", "note": "inventory"}
    stored = TaskOverride.objects.get()
    assert (stored.kind, stored.until) == ("skip", utc("10:00"))
    assert (stored.author, stored.note) == ("an operator", "inventory")
    assert stored.ended_at is not None
    sim.advance_to("2024-01-01T11:30:00Z")
    assert sim.starts("t") == [utc("11:00")]
    assert "TaskSkipRequested" in names(told)


@pytest.mark.beyond_the_theory
def test_a_skip_is_taken_back(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    operator_actions.skip_next(["t"], act(sim))
    assert operator_actions.unskip(["t"], act(sim)) == ["t"]
    assert operator_actions.unskip(["t"], act(sim)) == []
    sim.advance_to("2024-01-01T10:30:00Z")
    assert sim.starts("t") == [utc("10:00")]
    assert not TaskOverride.objects.filter(ended_at=None).exists()


@pytest.mark.beyond_the_theory
def test_a_retry_goes_on_while_the_next_occurrence_is_skipped(simulation: Started) -> None:
    sim = simulation("09:30:00")
    job = sim.job(["fail", "ok"])
    sim.initialize([_task(sim, callback=job, retry_delay=timedelta(minutes=80))])
    sim.advance_to("2024-01-01T10:10:00Z")
    operator_actions.skip_next(["t"], act(sim))
    sim.advance_to("2024-01-01T11:30:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("11:20")]


@pytest.mark.beyond_the_theory
def test_what_was_missed_besides_a_skipped_occurrence_is_caught_up(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    operator_actions.skip_next(["t"], act(sim))
    sim.jump_to("2024-01-01T12:30:00Z")
    assert _unserved() == [
        ("skipped", "skip_next", 1, utc("10:00")),
        ("missed", "held_up", 1, utc("11:00")),
    ]
    assert sim.starts("t") == [utc("12:30")]


@pytest.mark.beyond_the_theory
def test_a_skip_of_what_another_schedule_does_not_name_means_nothing(simulation: Started) -> None:
    sim = simulation("09:30:00")
    sim.initialize([_task(sim)])
    operator_actions.skip_next(["t"], act(sim))
    sim.initialize([_task(sim, cron="30 * * * *")])
    sim.advance_to("2024-01-01T11:40:00Z")
    assert sim.starts("t") == [utc("09:30"), utc("10:30"), utc("11:30")]
    assert _unserved() == []
