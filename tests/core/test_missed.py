"""Why occurrences did not run: the reason of each is the true one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.missed import with_causes
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.cron import parse

HOURLY = Schedule(parse("0 * * * *"), ZoneInfo("UTC"))


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2024, 1, 1, hour, minute, tzinfo=UTC)


STATE = TaskState(name="t", registered_at=at(9, 30))
MISSED = events.TaskSkipped(
    at=at(15, 30),
    task_name="t",
    reason="no_scheduler",
    scheduled_time=at(14),
    count=4,
    outcome="missed",
    scheduled_from=at(11),
)


def parts(led_since: datetime | None, *, is_broken: bool = False) -> list[tuple[str, int, int]]:
    found = with_causes((MISSED,), STATE, HOURLY, is_broken=is_broken, led_since=led_since)
    skips = [each for each in found if isinstance(each, events.TaskSkipped)]
    assert {each.outcome for each in skips} == {"missed"}
    assert sum(each.count for each in skips) == MISSED.count
    return [
        (each.reason, (each.scheduled_from or each.scheduled_time).hour, each.scheduled_time.hour)
        for each in skips
    ]


@pytest.mark.parametrize(
    ("led_since", "expected"),
    [
        (None, [("no_scheduler", 11, 14)]),
        (at(14, 30), [("no_scheduler", 11, 14)]),
        (at(12, 30), [("no_scheduler", 11, 12), ("held_up", 13, 14)]),
        (at(12), [("no_scheduler", 11, 11), ("held_up", 12, 14)]),
        (at(14), [("no_scheduler", 11, 13), ("held_up", 14, 14)]),
        (at(11), [("held_up", 11, 14)]),
        (at(10), [("held_up", 11, 14)]),
    ],
)
def test_a_range_is_split_where_the_leader_took_over(
    led_since: datetime | None, expected: list[tuple[str, int, int]]
) -> None:
    assert parts(led_since) == expected


def test_occurrences_of_a_broken_task_are_missed_for_that_reason() -> None:
    assert parts(at(12, 30), is_broken=True) == [("broken", 11, 14)]


def test_other_events_stay_as_they_are() -> None:
    late = replace(MISSED, reason="too_late")
    resumed = events.TaskResumed(at=at(15), task_name="t", author="", note="")
    told = (late, resumed)
    assert with_causes(told, STATE, HOURLY, is_broken=True, led_since=at(9)) == told
