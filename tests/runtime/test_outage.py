"""An outage is told at its begin, less and less often, and at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.runtime.connections import Outage
from django_declarative_cron.testing import ManualClock

START = datetime(2024, 1, 1, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _all_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, logger="django_declarative_cron"):
        yield


def test_five_minutes_of_refusals_are_told_in_eleven_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    told = []
    for second in range(301):
        outage.fails("evaluating", OSError("gone"), clock.now())
        told += [second] * (len(caplog.records) - len(told))
        clock.advance(clock.now() + timedelta(seconds=1))
    assert told == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    for _ in range(3):
        outage.ends()
    (recovered,) = caplog.records[10:]
    assert recovered.levelname == "INFO"
    assert recovered.getMessage() == "The database answers again after 301 refusals in 301 s."


def test_a_pass_that_succeeds_between_two_refusals_is_no_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    for _ in range(3):
        outage.fails("looking after the registration set", OSError("gone"), clock.now())
        outage.ends()
    assert len(caplog.records) == 1


def test_the_next_outage_is_told_at_once_again(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    for _ in range(2):
        outage.fails("evaluating", OSError("gone"), clock.now())
        outage.ends()
        outage.ends()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"] * 2
