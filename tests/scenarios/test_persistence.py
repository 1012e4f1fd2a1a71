"""The database refuses, keeps less than was written, or holds rows that somebody damaged."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.state import deserialize
from django_declarative_cron.cron import CronExpression
from django_declarative_cron.exceptions import (
    CronCalculationError,
    ScheduleTaskError,
    TaskListMismatchError,
    TaskTryDeserializeError,
)
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.runtime import scheduler
from django_declarative_cron.store import claims, database, results
from django_declarative_cron.testing import Simulation

from .conftest import (
    FIVE_MINUTES,
    HALF_AN_HOUR,
    HOURLY,
    MINUTELY,
    SECOND,
    Start,
    job,
    scheduler_of,
    task,
)
from .observed import of, runs, starts, unserved, utc


def _failing(real: Callable[..., Any], times: int, error: Exception) -> Callable[..., Any]:
    left = [times]

    def call(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return real(*args, **kwargs)

    return call


def _rows() -> list[dict[str, Any]]:
    return list(ScheduledTask.objects.order_by("name").values())


# --- a statement is refused: nothing starts uncommitted, nothing is lost ---


@pytest.mark.requirement("001 Idempotency Guarantees/5")
def test_pe01_an_error_while_polling_calls_nothing_and_is_tried_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    called = job()
    sim = start("09:30", task(outcomes=called))
    refused = OperationalError("server closed the connection")
    monkeypatch.setattr(claims, "_claim", _failing(claims._claim, 1, refused))
    sim.jump_to(utc("10:00"))
    assert called.runs == []
    assert [event.doing for event in of(told, events.PersistenceFailed)] == ["evaluating"]
    sim.jump_to(utc("10:01"))
    assert runs(sim, "scheduled_for started_at") == [("10:00", "10:01")]


@pytest.mark.requirement("001 Idempotency Guarantees/4", "003 Error Handling/3")
def test_pe04_a_result_that_could_not_be_written_is_written_later_with_its_own_date(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = OperationalError("disk full")
    monkeypatch.setattr(results, "_record", _failing(results._record, 2, refused))
    sim = start("10:00", task(outcomes="fail"))
    assert runs(sim, "outcome") == ["running"]
    sim.advance_to(utc("10:03"))
    assert runs(sim, "outcome finished_at") == [("failed", "10:00")]
    assert sim.task("t").pending_retry_until == utc("10:05")


def test_an_end_that_could_not_be_written_is_written_before_another_set_comes(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = job("fail ok")
    refused = OperationalError("disk full")
    monkeypatch.setattr(results, "_record", _failing(results._record, 1, refused))
    sim = start("10:00", task(outcomes=once))
    assert runs(sim, "outcome") == ["running"]
    # Its minute is not over and nothing runs: as another task it is owed a run at once.
    sim.initialize([task(outcomes=once, delay=2 * FIVE_MINUTES)])
    assert runs(sim, "outcome reason") == [("failed", "boot"), ("succeeded", "boot")]


@pytest.mark.requirement("001 Error Taxonomy/8", "001 Error Throwing Guarantees/3")
@pytest.mark.beyond_the_theory
def test_pe06_an_error_during_the_first_initialisation_writes_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = start("10:00")
    refused = OperationalError("no space left")
    monkeypatch.setattr(database, "insert", _failing(database.insert, 1, refused))
    with pytest.raises(ScheduleTaskError) as caught:
        sim.initialize([task()])
    assert caught.value.message == "Failed to schedule task 't': no space left"
    assert caught.value.details["cause"] is refused
    assert (caught.value.details["name"], caught.value.details["cronExpression"]) == ("t", HOURLY)
    assert scheduler_of(sim).state == "Uninitialized"
    assert not SchedulerState.objects.exists()
    sim.initialize([task()])
    assert starts(sim) == ["10:00"]


@pytest.mark.requirement("001 Error Taxonomy/8", "001 Error Throwing Guarantees/2")
def test_an_unexpected_error_of_an_initialisation_is_wrapped(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = RuntimeError("a router of the project is broken")
    monkeypatch.setattr(scheduler.reconcile, "reconcile", _failing(print, 1, cause))
    with pytest.raises(ScheduleTaskError) as caught:
        start("10:00", task("a"), task("b"))
    assert caught.value.details["cause"] is caught.value.__cause__ is cause
    said = "Failed to schedule task 'default': a router of the project is broken"
    assert caught.value.message == said


@pytest.mark.requirement("001 Idempotency Guarantees/5")
@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("batch", [3, claims.BATCH])
def test_one_row_that_spoils_the_batch_is_set_aside_and_the_others_run(
    start: Start,
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
    told: list[Event],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(claims, "BATCH", batch)
    sim = start("09:30", *(task(f"t{n}") for n in range(10)))
    real = database.insert

    def insert(using: str, rows: Any, *rest: Any) -> None:
        if any(getattr(row, "task_name", "") == "t5" for row in rows):
            raise IntegrityError("a trigger of the project refuses t5")
        real(using, rows, *rest)

    monkeypatch.setattr(database, "insert", insert)
    sim.advance_to(utc("10:00"))
    assert [len(sim.starts(f"t{n}")) for n in range(10)] == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
    said = "The database refused to store a run of this task. The log shows its answer."
    assert sim.task("t5").broken_reason == said
    assert "a trigger of the project refuses t5" in caplog.text
    assert [event.task_name for event in of(told, events.TaskBroken)] == ["t5"]
    monkeypatch.undo()
    sim.advance_to(utc("10:10"))
    assert len(sim.starts("t5")) == 1
    assert sim.task("t5").broken_reason == ""


@pytest.mark.beyond_the_theory
def test_occurrences_of_a_broken_task_are_missed_because_it_was_broken(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = start("09:30", task(), task("u"))
    real = claims.declaration_of

    def refuse(row: ScheduledTask, *rest: Any) -> Any:
        if row.name == "t":
            raise LookupError("no such callback")
        return real(row, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(claims, "declaration_of", refuse)
        sim.advance_to(utc("12:30"))
    sim.advance_to(utc("12:40"))
    assert runs(sim, "outcome reason count") == [("missed", "broken", 2), ("succeeded", "due", 1)]


def test_a_result_whose_texts_are_refused_is_recorded_without_them(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = results._record

    def record(member: Any, batch: Any, *rest: Any) -> Any:
        if any("poison" in result.error for result in batch):
            raise DataError("invalid byte sequence")
        return real(member, batch, *rest)

    monkeypatch.setattr(results, "_record", record)
    sim = start("10:00", task("bad", outcomes=[ValueError("poison")]), task("good"))
    assert runs(sim, "outcome error", "bad") == [("failed", "(refused by the database: DataError)")]
    assert runs(sim, "outcome", "good") == ["succeeded"]


@pytest.mark.beyond_the_theory
def test_a_pass_that_was_held_up_dates_no_start_before_an_end_that_came_meanwhile(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = start("10:00:30", task("t", MINUTELY))

    def halted(now: datetime) -> None:
        monkeypatch.undo()
        sim.clock.advance(now + 40 * SECOND)
        # As a worker of an engine writes it.
        ended = now + 20 * SECOND
        TaskRun.objects.update(finished_at=ended)
        ScheduledTask.objects.update(freed_at=ended)

    monkeypatch.setattr(scheduler_of(sim)._engine, "_record_results", halted)
    sim.advance_to(utc("10:02:30"))
    assert runs(sim, "scheduled_for started_at finished_at")[:2] == [
        ("10:00", "10:00:30", "10:01:20"),
        ("10:01", "10:01:40", "10:01:40"),
    ]


# --- more is due at one instant than one transaction takes ---

CROWD = [f"t{number}" for number in range(10)]


@pytest.fixture
def crowd(start: Start, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Ten hourly tasks of which one transaction starts three."""
    monkeypatch.setattr(claims, "BATCH", 3)
    return start("10:30", *map(task, CROWD))


def test_all_that_is_due_at_an_instant_starts_at_it(crowd: Simulation) -> None:
    crowd.advance_to(utc("12:30"), at_least_every=HALF_AN_HOUR)
    assert [starts(crowd, name) for name in CROWD] == [["11:00", "12:00"]] * 10
    assert TaskRun.objects.filter(outcome="succeeded").count() == TaskRun.objects.count() == 20


def test_all_that_was_missed_is_caught_up_at_once(crowd: Simulation) -> None:
    crowd.jump_to(utc("13:30"))
    assert [starts(crowd, name) for name in CROWD] == [["13:30"]] * 10
    missed = [("missed", "held_up", 2, "12:00")]
    assert [unserved(crowd, name) for name in CROWD] == [missed] * 10


# --- rows that somebody damaged ---

DAMAGES: dict[str, tuple[dict[str, Any], str]] = {
    "negative delay": (
        {"retry_delay": timedelta(seconds=-5)},
        "TaskInvalidTypeError: Invalid type for field 'retryDelayMs': "
        "expected non-negative integer of milliseconds, got negative number",
    ),
    "garbage for an expression": (
        {"cron": "garbage"},
        "TaskInvalidValueError: Invalid value for field 'cronExpression': expression field ",
    ),
    "a minute too many": (
        {"cron": "60 * * * *"},
        "TaskInvalidValueError: Invalid value for field 'cronExpression': minute field ",
    ),
    "unknown zone": (
        {"timezone": "Nowhere/At_All"},
        "TaskInvalidValueError: Invalid value for field 'timezone': is not a known time zone",
    ),
    "no declaration": (
        {"declaration": ["no object"], "cron": "5 * * * *"},
        "TaskInvalidTypeError: Invalid type for field 'declaration': expected object, got array",
    ),
    "unknown dialect": (
        {"declaration": {"dialect": "quartz"}, "cron": "5 * * * *"},
        "TaskInvalidValueError: Invalid value for field 'dialect': is unknown",
    ),
}


@pytest.mark.requirement("003 Test Methodology/3")
@pytest.mark.parametrize("damage", DAMAGES)
def test_pe10_a_damaged_row_is_told_and_rewritten_from_its_declaration(
    start: Start, told: list[Event], damage: str
) -> None:
    tasks = [task("a"), task("b")]
    sim = start("10:00", *tasks)
    sim.stop()
    changed, error = DAMAGES[damage]
    ScheduledTask.objects.filter(name="a").update(**changed)
    told.clear()
    sim.initialize(tasks)
    (event,) = of(told, events.TaskStateDamaged)
    assert (event.task_name, event.level) == ("a", "WARNING")
    assert event.error.startswith(error)
    kinds = [type(each) for each in told if getattr(each, "task_name", "") == "a"]
    assert kinds[:2] == [events.TaskStateDamaged, events.TaskOverridden]
    row = sim.task("a")
    assert (row.cron, row.timezone, row.retry_delay) == (HOURLY, "UTC", FIVE_MINUTES)
    assert row.declaration == sim.task("b").declaration | {"name": "a"}
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 1)


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("damage", [{"retry_delay": timedelta(days=-1)}, {"cron": "garbage"}])
def test_damage_found_while_running_is_told_and_rewritten_too(
    start: Start, told: list[Event], damage: dict[str, Any]
) -> None:
    sim = start("10:00", task("a"), task("b"))
    ScheduledTask.objects.filter(name="a").update(**damage)
    sim.advance_to(utc("11:00"))
    (event,) = of(told, events.TaskStateDamaged)
    assert (event.task_name, event.at) == ("a", utc("11:00"))
    assert (sim.task("a").cron, sim.task("a").retry_delay) == (HOURLY, FIVE_MINUTES)
    sim.advance_to(utc("12:00"))
    assert starts(sim, "a") == ["10:00", "12:00"]
    assert starts(sim, "b") == ["10:00", "11:00", "12:00"]
    assert len(of(told, events.TaskOverridden)) == 1


def test_pe10_a_fractional_delay_is_another_delay_and_no_damage(
    start: Start, told: list[Event]
) -> None:
    sim = start("10:10", task())
    sim.stop()
    ScheduledTask.objects.update(retry_delay=timedelta(milliseconds=5000, microseconds=500))
    sim.initialize([task()])
    (event,) = of(told, events.TaskOverridden)
    assert event.old_state == {"retry_delay_ms": 5000.5}
    assert of(told, events.TaskStateDamaged) == []
    assert sim.task("t").retry_delay == FIVE_MINUTES


@pytest.mark.requirement("003 Testable Invariants/7")
def test_pe17_columns_keep_microseconds(start: Start) -> None:
    start("10:00", task())
    instant = utc("09:59:59.123456")
    fields = ("last_attempt_at", "last_success_at", "pending_retry_until")
    ScheduledTask.objects.update(**dict.fromkeys(fields, instant))
    assert ScheduledTask.objects.values_list(*fields).get() == (instant,) * 3


def test_an_imported_state_is_refused_for_a_task_that_nobody_declares(start: Start) -> None:
    sim = start("10:00", task())
    data = {"name": "z", "cronExpression": HOURLY, "retryDelayMs": 1}
    with pytest.raises(TaskTryDeserializeError):
        deserialize(data, scheduler_of(sim).declarations)


# --- rows that are gone, or of nobody ---


@pytest.mark.requirement("001 Error Taxonomy/18")
def test_a_database_that_keeps_less_than_was_written_is_found_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim, real = start("10:00"), database.insert

    def lose(using: str, rows: Any) -> None:
        real(using, [row for row in rows if getattr(row, "name", None) != "b"])

    monkeypatch.setattr(database, "insert", lose)
    with pytest.raises(ScheduleTaskError) as caught:
        sim.initialize([task("a"), task("b")])
    cause = caught.value.details["cause"]
    assert isinstance(cause, TaskListMismatchError)
    assert cause.details == {"expected": ["a", "b"], "actual": ["a"]}
    assert caught.value.message == (
        "Failed to schedule task 'default': "
        "Persisted tasks do not match the declared ones: missing 'b'"
    )
    assert not SchedulerState.objects.exists()
    monkeypatch.undo()
    sim.initialize([task("a"), task("b")])
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 1)


@pytest.mark.requirement("001 Error Taxonomy/18")
def test_pe08_rows_that_are_gone_are_told_by_name(start: Start, told: list[Event]) -> None:
    sim = start("10:00", task("a"), task("b"))
    ScheduledTask.objects.filter(name="a").delete()
    sim.advance_to(utc("11:00"))
    (event,) = of(told, events.PersistenceFailed)
    assert event.doing == "keeping the rows of the declared tasks"
    assert event.error == (
        "TaskListMismatchError: Persisted tasks do not match the declared ones: missing 'a'"
    )
    assert [each.task_name for each in of(told, events.TaskAdded)] == ["a", "b", "a"]
    assert utc("10:00") < sim.task("a").registered_at < utc("10:02")
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


def test_pe08_a_row_of_somebody_else_does_not_hide_a_row_that_is_gone(
    start: Start, told: list[Event]
) -> None:
    sim = start("10:00", task("a"), task("b"))
    ScheduledTask.objects.filter(name="a").update(name="stranger")
    sim.advance_to(utc("11:00"))
    assert [row["name"] for row in _rows()] == ["a", "b"]
    assert [each.task_name for each in of(told, events.TaskOrphaned)] == ["stranger"]
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


def test_a_row_of_nobody_starts_nothing_and_is_removed(start: Start, told: list[Event]) -> None:
    sim = start("10:00", task("a"))
    row = sim.task("a")
    row.pk, row.name, row.wake_at = None, "foreign", utc("10:30")
    row.save()
    sim.advance_to(utc("11:00"))
    (broken,) = of(told, events.TaskBroken)
    assert "not declared" in broken.reason
    assert broken.at == utc("10:30")
    assert not ScheduledTask.objects.filter(name="foreign").exists()
    assert sim.runs("foreign") == []
    assert len(sim.starts("a")) == 2


# --- what cannot be calculated ---


@pytest.mark.requirement("001 Error Taxonomy/12", "001 Override Atomicity/2")
@pytest.mark.parametrize("question", ["next_after", "latest_at_or_before"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "overridden"])
def test_a_schedule_that_cannot_be_calculated_is_named_and_everything_stands_as_before(
    start: Start, monkeypatch: pytest.MonkeyPatch, question: str, known: bool
) -> None:
    sim = start("10:10", task("good"), *([task("bad", "5 * * * *")] if known else []))
    before = _rows()
    real = getattr(CronExpression, question)

    def answer(self: CronExpression, *args: Any, **kwargs: Any) -> Any:
        if self.minutes == {7}:
            raise OSError("the rules of the zone cannot be read")
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(CronExpression, question, answer)
        with pytest.raises(ScheduleTaskError) as caught:
            sim.initialize([task("good"), task("bad", "7 * * * *")])
    error = caught.value
    assert (error.details["name"], error.details["cronExpression"]) == ("bad", "7 * * * *")
    assert isinstance(error.details["cause"], CronCalculationError)
    assert isinstance(error.details["cause"].details["cause"], OSError)
    assert error.message == (
        "Failed to schedule task 'bad': Failed to calculate next occurrence: "
        "the rules of the zone cannot be read"
    )
    assert _rows() == before
    sim.advance_to(utc("11:00"))
    assert len(sim.starts("good")) == 1


@pytest.mark.beyond_the_theory
def test_p58_three_broken_tasks_of_a_hundred_hold_up_no_other(
    start: Start, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    sim = start("10:59", *(task(f"t{n:03}") for n in range(100)))
    broken = {"t050", "t051", "t052"}
    schedules = [d.schedule for d in scheduler_of(sim).declarations if d.name in broken]
    real = Schedule.latest_at_or_before

    def answer(self: Schedule, instant: datetime) -> datetime | None:
        if any(self is each for each in schedules):
            raise CronCalculationError(self.expression.text, str(instant), OSError("gone"))
        return real(self, instant)

    monkeypatch.setattr(Schedule, "latest_at_or_before", answer)
    sim.advance_to(utc("11:00"))
    started = TaskRun.objects.filter(started_at=utc("11:00")).values_list("task_name", flat=True)
    assert len(started) == 97 and not broken & set(started)
    reasons = ScheduledTask.objects.exclude(broken_reason="").values_list("name", "broken_reason")
    why = "CronCalculationError: Failed to calculate next occurrence: gone"
    assert dict(reasons) == dict.fromkeys(broken, why)
    assert {event.task_name for event in of(told, events.TaskBroken)} == broken
    monkeypatch.undo()
    sim.advance_to(utc("11:06"))
    assert [len(sim.starts(name)) for name in sorted(broken)] == [1, 1, 1]
