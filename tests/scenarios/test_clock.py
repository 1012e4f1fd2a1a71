"""The clock on the wall steps: nothing doubles, nothing stays silent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import operator_actions

from .conftest import FIVE_MINUTES, Started, act, of, utc


def _moves(told: list[Event]) -> list[float]:
    return [event.seconds for event in of(told, events.ClockStepped)]


def test_a_small_step_back_repeats_nothing(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:10:00Z")
    before = len(sim.starts("t"))
    sim.jump_to("2024-01-01T10:06:00Z")
    sim.advance_to("2024-01-01T10:10:30Z")
    assert len(sim.starts("t")) == before
    sim.advance_to("2024-01-01T10:11:00Z")
    assert len(sim.starts("t")) == before + 1
    assert _moves(told) == [-240.0]


@pytest.mark.requirement("003 Test Methodology/4")
@pytest.mark.slow
@pytest.mark.beyond_the_theory
def test_p81_after_a_step_back_of_hours_the_schedule_goes_on_from_now(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T12:00:00Z")
    sim.jump_to("2024-01-01T10:00:30Z")
    assert [type(e).__name__ for e in told].count("TaskHighWaterMarkReset") == 1
    before = len(sim.starts("t"))
    sim.advance_to("2024-01-01T10:01:00Z")
    assert sim.starts("t")[before:] == [utc("10:01")]


@pytest.mark.beyond_the_theory
def test_a_step_back_found_at_a_restart_is_not_believed_either(simulation: Started) -> None:
    sim = simulation("12:00:00")
    registrations = [("t", "* * * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.stop()
    sim.jump_to("2024-01-01T10:00:30Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:01:00Z")
    assert sim.starts("t") == [utc("12:00"), utc("10:01")]


@pytest.mark.beyond_the_theory
def test_a_retry_does_not_wait_for_the_old_time_after_a_step_back(simulation: Started) -> None:
    sim = simulation("12:00:00")
    sim.initialize([("t", "0 12 * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)])
    sim.jump_to("2024-01-01T10:00:00Z")
    sim.advance_to("2024-01-01T10:05:00Z")
    assert sim.starts("t") == [utc("12:00"), utc("10:05")]


@pytest.mark.requirement(
    "001 Time Provider and Granularity/1", "001 Assumptions & Notes/1", "004 Safety Axioms/1"
)
def test_a_step_forward_gives_one_catch_up_for_each_task(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, "* * * * *", sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    sim.jump_to("2024-01-01T12:00:00Z")
    assert [len(sim.starts(n)) for n in ("a", "b")] == [2, 2]
    assert _moves(told) == [7200.0]


def test_time_that_passes_is_no_step(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T18:00:00Z")
    assert _moves(told) == []


@pytest.mark.beyond_the_theory
def test_an_occurrence_that_comes_a_second_time_is_a_row_of_its_own(
    simulation: Started,
) -> None:
    sim = simulation("12:00:00")
    sim.initialize([("t", "0 12 * * *", sim.job(), timedelta(minutes=1))])
    sim.jump_to("2024-01-01T10:00:00Z")
    sim.advance_to("2024-01-01T12:00:00Z")
    assert [run.scheduled_for for run in sim.runs("t")] == [utc("12:00")] * 2
    assert TaskRun.objects.filter(outcome="succeeded").count() == 2


@pytest.mark.beyond_the_theory
def test_what_is_owed_at_once_does_not_wait_for_the_old_time_after_a_step_back(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    registrations = [
        ("asked", "0 12 * * *", sim.job(), FIVE_MINUTES),
        ("cut", "0 10 * * *", sim.job(duration=timedelta(hours=9)), FIVE_MINUTES),
    ]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:30:00Z")
    operator_actions.request_run(["asked"], act(sim))
    sim.crash()
    sim.jump_to("2024-01-01T10:27:00Z")
    sim.initialize(registrations)
    assert [run.reason for run in sim.runs("asked")] == ["manual"]
    assert [run.reason for run in sim.runs("cut")] == ["boot", "orphaned"]


@pytest.mark.beyond_the_theory
def test_a_retry_after_a_step_back_does_not_use_up_the_attempts_of_what_comes_again(
    simulation: Started,
) -> None:
    sim = simulation("12:00:00")
    sim.initialize([("t", "0 12 * * *", sim.job(["fail"]), timedelta(minutes=10))])
    sim.jump_to("2024-01-01T11:40:00Z")
    sim.advance_to("2024-01-01T12:25:00Z")
    assert sim.starts("t")[1:] == [utc("11:50"), utc("12:00"), utc("12:10"), utc("12:20")]
    assert [(run.scheduled_for, run.attempt) for run in sim.runs("t")] == [
        (utc("12:00"), 1),
        (utc("11:40"), 2),
        (utc("12:00"), 1),
        (utc("12:00"), 2),
        (utc("12:00"), 3),
    ]
    assert sim.task("t").broken_reason == ""


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("policy", "outcome"), [("coalesce", "fail"), ("skip", "ok"), ("enqueue", "ok")]
)
def test_a_run_that_goes_on_as_the_clock_steps_back_silences_nothing_after_its_end(
    simulation: Started, policy: str, outcome: str
) -> None:
    sim = simulation("11:55:00")
    job = sim.job([outcome], duration=timedelta(minutes=7))
    task = {"name": "t", "cron": "*/10 * * * *", "callback": job, "overlap_policy": policy}
    sim.initialize([{**task, "timezone": "UTC", "retry_delay": FIVE_MINUTES}])
    sim.advance_to("2024-01-01T12:01:00Z")
    sim.jump_to("2024-01-01T10:01:00Z")
    # It takes as long as it takes: its end is told by the hands of the new time.
    sim._ends[:] = [replace(end, at=utc("10:07")) for end in sim._ends]
    job.duration, job.outcomes = timedelta(0), ["ok"]
    sim.advance_to("2024-01-01T10:30:00Z", at_least_every=FIVE_MINUTES)
    assert sim.starts("t")[1:] == [utc("10:10"), utc("10:20"), utc("10:30")]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("how", ["in one process", "with a crash between"])
def test_a_clock_that_was_years_ahead_for_a_minute_leaves_nothing_behind(
    simulation: Started, how: str
) -> None:
    sim = simulation("10:15:30")
    tasks = [
        ("often", "0,20,40 * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES),
        ("daily", "0 11 * * *", sim.job(), FIVE_MINUTES),
        {"name": "every", "cron": "@every 30m", "callback": sim.job(), "timezone": "UTC"},
    ]
    sim.initialize(tasks)
    for moment in ("2030-01-01T00:00:10Z", "2024-01-01T10:16:00Z"):
        if how == "with a crash between":
            sim.crash()
        sim.jump_to(moment)
        sim.initialize(tasks)
    sim.advance_to("2024-01-01T11:00:00Z", at_least_every=FIVE_MINUTES)
    starts = {name: sim.starts(name)[1:] for name in ("often", "daily", "every")}
    # The failure ahead of time is tried again five minutes after the clock is right again.
    assert starts["often"] == [utc(each) for each in ("10:20", "10:40", "11:00")]
    assert (starts["daily"], starts["every"]) == ([utc("11:00")], [utc("10:45:30")])


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(("cron", "start"), [("@every 10m", "10:10:30"), ("30 10 * * *", "10:30")])
def test_a_task_that_was_registered_ahead_of_time_does_not_wait_for_that_time(
    simulation: Started, cron: str, start: str
) -> None:
    sim = simulation("12:00:00")
    sim.initialize([{"name": "t", "cron": cron, "callback": sim.job(), "timezone": "UTC"}])
    sim.jump_to("2024-01-01T10:00:30Z")
    sim.advance_to("2024-01-01T10:31:00Z", at_least_every=FIVE_MINUTES)
    assert sim.starts("t")[0] == utc(start)
