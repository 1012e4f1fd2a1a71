"""The log event contract (003 Logging & Event Contract): names, levels, fields, order."""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import signals
from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.formatting import camel
from django_declarative_cron.store import operator_actions

from .conftest import FIVE_MINUTES, Started, names, utc

CONTRACT = {
    "SchedulerInitializationStarted": ("DEBUG", "totalRegistrations"),
    "SchedulerInitializationCompleted": (
        "DEBUG",
        "totalRegistrations scheduledCount skippedCount",
    ),
    "SchedulerReinitializationStarted": ("DEBUG", ""),
    "SchedulerStopRequested": ("INFO", ""),
    "SchedulerStopped": ("INFO", ""),
    "TaskRunStarted": ("INFO", "taskName scheduledTime actualTime isRetry"),
    "TaskRunCompleted": ("INFO", "taskName duration success"),
    "TaskRunFailed": ("WARNING", "taskName duration success error nextRetryAt"),
    "TaskRetryStarted": ("INFO", "taskName retryCount"),
    "TaskRetryPreempted": ("INFO", "taskName reason"),
    "PollStarted": ("DEBUG", "pollTime scheduledTaskCount"),
    "PollCompleted": ("DEBUG", "pollTime tasksEvaluated tasksExecuted duration"),
    "PollingStarted": ("DEBUG", ""),
    "PollingStopped": ("DEBUG", ""),
    "PollingStopRequested": ("DEBUG", ""),
    "TaskAdded": ("INFO", "taskName cronExpression retryDelayMs"),
    "TaskPreserved": ("DEBUG", "taskName"),
    "TaskOverridden": ("INFO", "taskName changeType oldState newState"),
    "TaskOrphaned": ("WARNING", "taskName lastExecutionTime schedulerIdentifier"),
    "TaskScheduled": ("DEBUG", "taskName cronExpression retryDelayMs"),
    "TaskSkipped": ("DEBUG", "taskName reason"),
}


@pytest.mark.requirement(
    "003 Logging Guarantees/1", "003 Logging Guarantees/2", "003 Logging Guarantees/3"
)
@pytest.mark.parametrize("name", CONTRACT)
def test_every_event_of_the_contract_has_its_level_and_fields(name: str) -> None:
    level, required = CONTRACT[name]
    event = getattr(events, name)
    assert event.level == level
    spelled = {camel(field.name) for field in fields(event)}
    assert set(required.split()) <= spelled


@pytest.mark.requirement("003 Logging Guarantees/1")
def test_there_is_one_signal_for_every_event_in_snake_case() -> None:
    assert len(signals.SIGNALS) == len(events.ALL) == len(set(events.ALL))
    assert signals.task_run_started is signals.SIGNALS["task_run_started"]
    assert "scheduler_reinitialization_started" in signals.SIGNALS
    with pytest.raises(AttributeError, match="no signal 'task_flown'"):
        _ = signals.task_flown


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="django_declarative_cron")
    return caplog


def _records(caplog: pytest.LogCaptureFixture, event: str) -> list[Any]:
    return [record for record in caplog.records if getattr(record, "event", None) == event]


@pytest.mark.requirement(
    "003 Logging Guarantees/2", "003 Logging Guarantees/5", "003 Logging Guarantees/6"
)
def test_ad06_log_records_carry_the_contract(
    simulation: Started, logged: pytest.LogCaptureFixture
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 * * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:05:00Z")
    first, second = _records(logged, "TaskRunStarted")
    assert (first.taskName, first.isRetry, second.isRetry) == ("t", False, True)
    assert first.scheduledTime == first.actualTime == "2024-01-01T10:00:00Z"
    assert second.actualTime == "2024-01-01T10:05:00Z"
    (failed,) = _records(logged, "TaskRunFailed")
    assert (failed.levelname, failed.success) == ("WARNING", False)
    assert failed.nextRetryAt == "2024-01-01T10:05:00Z"
    assert failed.error == "SimulatedFailure: fail"
    (retry,) = _records(logged, "TaskRetryStarted")
    assert retry.retryCount == 1
    (completed,) = _records(logged, "TaskRunCompleted")
    assert (completed.success, completed.duration) == (True, 0.0)


@pytest.mark.requirement("001 Override Resolution/1")
def test_ad09_every_task_is_told_once_by_its_kind(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:10:00")
    sim.initialize([(n, "0 * * * *", sim.job(), FIVE_MINUTES) for n in ("kept", "was", "gone")])
    sim.stop()
    told.clear()
    sim.initialize(
        [
            ("new", "0 * * * *", sim.job(), FIVE_MINUTES),
            ("kept", "0 * * * *", sim.job(), FIVE_MINUTES),
            ("was", "5 * * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    kinds = ("TaskAdded", "TaskPreserved", "TaskOverridden", "TaskOrphaned")
    found = [(type(e).__name__, e.task_name) for e in told if type(e).__name__ in kinds]
    assert sorted(found) == sorted(zip(kinds, ("new", "kept", "was", "gone"), strict=True))


@pytest.mark.requirement("003 Logging Guarantees/5")
def test_signals_hand_over_the_fields_by_name(simulation: Started) -> None:
    received: list[dict[str, Any]] = []

    def listen(sender: type[Event], **fields: Any) -> None:
        received.append({"sender": sender, **fields})

    signals.task_run_started.connect(listen)
    try:
        sim = simulation("10:00:30")
        sim.initialize([("t", "0 10 * * *", sim.job(), FIVE_MINUTES)])
    finally:
        signals.task_run_started.disconnect(listen)
    (got,) = received
    assert got["sender"] is events.TaskRunStarted
    assert (got["task_name"], got["scheduled_time"]) == ("t", utc("10:00"))
    assert (got["actual_time"], got["is_retry"]) == (utc("10:00:30"), False)


@pytest.mark.requirement("003 Input Validation/3")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("evil\nTaskRunCompleted taskName=other", r"evil\nTaskRunCompleted taskName=other"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("größe", "größe"),
    ],
)
def test_names_cannot_forge_a_log_line(
    logged: pytest.LogCaptureFixture, name: str, shown: str
) -> None:
    signals.publish([events.TaskPreserved(at=utc("10:00"), task_name=name)])
    (record,) = _records(logged, "TaskPreserved")
    assert record.taskName == shown
    assert len(record.getMessage().splitlines()) == 1


@pytest.mark.parametrize(
    ("seconds", "kept", "shown"),
    [
        (0.004901182997855358, 0.004901, "0.004901"),
        (0.00004, 0.00004, "0.00004"),
        (2.2, 2.2, "2.2"),
        (0.0, 0.0, "0"),
        (1e-9, 0.0, "0"),
        (1200.0, 1200.0, "1200"),
    ],
)
def test_a_duration_is_told_to_the_microsecond(
    logged: pytest.LogCaptureFixture, seconds: float, kept: float, shown: str
) -> None:
    signals.publish([events.TaskRunCompleted(at=utc("10:00"), task_name="t", duration=seconds)])
    (record,) = _records(logged, "TaskRunCompleted")
    assert record.duration == kept
    assert f" duration={shown} " in record.getMessage()


@pytest.mark.requirement("003 Logging Guarantees/4", "003 Error Handling/2")
def test_events_of_an_act_come_after_the_commit_and_are_logged_with_their_author(
    simulation: Started,
    told: list[Event],
    logged: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sim = simulation("10:10:00")
    sim.initialize([("t", "0 * * * *", sim.job(), timedelta(minutes=1))])
    told.clear()
    with django_capture_on_commit_callbacks(execute=True):
        operator_actions.pause(["t"], operator_actions.Act("ada", sim.now, "inventory"))
        assert told == []
    assert names(told) == ["TaskPaused"]
    [record] = _records(logged, "TaskPaused")
    assert (record.taskName, record.author, record.note) == ("t", "ada", "inventory")
