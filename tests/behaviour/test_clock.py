"""The clock on the wall steps: nothing doubles, nothing stays silent."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import TaskRun
from django_declarative_cron.store import overrides

from .conftest import FIVE_MINUTES, Started, utc


def _moves(told: list[Event]) -> list[float]:
    return [event.seconds for event in told if isinstance(event, events.ClockMoved)]


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


@pytest.mark.slow
@pytest.mark.beyond_the_theory
def test_p81_after_a_step_back_of_hours_the_schedule_goes_on_from_now(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T12:00:00Z")
    sim.jump_to("2024-01-01T10:00:30Z")
    assert [type(e).__name__ for e in told].count("TaskMarkReset") == 1
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
    overrides.request_run(["asked"], overrides.Act(author="somebody", at=sim.now))
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
