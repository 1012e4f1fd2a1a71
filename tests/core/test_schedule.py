"""A cron expression bound to its zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import CronExpression, parse
from django_declarative_cron.exceptions import CronCalculationError

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SCHEDULE = Schedule(parse("0 * * * *"), ZoneInfo("Europe/Berlin"))

QUESTIONS: dict[str, Callable[[Schedule], Any]] = {
    "next_after": lambda schedule: schedule.next_after(NOON),
    "latest_at_or_before": lambda schedule: schedule.latest_at_or_before(NOON),
    "count_between": lambda schedule: schedule.count_between(NOON, NOON),
    "lost_between": lambda schedule: schedule.lost_between(NOON, NOON),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_calculation_that_fails_says_of_what_and_from_when(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = OSError("the rules of Europe/Berlin cannot be read")

    def broken(*_: object, **__: object) -> Any:
        raise cause

    QUESTIONS[question](SCHEDULE)
    monkeypatch.setattr(CronExpression, question, broken)
    with pytest.raises(CronCalculationError) as caught:
        QUESTIONS[question](SCHEDULE)
    assert caught.value.message == f"Failed to calculate next occurrence: {cause}"
    assert caught.value.details == {
        "expression": "0 * * * *",
        "currentTime": "2024-01-01T12:00:00+00:00",
        "cause": cause,
    }
    assert caught.value.__cause__ is cause
