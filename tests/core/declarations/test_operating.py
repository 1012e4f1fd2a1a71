"""Tasks that are spread: evenly enough, and the same everywhere and for good."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse

TEN_MINUTES = timedelta(minutes=10)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("form", ["task-{}", "{}", "reports.daily.{:03}", "größe {}"])
def test_p71_of_three_hundred_hourly_tasks_no_minute_has_more_than_45(form: str) -> None:
    offsets = [offset_of(form.format(number), TEN_MINUTES) for number in range(300)]
    crowds = Counter(offset // MINUTE for offset in offsets)
    assert set(crowds) == set(range(10))
    assert max(crowds.values()) <= 45


@pytest.mark.parametrize(
    ("name", "spread", "seconds"),
    [
        ("t", timedelta(minutes=30), 389),
        ("send-digests", TEN_MINUTES, 330),
        ("\ud800", TEN_MINUTES, 372),
        ("t", timedelta(milliseconds=999), 0),
    ],
)
def test_p71_an_offset_is_that_of_the_name_on_every_host_and_in_every_release(
    name: str, spread: timedelta, seconds: int
) -> None:
    assert offset_of(name, spread) == timedelta(seconds=seconds)


def test_p71_what_is_shown_beforehand_is_the_moved_instant() -> None:
    now = datetime(2026, 12, 1, 10, 30, tzinfo=UTC)
    offset = offset_of("t", TEN_MINUTES)
    schedule = Schedule(parse("@hourly", "ojs"), ZoneInfo("UTC"), offset=offset)
    full = datetime(2026, 12, 1, 11, tzinfo=UTC)
    assert next(schedule.upcoming(now)) == schedule.next_after(now) == full + offset
    assert schedule.latest_at_or_before(full + offset) == full + offset
