"""Retry (RT): when a failed task runs again, and what replaces a pending retry."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from django_declarative_cron.core.events import Event
from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from .conftest import FIVE_MINUTES, Started, names, utc


@pytest.fixture
def failed_once(simulation: Started) -> SimpleNamespace:
    """An hourly task whose first run began at 01:00:00 and failed at 01:00:10."""
    sim = simulation("00:30:00")
    job = sim.job(["fail", "ok"], timedelta(seconds=10))
    sim.initialize([("t", "0 * * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T01:00:10Z")
    return SimpleNamespace(sim=sim, job=job)


@pytest.mark.requirement("001 Timestamp Management/1")
def test_rt01_rt22_a_failure_sets_the_retry_from_the_end_of_the_run(
    failed_once: SimpleNamespace,
) -> None:
    task = failed_once.sim.task("t")
    assert task.last_attempt_at == utc("01:00:00")
    assert task.last_success_at is None
    assert task.pending_retry_until == utc("01:05:10")


@pytest.mark.requirement("001 Timestamp Management/3")
def test_rt02_the_retry_instant_is_inclusive(failed_once: SimpleNamespace) -> None:
    failed_once.sim.jump_to("2024-01-01T01:05:09Z")
    assert len(failed_once.sim.starts("t")) == 1
    failed_once.sim.jump_to("2024-01-01T01:05:10Z")
    assert len(failed_once.sim.starts("t")) == 2


@pytest.mark.requirement("001 Timestamp Management/3")
def test_rt03_a_retry_that_succeeds_ends_the_retrying(failed_once: SimpleNamespace) -> None:
    failed_once.job.duration = timedelta(seconds=2)
    failed_once.sim.advance_to("2024-01-01T01:06:00Z")
    task = failed_once.sim.task("t")
    assert task.last_attempt_at == utc("01:05:10")
    assert task.last_success_at == utc("01:05:12")
    assert task.pending_retry_until is None


@pytest.mark.requirement("001 Timestamp Management/3")
def test_rt05_a_retry_that_fails_sets_the_next_one(failed_once: SimpleNamespace) -> None:
    failed_once.job.outcomes = ["fail"]
    failed_once.job.duration = timedelta(seconds=2)
    failed_once.sim.advance_to("2024-01-01T01:06:00Z")
    assert failed_once.sim.task("t").pending_retry_until == utc("01:10:12")


@pytest.mark.requirement("003 Logging Guarantees/4")
def test_rt06_ad08_an_occurrence_before_the_retry_replaces_it(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("00:00:30")
    sim.initialize([("t", "* * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)])
    sim.jump_to("2024-01-01T00:01:00Z")
    assert sim.starts("t") == [utc("00:00:30"), utc("00:01:00")]
    assert sim.task("t").pending_retry_until is None
    assert names(told) == [
        "TaskRunStarted",
        "TaskRunFailed",
        "ClockStepped",
        "TaskRetryPreempted",
        "TaskRunStarted",
        "TaskRunCompleted",
    ]


def test_rt09_retry_and_occurrence_at_one_poll_are_one_run(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0,5 * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)])
    sim.jump_to("2024-01-01T10:05:00Z")
    runs = sim.runs("t")
    assert [run.reason for run in runs] == ["boot", "retry"]
    assert runs[1].scheduled_for == utc("10:05")
    assert sim.task("t").pending_retry_until is None
    sim.advance_to("2024-01-01T10:30:00Z")
    assert len(sim.starts("t")) == 2


@pytest.mark.requirement("001 Subsequent Restarts/3")
def test_rt11_a_retry_missed_while_down_runs_once_on_resume(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", "0 10 * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:02:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:40:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T12:00:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("10:40")]


@pytest.mark.requirement("001 Subsequent Restarts/1")
def test_rt13_a_retry_ahead_survives_a_restart(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", "0 10 * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:02:00Z")
    sim.stop()
    sim.jump_to("2024-01-01T10:03:00Z")
    sim.initialize(registrations)
    sim.jump_to("2024-01-01T10:04:00Z")
    assert len(sim.starts("t")) == 1
    sim.jump_to("2024-01-01T10:05:00Z")
    assert len(sim.starts("t")) == 2


def test_rt14_a_delay_of_zero_is_the_next_poll_never_a_hot_loop(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 10 * * *", sim.job(["fail"]), timedelta(0))])
    for _ in range(5):
        sim.poll()
    assert len(sim.starts("t")) == 1
    sim.advance_to("2024-01-01T10:00:03Z")
    assert sim.starts("t") == [utc(f"10:00:0{second}") for second in range(4)]


def test_rt16_a_delay_of_a_year_is_kept_exactly_and_blocks_no_occurrence(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(["fail"]), timedelta(days=365))])
    assert sim.task("t").pending_retry_until == utc("2024-12-31T10:00")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(sim.starts("t")) == 2


def test_a_delay_beyond_the_calendar_is_no_error(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(["fail", "ok"]), timedelta(days=3_000_000))])
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["failed", "succeeded"]


def test_rt17_a_delay_of_a_millisecond_follows_the_polls(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "fail", "fail", "ok"])
    sim.initialize([("t", "0 10 * * *", job, timedelta(milliseconds=1))])
    for second in range(1, 6):
        sim.jump_to(f"2024-01-01T10:00:0{second}Z")
    starts = sim.starts("t")
    assert starts == [utc(f"10:00:0{second}") for second in range(4)]
    assert sim.task("t").last_success_at == utc("10:00:03")


def test_rt19_tasks_retry_independently(simulation: Started) -> None:
    sim = simulation("00:15:00")
    for_each = {"a": 3, "b": 8}
    sim.initialize(
        [
            (name, "15 0 * * *", sim.job(["fail", "ok"]), timedelta(minutes=minutes))
            for name, minutes in for_each.items()
        ]
    )
    sim.advance_to("2024-01-01T00:40:00Z")
    assert sim.starts("a") == [utc("00:15"), utc("00:18")]
    assert sim.starts("b") == [utc("00:15"), utc("00:23")]


class _Interrupt(KeyboardInterrupt):
    pass


@pytest.mark.requirement("001 Resource Management/3")
@pytest.mark.parametrize(
    "error", [SystemExit(1), _Interrupt("stop"), GeneratorExit(), BaseException("bare")]
)
def test_rt20_whatever_a_callback_raises_is_a_failure(
    simulation: Started, error: BaseException
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job([error, "ok"]), FIVE_MINUTES)])
    (run,) = sim.runs("t")
    assert run.outcome == "failed"
    assert run.error.startswith(type(error).__name__)
    assert "Traceback" in run.traceback
    sim.advance_to("2024-01-01T10:05:00Z")
    assert sim.runs("t")[1].outcome == "succeeded"


@pytest.mark.requirement("001 Timestamp Management/2")
def test_a_success_is_never_erased_by_a_failure(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(["ok", "fail"]), timedelta(hours=9))])
    sim.advance_to("2024-01-01T11:00:00Z")
    task = sim.task("t")
    assert (task.last_success_at, task.last_attempt_at) == (utc("10:00"), utc("11:00"))


@pytest.mark.requirement("003 Error Handling/3")
@pytest.mark.parametrize("text", ["\0 nul", "\ud800 lone surrogate", "x" * 100_000])
def test_an_error_no_database_takes_is_stored_all_the_same(simulation: Started, text: str) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job([ValueError(text), "ok"]), FIVE_MINUTES)])
    assert sim.runs("t")[0].outcome == "failed"
    assert len(sim.runs("t")[0].error) <= 2_001


# --- policies of retries ---------------------------------------------------------------


def _governed(job: Job, policy: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "t", "cron": "0 * * * *", "callback": job, "options": {"retry": policy}}]


def _retried(sim: Simulation, outcomes: list[Any], **retry: Any) -> Job:
    job = sim.job(outcomes)
    sim.initialize(_governed(job, retry))
    return job


def test_attempts_are_counted_with_the_first_run(simulation: Started) -> None:
    sim = simulation("10:00:00")
    _retried(sim, ["fail"], initial_interval="PT1M", backoff_coefficient=3, jitter=False)
    sim.advance_to("2024-01-01T10:59:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("10:01"), utc("10:04")]
    last = sim.runs("t")[-1]
    assert last.detail == {"given_up": "attempts", "ends_as": "discard", "max_attempts": 3}
    assert (sim.task("t").pending_retry_until, sim.task("t").failures) == (None, 3)


def test_some_errors_are_not_tried_again(simulation: Started, told: list[Any]) -> None:
    sim = simulation("10:00:00")
    policy = {"non_retryable_errors": ["builtins.*"], "on_exhaustion": "dead_letter"}
    _retried(sim, [ValueError("no")], **policy)
    sim.advance_to("2024-01-01T10:59:00Z")
    [run] = sim.runs("t")
    assert run.outcome == "failed"
    assert run.detail == {
        "given_up": "non_retryable", "ends_as": "dead_letter", "max_attempts": 3,
    }  # fmt: skip
    [event] = [each for each in told if type(each).__name__ == "TaskRetriesExhausted"]
    assert (event.level, event.ends_as, event.run, event.attempt) == (
        "ERROR", "dead_letter", run.pk, 1,
    )  # fmt: skip


def test_the_policy_stays_through_a_change_of_it(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = _retried(sim, ["fail"], initial_interval="PT30M", jitter=False, max_interval="PT1H")
    pending = sim.task("t").pending_retry_until
    policy = RetryPolicy(max_attempts=7).as_data()
    sim.initialize(_governed(job, policy))
    assert sim.task("t").pending_retry_until == pending == utc("10:30")
    assert sim.task("t").run_count == 1
