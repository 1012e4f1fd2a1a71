"""Retry (RT): when a failed task runs again, and what replaces a pending retry."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.core.retry import RetryPolicy

from .conftest import DAILY, HOUR, HOURLY, MINUTELY, SECOND, Start, entry, job, restart, task
from .observed import names, of, runs, starts, utc


@pytest.mark.requirement("001 Timestamp Management/1", "001 Timestamp Management/3")
def test_rt01_to_rt05_rt22_a_retry_is_counted_from_the_end_of_a_failure_until_one_succeeds(
    start: Start,
) -> None:
    sim = start("00:30", task("t", HOURLY, job("fail fail ok", 10 * SECOND)))
    sim.advance_to(utc("01:00:10"))
    row = sim.task("t")
    assert (row.last_attempt_at, row.last_success_at) == (utc("01:00"), None)
    assert row.pending_retry_until == utc("01:05:10")
    sim.jump_to(utc("01:05:09"))
    assert starts(sim) == ["01:00"]
    sim.jump_to(utc("01:05:10"))
    assert starts(sim) == ["01:00", "01:05:10"]
    sim.advance_to(utc("01:06"))
    assert sim.task("t").pending_retry_until == utc("01:10:20")
    sim.advance_to(utc("01:11"))
    row = sim.task("t")
    assert (row.last_attempt_at, row.last_success_at) == (utc("01:10:20"), utc("01:10:30"))
    assert row.pending_retry_until is None


@pytest.mark.requirement("003 Logging Guarantees/4")
def test_rt06_ad08_an_occurrence_before_the_retry_replaces_it(
    start: Start, told: list[Event]
) -> None:
    sim = start("00:00:30", task("t", MINUTELY, "fail ok"))
    sim.jump_to(utc("00:01"))
    assert starts(sim) == ["00:00:30", "00:01"]
    assert sim.task("t").pending_retry_until is None
    assert names(told) == [
        "TaskRunStarted",
        "TaskRunFailed",
        "ClockStepped",
        "TaskRetryPreempted",
        "TaskRunStarted",
        "TaskRunCompleted",
    ]


def test_rt09_retry_and_occurrence_at_one_poll_are_one_run(start: Start) -> None:
    sim = start("10:00", task("t", "0,5 * * * *", "fail ok"))
    sim.jump_to(utc("10:05"))
    assert sim.task("t").pending_retry_until is None
    sim.advance_to(utc("10:30"))
    assert runs(sim, "reason scheduled_for") == [("boot", "10:00"), ("retry", "10:05")]


@pytest.mark.requirement("001 Subsequent Restarts/1", "001 Subsequent Restarts/3")
@pytest.mark.parametrize(
    ("back_at", "retried_at"), [("10:03", "10:05"), ("10:40", "10:40")], ids=["rt13", "rt11"]
)
def test_a_retry_survives_a_restart_and_runs_once(
    start: Start, back_at: str, retried_at: str
) -> None:
    registration = task("t", DAILY, "fail ok")
    sim = start("10:00", registration)
    sim.advance_to(utc("10:02"))
    restart(sim, registration, at=back_at)
    sim.advance_to(utc("12:00"))
    assert starts(sim) == ["10:00", retried_at]


@pytest.mark.parametrize(
    ("milliseconds", "move"), [(0, "advance_to"), (1, "jump_to")], ids=["rt14", "rt17"]
)
def test_a_delay_of_nothing_is_the_next_poll_never_a_hot_loop(
    start: Start, milliseconds: int, move: str
) -> None:
    delay = timedelta(milliseconds=milliseconds)
    sim = start("10:00", task("t", DAILY, "fail fail fail ok", delay=delay))
    for _ in range(5):
        sim.poll()
    assert len(sim.starts("t")) == 1
    for second in range(1, 6):
        getattr(sim, move)(utc(f"10:00:0{second}"))
    assert starts(sim) == ["10:00", "10:00:01", "10:00:02", "10:00:03"]
    assert sim.task("t").last_success_at == utc("10:00:03")


@pytest.mark.parametrize(
    ("days", "until"),
    [(365, "2024-12-31T10:00"), (36_500, "2123-12-08T10:00")],
    ids=["rt16 a year", "the longest delay"],
)
def test_a_long_delay_blocks_no_occurrence(start: Start, days: int, until: str) -> None:
    sim = start("10:00", task(outcomes="fail ok", delay=timedelta(days=days)))
    assert sim.task("t").pending_retry_until == utc(until)
    sim.advance_to(utc("11:00"))
    assert runs(sim, "outcome") == ["failed", "succeeded"]


def test_rt19_tasks_retry_independently(start: Start) -> None:
    for_each = {"a": 3, "b": 8}
    delays = {name: timedelta(minutes=minutes) for name, minutes in for_each.items()}
    sim = start("10:00", *(task(name, DAILY, "fail ok", delay=delays[name]) for name in delays))
    sim.advance_to(utc("10:25"))
    assert starts(sim, "a") == ["10:00", "10:03"]
    assert starts(sim, "b") == ["10:00", "10:08"]


@pytest.mark.requirement("001 Resource Management/3", "003 Error Handling/3")
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        KeyboardInterrupt("stop"),
        GeneratorExit(),
        BaseException("bare"),
        ValueError("\0 nul"),
        ValueError("\ud800 lone surrogate"),
        ValueError("x" * 100_000),
    ],
    ids=lambda error: f"{type(error).__name__} {str(error)[:9]!a}",
)
def test_rt20_whatever_a_callback_raises_is_a_failure_that_is_stored_and_tried_again(
    start: Start, error: BaseException
) -> None:
    sim = start("10:00", task(outcomes=[error, "ok"]))
    (run,) = sim.runs("t")
    assert run.outcome == "failed"
    assert run.error.startswith(type(error).__name__)
    assert len(run.error) <= 2_001
    assert "Traceback" in run.traceback
    sim.advance_to(utc("10:05"))
    assert sim.runs("t")[1].outcome == "succeeded"


@pytest.mark.requirement("001 Timestamp Management/2")
def test_a_success_is_never_erased_by_a_failure(start: Start) -> None:
    sim = start("10:00", task(outcomes="ok fail", delay=9 * HOUR))
    sim.advance_to(utc("11:00"))
    row = sim.task("t")
    assert (row.last_success_at, row.last_attempt_at) == (utc("10:00"), utc("11:00"))


# --- policies of retries ---


def _governed(outcomes: Any, **policy: Any) -> dict[str, Any]:
    return entry(outcomes=outcomes, options={"retry": policy})


def test_attempts_are_counted_with_the_first_run(start: Start) -> None:
    policy = {"initial_interval": "PT1M", "backoff_coefficient": 3, "jitter": False}
    sim = start("10:00", _governed("fail", **policy))
    sim.advance_to(utc("10:59"))
    assert starts(sim) == ["10:00", "10:01", "10:04"]
    last = sim.runs("t")[-1]
    assert last.detail == {"given_up": "attempts", "ends_as": "discard", "max_attempts": 3}
    assert (sim.task("t").pending_retry_until, sim.task("t").failures) == (None, 3)


def test_some_errors_are_not_tried_again(start: Start, told: list[Event]) -> None:
    policy = {"non_retryable_errors": ["builtins.*"], "on_exhaustion": "dead_letter"}
    sim = start("10:00", _governed([ValueError("no")], **policy))
    sim.advance_to(utc("10:59"))
    ended = {"given_up": "non_retryable", "ends_as": "dead_letter", "max_attempts": 3}
    assert runs(sim, "outcome detail") == [("failed", ended)]
    [event] = of(told, events.TaskRetriesExhausted)
    assert (event.level, event.ends_as) == ("ERROR", "dead_letter")
    assert (event.run, event.attempt) == (sim.runs("t")[0].pk, 1)


def test_a_pending_retry_stays_through_a_change_of_its_policy(start: Start) -> None:
    failing = job("fail")
    policy = {"initial_interval": "PT30M", "jitter": False, "max_interval": "PT1H"}
    sim = start("10:00", _governed(failing, **policy))
    assert sim.task("t").pending_retry_until == utc("10:30")
    sim.initialize([_governed(failing, **RetryPolicy(max_attempts=7).as_data())])
    assert sim.task("t").pending_retry_until == utc("10:30")
    assert sim.task("t").run_count == 1
