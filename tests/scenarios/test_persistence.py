"""The database refuses: nothing starts uncommitted, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, IntegrityError, OperationalError

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import ScheduleTaskError
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.store import claims, database, results
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, Started, of, utc


def _failing(real: Callable[..., Any], times: int, error: Exception) -> Callable[..., Any]:
    left = [times]

    def call(*args: Any, **kwargs: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise error
        return real(*args, **kwargs)

    return call


@pytest.mark.requirement("001 Idempotency Guarantees/5")
def test_pe01_an_error_while_polling_calls_nothing_and_is_tried_again(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    sim = simulation("09:30:00")
    job = sim.job()
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    refused = OperationalError("server closed the connection")
    monkeypatch.setattr(claims, "_claim", _failing(claims._claim, 1, refused))
    sim.jump_to("2024-01-01T10:00:00Z")
    assert job.runs == []
    assert [event.doing for event in of(told, events.PersistenceFailed)] == ["evaluating"]
    sim.jump_to("2024-01-01T10:01:00Z")
    assert sim.starts("t") == [utc("10:01")]
    assert sim.runs("t")[0].scheduled_for == utc("10:00")


@pytest.mark.requirement("001 Idempotency Guarantees/4", "003 Error Handling/3")
def test_pe04_a_result_that_could_not_be_written_is_written_later_with_its_own_date(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail"])
    refused = OperationalError("disk full")
    monkeypatch.setattr(results, "_record", _failing(results._record, 2, refused))
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    assert sim.runs("t")[0].outcome == "running"
    sim.advance_to("2024-01-01T10:03:00Z")
    (run,) = sim.runs("t")
    assert (run.outcome, run.finished_at) == ("failed", utc("10:00"))
    assert sim.task("t").pending_retry_until == utc("10:05")


@pytest.mark.requirement("001 Error Taxonomy/8", "001 Error Throwing Guarantees/3")
@pytest.mark.beyond_the_theory
def test_pe06_an_error_during_the_first_initialisation_writes_nothing(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", HOURLY, sim.job(), FIVE_MINUTES)]
    refused = OperationalError("no space left")
    monkeypatch.setattr(database, "insert", _failing(database.insert, 1, refused))
    with pytest.raises(ScheduleTaskError) as caught:
        sim.initialize(registrations)
    assert caught.value.message == "Failed to schedule task 't': no space left"
    assert caught.value.details["cause"] is refused
    assert (caught.value.details["name"], caught.value.details["cronExpression"]) == ("t", HOURLY)
    assert sim[0].scheduler is not None
    assert sim[0].scheduler.state == "Uninitialized"
    assert not SchedulerState.objects.exists()
    sim.initialize(registrations)
    assert len(sim.starts("t")) == 1


@pytest.mark.requirement("001 Idempotency Guarantees/5")
@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("batch", [3, claims.BATCH])
def test_one_row_that_spoils_the_batch_is_set_aside_and_the_others_run(
    simulation: Started,
    batch: int,
    monkeypatch: pytest.MonkeyPatch,
    told: list[Event],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(claims, "BATCH", batch)
    sim = simulation("09:30:00")
    sim.initialize([(f"t{n}", HOURLY, sim.job(), FIVE_MINUTES) for n in range(10)])

    def refusing(real: Callable[..., None]) -> Callable[..., None]:
        def insert(using: str, rows: Any, *rest: Any) -> None:
            if any(getattr(row, "task_name", "") == "t5" for row in rows):
                raise IntegrityError("a trigger of the project refuses t5")
            real(using, rows, *rest)

        return insert

    monkeypatch.setattr(database, "insert", refusing(database.insert))
    sim.advance_to("2024-01-01T10:00:00Z")
    assert [len(sim.starts(f"t{n}")) for n in range(10)] == [1, 1, 1, 1, 1, 0, 1, 1, 1, 1]
    said = "The database refused to store a run of this task. The log shows its answer."
    assert sim.task("t5").broken_reason == said
    assert "a trigger of the project refuses t5" in caplog.text
    assert [event.task_name for event in of(told, events.TaskBroken)] == ["t5"]
    monkeypatch.undo()
    sim.advance_to("2024-01-01T10:10:00Z")
    assert len(sim.starts("t5")) == 1
    assert sim.task("t5").broken_reason == ""


@pytest.mark.beyond_the_theory
def test_occurrences_of_a_broken_task_are_missed_because_it_was_broken(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("09:30:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES), ("u", HOURLY, sim.job(), FIVE_MINUTES)])

    def refuse(row: ScheduledTask, *_: Any) -> Any:
        if row.name == "t":
            raise LookupError("no such callback")
        return real(row, *_)

    real = claims.declaration_of
    monkeypatch.setattr(claims, "declaration_of", refuse)
    sim.advance_to("2024-01-01T12:30:00Z")
    monkeypatch.undo()
    sim.advance_to("2024-01-01T12:40:00Z")
    rows = TaskRun.objects.filter(task_name="t").order_by("id")
    assert list(rows.values_list("outcome", "reason", "count")) == [
        ("missed", "broken", 2),
        ("succeeded", "due", 1),
    ]


def test_a_result_whose_texts_are_refused_is_recorded_without_them(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = results._record

    def record(member: Any, batch: Any, *rest: Any) -> Any:
        if any("poison" in result.error for result in batch):
            raise DataError("invalid byte sequence")
        return real(member, batch, *rest)

    monkeypatch.setattr(results, "_record", record)
    sim = simulation("10:00:00")
    bad, good = sim.job([ValueError("poison")]), sim.job()
    sim.initialize([("bad", HOURLY, bad, FIVE_MINUTES), ("good", HOURLY, good, FIVE_MINUTES)])
    assert [run.outcome for name in ("bad", "good") for run in sim.runs(name)] == [
        "failed",
        "succeeded",
    ]
    assert sim.runs("bad")[0].error == "(refused by the database: DataError)"


def test_a_row_of_nobody_starts_nothing_and_is_removed(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    row = sim.task("a")
    row.pk, row.name, row.wake_at = None, "foreign", utc("10:30")
    row.save()
    sim.advance_to("2024-01-01T11:00:00Z")
    (broken,) = of(told, events.TaskBroken)
    assert "not declared" in broken.reason
    assert broken.at == utc("10:30")
    assert not ScheduledTask.objects.filter(name="foreign").exists()
    assert not TaskRun.objects.filter(task_name="foreign").exists()
    assert len(sim.starts("a")) == 2


def test_an_end_that_could_not_be_written_is_written_before_another_set_comes(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "ok"])
    refused = OperationalError("disk full")
    monkeypatch.setattr(results, "_record", _failing(results._record, 1, refused))
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    assert sim.runs("t")[0].outcome == "running"
    # Its minute is not over and nothing runs: as another task it is owed a run at once.
    sim.initialize([("t", HOURLY, job, 2 * FIVE_MINUTES)])
    runs = [(run.outcome, run.reason) for run in sim.runs("t")]
    assert runs == [("failed", "boot"), ("succeeded", "boot")]


# --- more is due at one instant than one transaction takes ---

NAMES = [f"t{number}" for number in range(10)]


@pytest.fixture
def crowd(simulation: Started, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """Ten hourly tasks of which one transaction starts three."""
    monkeypatch.setattr(claims, "BATCH", 3)
    sim = simulation("10:30:00")
    sim.initialize([(name, "0 * * * *", sim.job(), FIVE_MINUTES) for name in NAMES])
    return sim


def _starts(sim: Simulation) -> list[list[str]]:
    return [[f"{start:%H:%M:%S}" for start in sim.starts(name)] for name in NAMES]


def test_all_that_is_due_at_an_instant_starts_at_it(crowd: Simulation) -> None:
    crowd.advance_to(utc("11:00"), at_least_every=timedelta(minutes=30))
    assert _starts(crowd) == [["11:00:00"]] * 10
    crowd.advance_to(utc("12:30"), at_least_every=timedelta(minutes=30))
    assert _starts(crowd) == [["11:00:00", "12:00:00"]] * 10
    assert TaskRun.objects.filter(outcome="succeeded").count() == TaskRun.objects.count() == 20


def test_all_that_was_missed_is_caught_up_at_once(crowd: Simulation) -> None:
    crowd.jump_to(utc("13:30"))
    assert _starts(crowd) == [["13:30:00"]] * 10
    missed = TaskRun.objects.filter(outcome="missed").values_list("task_name", "count")
    assert sorted(missed) == [(name, 2) for name in NAMES]
