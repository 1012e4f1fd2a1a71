"""The log event contract (003 Logging & Event Contract), and what each run is told of itself."""

from __future__ import annotations

import logging
from copy import deepcopy
from dataclasses import fields
from typing import Any

import pytest

from django_declarative_cron import Run, signals
from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.formatting import camel
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import SimulatedFailure

from .conftest import Start, entry, governed, job, task
from .observed import names, utc

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
def test_ad06_log_records_and_signals_carry_the_contract(
    start: Start, logged: pytest.LogCaptureFixture
) -> None:
    received: list[dict[str, Any]] = []

    def listen(sender: type[Event], **fields: Any) -> None:
        received.append({"sender": sender, **fields})

    signals.task_run_started.connect(listen)
    try:
        sim = start("10:00:30", task(outcomes="fail ok"))
        sim.advance_to(utc("10:06"))
    finally:
        signals.task_run_started.disconnect(listen)
    first, second = _records(logged, "TaskRunStarted")
    assert (first.taskName, first.isRetry, second.isRetry) == ("t", False, True)
    assert (first.scheduledTime, first.actualTime) == (
        *("2024-01-01T10:00:00Z", "2024-01-01T10:00:30Z"),
    )
    assert second.actualTime == "2024-01-01T10:05:30Z"
    (failed,) = _records(logged, "TaskRunFailed")
    assert (failed.levelname, failed.success) == ("WARNING", False)
    assert failed.nextRetryAt == "2024-01-01T10:05:30Z"
    assert failed.error == "SimulatedFailure: fail"
    (retry,) = _records(logged, "TaskRetryStarted")
    assert retry.retryCount == 1
    (completed,) = _records(logged, "TaskRunCompleted")
    assert (completed.success, completed.duration) == (True, 0.0)
    got = received[0]
    assert got["sender"] is events.TaskRunStarted
    assert (got["task_name"], got["scheduled_time"]) == ("t", utc("10:00"))
    assert (got["actual_time"], got["is_retry"]) == (utc("10:00:30"), False)


@pytest.mark.requirement("001 Override Resolution/1")
def test_ad09_every_task_is_told_once_by_its_kind(start: Start, told: list[Event]) -> None:
    sim = start("10:10", task("kept"), task("was"), task("gone"))
    sim.stop()
    told.clear()
    sim.initialize([task("new"), task("kept"), task("was", "5 * * * *")])
    kinds = ("TaskAdded", "TaskPreserved", "TaskOverridden", "TaskOrphaned")
    found = [(type(e).__name__, e.task_name) for e in told if type(e).__name__ in kinds]
    assert sorted(found) == sorted(zip(kinds, ("new", "kept", "was", "gone"), strict=True))


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
    start: Start,
    told: list[Event],
    logged: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sim = start("10:10", task())
    told.clear()
    with django_capture_on_commit_callbacks(execute=True):
        operator_actions.pause(["t"], operator_actions.Act("ada", sim.now, "inventory"))
        assert told == []
    assert names(told) == ["TaskPaused"]
    [record] = _records(logged, "TaskPaused")
    assert (record.taskName, record.author, record.note) == ("t", "ada", "inventory")


# --- what a run is told of itself and its task, and keeps to itself ---


def test_each_run_is_given_what_was_declared(start: Start) -> None:
    given: list[Any] = []

    def take(rows: list[Any], run: Run) -> None:
        given.append(deepcopy((run.task_name, rows, run.meta["of"])))
        rows.append({"more": 1})
        run.meta["of"].append("this run")

    said = {"callback": take, "args": [[{"id": 7}]], "options": {"meta": {"of": ["all"]}}}
    # Alike, so that they are read as one.
    tasks = [{"name": name, "cron": "0 * * * *", **said} for name in ("a", "b")]
    before = deepcopy([(each["args"], each["options"]) for each in tasks])
    sim = start("10:30", *tasks)
    sim.advance_to(utc("12:30"))
    assert sorted(name for name, *_ in given) == ["a", "a", "b", "b"]
    assert [each[1:] for each in given] == [([{"id": 7}], ["all"])] * 4
    assert [(each["args"], each["options"]) for each in tasks] == before


def test_p25_a_run_knows_which_occurrence_it_is_for_in_each_attempt(start: Start) -> None:
    seen: list[Run] = []

    def report(run: Run) -> None:
        seen.append(run)
        if run.attempt < 3:
            raise SimulatedFailure("the bank is closed")

    noon = governed("report", "0 12 * * *", timezone="Europe/Berlin", callback=report)
    sim = start("10:59:30", noon)
    sim.clock.advance(utc("11:00:45"))
    sim.advance_to(utc("11:12"))
    assert [(r.attempt, r.reason, r.started_at.replace(microsecond=0)) for r in seen] == [
        (1, "due", utc("11:00:45")),
        (2, "retry", utc("11:05:45")),
        (3, "retry", utc("11:10:45")),
    ]
    assert {(run.task_name, run.scheduled_for, run.timezone) for run in seen} == {
        ("report", utc("11:00"), "Europe/Berlin")
    }


@pytest.mark.requirement("002 CRON-20")
def test_cron_20_runs_carry_the_name_of_their_task(start: Start) -> None:
    twice, meta = job("fail ok"), {"site": 7, "cron_name": "another"}
    sim = start("10:00", entry(outcomes=twice, options={"meta": meta}))
    sim.advance_to(utc("10:10"))
    expected = {"site": 7, "cron_name": "t", "cron_triggered_at": "2024-01-01T10:00:00Z"}
    assert [run.meta for run in twice.runs] == [expected, expected]
    assert [(run.attempt, run.max_attempts) for run in twice.runs] == [(1, 3), (2, 3)]
