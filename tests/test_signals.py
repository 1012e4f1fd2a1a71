"""A repeated failure is logged with exponential back-off, and its traceback once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from django_declarative_cron import signals
from django_declarative_cron.core import events
from django_declarative_cron.core.backoff import QUIET, Backoff


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Return a function that sets the time of log records."""
    now = [1000.0]
    factory = logging.getLogRecordFactory()

    def make(*args: object, **kwargs: object) -> logging.LogRecord:
        record = factory(*args, **kwargs)
        record.created = now[0]
        return record

    logging.setLogRecordFactory(make)
    yield lambda second: now.__setitem__(0, second)
    logging.setLogRecordFactory(factory)


def refused(text: str = "attempt to write a readonly database") -> Exception:
    try:
        raise OSError(text) from ValueError("beneath")
    except OSError as error:
        return error


def test_a_fault_of_25_seconds_is_a_few_lines_and_one_traceback(
    at: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    for tenth in range(250):
        at(1000 + tenth / 10)
        signals.report("The heartbeat", refused())
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 5
    assert messages[0] == "The heartbeat failed; it is tried again"
    assert messages[1] == (
        "The heartbeat failed; it is tried again: OSError: attempt to write a readonly database "
        "(10 times since the last line)"
    )
    assert caplog.text.count("Traceback") == 1
    assert caplog.text.count("ValueError: beneath") == 1
    assert caplog.records[0].exc_info is not None


def test_another_kind_of_failure_has_its_own_traceback(caplog: pytest.LogCaptureFixture) -> None:
    signals.report("The heartbeat", refused())
    signals.report("A pass of the scheduler", refused())
    signals.report("The heartbeat", ValueError("another class"))
    try:
        raise OSError("another line of code")
    except OSError as error:
        signals.report("The heartbeat", error)
    assert len([record for record in caplog.records if record.exc_info]) == 4


def test_a_later_failure_is_logged_with_its_traceback_again(
    at: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    signals.report("The heartbeat", refused())
    at(1000 + QUIET + 1)
    signals.report("The heartbeat", refused())
    assert [bool(record.exc_info) for record in caplog.records] == [True, True]


def test_a_receiver_that_always_raises_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    def receiver(**_: object) -> None:
        raise ValueError("x" * 100_000)

    heard = signals.signal_of(events.SchedulerStopped)
    heard.connect(receiver)
    try:
        with caplog.at_level(logging.ERROR, logger="django_declarative_cron"):
            for _ in range(5):
                heard_event = events.SchedulerStopped.__new__(events.SchedulerStopped)
                signals._to_all(heard, heard_event, {})
    finally:
        heard.disconnect(receiver)
    # Django also logs each failure of a receiver.
    ours = [record for record in caplog.records if record.name == signals.logger.name]
    assert len(ours) == 1
    text = logging.Formatter().format(ours[0])
    assert text.startswith("A receiver of SchedulerStopped raised")
    assert len(text) < 50_000


def test_a_clock_step_back_suppresses_no_log_line() -> None:
    backoff = Backoff()
    assert [backoff.line(at) for at in (1000.0, 1000.5, 10.0, 10.5)] == [1, 0, 1, 0]
