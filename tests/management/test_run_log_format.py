"""The default log of ``runscheduler`` has one short line for each run."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.management.cli import run_log_format
from django_declarative_cron.management.cli.run_log_format import RunLineFormatter
from django_declarative_cron.signals import publish

DUE = datetime.fromisoformat("2030-01-31T06:00:00Z")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler, logger = logging.StreamHandler(stream), logging.getLogger("django_declarative_cron")
    formatter = RunLineFormatter(ZoneInfo("Europe/Berlin"))
    handler.setFormatter(formatter)
    handler.addFilter(formatter.filter)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


def _started(run: int = 1, late: float = 0.12, **values: Any) -> events.Event:
    at = DUE + timedelta(seconds=late)
    keys = {"at": at, "task_name": "report-daily", "scheduled_time": DUE, "actual_time": at}
    return events.TaskRunStarted(**keys, run=run, **values)


def _lines(log: io.StringIO) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in log.getvalue().splitlines()]


def test_a_run_that_succeeds(log: io.StringIO) -> None:
    end = events.TaskRunCompleted(at=DUE, task_name="report-daily", duration=1.26, run=1)
    publish([_started(), end])
    assert _lines(log) == ["INFO    report-daily succeeded in 1.2 s (due 07:00:00, +120 ms)"]


def test_a_run_that_fails_and_its_retry(log: io.StringIO) -> None:
    keys: dict[str, Any] = {"at": DUE, "task_name": "report-daily", "error": "ValueError: no"}
    retry_at = DUE + timedelta(minutes=5)
    publish([_started(), events.TaskRunFailed(**keys, duration=65, run=1, next_retry_at=retry_at)])
    publish([events.TaskRetryStarted(at=DUE, task_name="report-daily", retry_count=1)])
    publish([_started(2, 300, attempt=2, is_retry=True, reason="retry")])
    publish([events.TaskRunFailed(**keys, duration=0.5, run=2, attempt=2)])
    assert _lines(log) == [
        "WARNING report-daily failed after 1 min 5 s: ValueError: no "
        "(due 07:00:00, +120 ms; retry at 07:05:00)",
        "WARNING report-daily failed after 500 ms: ValueError: no (due 07:00:00, attempt 2)",
    ]


def test_an_end_without_a_start_and_other_events(log: io.StringIO) -> None:
    publish([events.TaskRunCompleted(at=DUE, task_name="a", duration=2, run=7)])
    publish([events.TaskRetryPreempted(at=DUE, task_name="a", reason="due")])
    assert _lines(log) == [
        "INFO    a succeeded in 2 s",
        "INFO    TaskRetryPreempted at=2030-01-31T06:00:00Z taskName=a reason=due",
    ]


def test_starts_without_ends_are_forgotten(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log_format, "_MOST_STARTS", 2)
    publish([_started(run) for run in (1, 2, 3)])
    publish(
        [events.TaskRunCompleted(at=DUE, task_name="a", duration=2, run=run) for run in (1, 2, 3)]
    )
    assert [" (due " in line for line in _lines(log)] == [False, True, True]


def test_a_run_by_hand(log: io.StringIO) -> None:
    publish([_started(reason="manual")])
    publish([events.TaskRunCompleted(at=DUE, task_name="report-daily", duration=0, run=1)])
    assert _lines(log) == ["INFO    report-daily succeeded in <1 ms (manual)"]
