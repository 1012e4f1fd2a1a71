"""Rows that somebody damaged, and what cannot be scheduled: told, put right, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db.models import QuerySet

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
from django_declarative_cron.store import database

from .conftest import FIVE_MINUTES, HOURLY, Started, of, utc

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
    simulation: Started, told: list[Event], damage: str
) -> None:
    sim = simulation("10:00:00")
    registrations = [(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")]
    sim.initialize(registrations)
    sim.stop()
    changed, error = DAMAGES[damage]
    ScheduledTask.objects.filter(name="a").update(**changed)
    told.clear()
    sim.initialize(registrations)
    (event,) = of(told, events.TaskStateDamaged)
    assert (event.task_name, event.level) == ("a", "WARNING")
    assert event.error.startswith(error)
    kinds = [type(each) for each in told if getattr(each, "task_name", "") == "a"]
    assert kinds[:2] == [events.TaskStateDamaged, events.TaskOverridden]
    task = sim.task("a")
    assert (task.cron, task.timezone, task.retry_delay) == (HOURLY, "UTC", FIVE_MINUTES)
    assert task.declaration == sim.task("b").declaration | {"name": "a"}
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 1)


def test_pe10_a_fractional_delay_is_another_delay_and_no_damage(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:10:00")
    registrations = [("a", HOURLY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.stop()
    ScheduledTask.objects.update(retry_delay=timedelta(milliseconds=5000, microseconds=500))
    sim.initialize(registrations)
    (event,) = of(told, events.TaskOverridden)
    assert event.old_state == {"retry_delay_ms": 5000.5}
    assert of(told, events.TaskStateDamaged) == []
    assert sim.task("a").retry_delay == FIVE_MINUTES


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("damage", [{"retry_delay": timedelta(days=-1)}, {"cron": "garbage"}])
def test_damage_found_while_running_is_told_and_rewritten_too(
    simulation: Started, told: list[Event], damage: dict[str, Any]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    ScheduledTask.objects.filter(name="a").update(**damage)
    sim.advance_to("2024-01-01T11:00:00Z")
    (event,) = of(told, events.TaskStateDamaged)
    assert (event.task_name, event.at) == ("a", utc("11:00"))
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 2)
    assert (sim.task("a").cron, sim.task("a").retry_delay) == (HOURLY, FIVE_MINUTES)
    sim.advance_to("2024-01-01T12:00:00Z")
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 3)
    assert len(of(told, events.TaskOverridden)) == 1


@pytest.mark.requirement("003 Testable Invariants/7")
@pytest.mark.parametrize("field", ["last_attempt_at", "last_success_at", "pending_retry_until"])
def test_pe17_columns_keep_microseconds(simulation: Started, field: str) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    instant = datetime.fromisoformat("2024-01-01T09:59:59.123456+00:00")
    ScheduledTask.objects.update(**{field: instant})
    assert getattr(sim.task("a"), field) == instant


def test_an_imported_state_is_refused_for_a_task_that_nobody_declares(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    data = {"name": "z", "cronExpression": HOURLY, "retryDelayMs": 1}
    with pytest.raises(TaskTryDeserializeError):
        deserialize(data, sim[0].scheduler.declarations if sim[0].scheduler else [])


# --- what does not fit together ---


def _losing(real: Callable[..., None], name: str) -> Callable[..., None]:
    def insert(using: str, rows: Any) -> None:
        real(using, [row for row in rows if getattr(row, "name", None) != name])

    return insert


@pytest.mark.requirement("001 Error Taxonomy/18")
def test_a_database_that_keeps_less_than_was_written_is_found_out(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    monkeypatch.setattr(database, "insert", _losing(database.insert, "b"))
    registrations = [(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")]
    with pytest.raises(ScheduleTaskError) as caught:
        sim.initialize(registrations)
    cause = caught.value.details["cause"]
    assert isinstance(cause, TaskListMismatchError)
    assert cause.details == {"expected": ["a", "b"], "actual": ["a"]}
    assert caught.value.message == (
        "Failed to schedule task 'default': "
        "Persisted tasks do not match the declared ones: missing 'b'"
    )
    assert not SchedulerState.objects.exists()
    monkeypatch.undo()
    sim.initialize(registrations)
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 1)


@pytest.mark.requirement("001 Error Taxonomy/18")
def test_pe08_rows_that_are_gone_are_told_by_name(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    ScheduledTask.objects.filter(name="a").delete()
    sim.advance_to("2024-01-01T11:00:00Z")
    (event,) = of(told, events.PersistenceFailed)
    assert event.doing == "keeping the rows of the declared tasks"
    assert event.error == (
        "TaskListMismatchError: Persisted tasks do not match the declared ones: missing 'a'"
    )
    assert [each.task_name for each in of(told, events.TaskAdded)] == ["a", "b", "a"]
    assert utc("10:00") < sim.task("a").registered_at < utc("10:02")
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


def test_pe08_a_row_of_somebody_else_does_not_hide_a_row_that_is_gone(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    ScheduledTask.objects.filter(name="a").update(name="stranger")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert sorted(ScheduledTask.objects.values_list("name", flat=True)) == ["a", "b"]
    assert [each.task_name for each in of(told, events.TaskOrphaned)] == ["stranger"]
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


# --- what cannot be calculated ---


def _broken_for(minute: int, real: Callable[..., Any]) -> Callable[..., Any]:
    def answer(self: CronExpression, *args: Any, **kwargs: Any) -> Any:
        if self.minutes == {minute}:
            raise OSError("the rules of the zone cannot be read")
        return real(self, *args, **kwargs)

    return answer


@pytest.mark.requirement("001 Error Taxonomy/12", "001 Override Atomicity/2")
@pytest.mark.parametrize("question", ["next_after", "latest_at_or_before"])
@pytest.mark.parametrize("known", [False, True], ids=["new", "overridden"])
def test_a_schedule_that_cannot_be_calculated_is_named_and_everything_stands_as_before(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, question: str, known: bool
) -> None:
    sim = simulation("10:10:00")
    good = ("good", HOURLY, sim.job(), FIVE_MINUTES)
    sim.initialize([good, *([("bad", "5 * * * *", sim.job(), FIVE_MINUTES)] if known else [])])
    before = _values(ScheduledTask.objects.all())
    with monkeypatch.context() as patched:
        patched.setattr(CronExpression, question, _broken_for(7, getattr(CronExpression, question)))
        with pytest.raises(ScheduleTaskError) as caught:
            sim.initialize([good, ("bad", "7 * * * *", sim.job(), FIVE_MINUTES)])
    error = caught.value
    assert (error.details["name"], error.details["cronExpression"]) == ("bad", "7 * * * *")
    assert isinstance(error.details["cause"], CronCalculationError)
    assert isinstance(error.details["cause"].details["cause"], OSError)
    assert error.message == (
        "Failed to schedule task 'bad': Failed to calculate next occurrence: "
        "the rules of the zone cannot be read"
    )
    assert _values(ScheduledTask.objects.all()) == before
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(sim.starts("good")) == 1


def _values(tasks: QuerySet[ScheduledTask]) -> list[dict[str, Any]]:
    return list(tasks.order_by("name").values())


@pytest.mark.beyond_the_theory
def test_p58_three_broken_tasks_of_a_hundred_hold_up_no_other(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    sim = simulation("10:59:00")
    sim.initialize([(f"t{n:03}", "0 * * * *", sim.job(), FIVE_MINUTES) for n in range(100)])
    broken = {"t050", "t051", "t052"}
    assert sim[0].scheduler is not None
    schedules = [d.schedule for d in sim[0].scheduler.declarations if d.name in broken]
    real = Schedule.latest_at_or_before

    def answer(self: Schedule, instant: datetime) -> datetime | None:
        if any(self is each for each in schedules):
            raise CronCalculationError(self.expression.text, str(instant), OSError("gone"))
        return real(self, instant)

    monkeypatch.setattr(Schedule, "latest_at_or_before", answer)
    sim.advance_to("2024-01-01T11:00:00Z")
    started = TaskRun.objects.filter(started_at=utc("11:00")).values_list("task_name", flat=True)
    assert len(started) == 97 and not broken & set(started)
    reasons = ScheduledTask.objects.exclude(broken_reason="").values_list("name", "broken_reason")
    why = "CronCalculationError: Failed to calculate next occurrence: gone"
    assert dict(reasons) == dict.fromkeys(broken, why)
    assert {event.task_name for event in of(told, events.TaskBroken)} == broken
    monkeypatch.undo()
    sim.advance_to("2024-01-01T11:06:00Z")
    assert [len(sim.starts(name)) for name in sorted(broken)] == [1, 1, 1]
