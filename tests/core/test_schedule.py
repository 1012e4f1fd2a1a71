"""A cron expression bound to its zone, and spread by an offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import CronExpression, parse
from django_declarative_cron.exceptions import CronCalculationError

from ..cron.strategies import RULES, change_instants, random_text

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SCHEDULE = Schedule(parse("0 * * * *"), ZoneInfo("Europe/Berlin"))

QUESTIONS: dict[str, Callable[[Schedule], Any]] = {
    "next_after": lambda schedule: schedule.next_after(NOON),
    "latest_at_or_before": lambda schedule: schedule.latest_at_or_before(NOON),
    "count_between": lambda schedule: schedule.count_between(NOON, NOON),
    "lost_between": lambda schedule: schedule.lost_between(NOON, NOON),
}


@pytest.mark.requirement("001 Error Taxonomy/12")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_calculation_that_fails_says_of_what_and_from_when(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause = OSError("the rules of Europe/Berlin cannot be read")

    def broken(*_: object, **__: object) -> Any:
        raise cause

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


def _by_search(schedule: Schedule, instant: datetime) -> datetime | None:
    latest = schedule.latest_at_or_before(instant)
    lasts = schedule.expression.resolution
    return latest if latest is not None and instant - latest < lasts else None


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_what_is_in_a_minute_is_what_a_search_finds(zone: str) -> None:
    # Around each change of the clocks, at odd seconds in old times, and far from any.
    random, place = Random(zone), ZoneInfo(zone)
    found = []
    for change in [
        NOON,
        *change_instants(zone, 1880, 1920)[:3],
        *change_instants(zone, 2024, 2025),
    ]:
        for _ in range(60):
            at = change + timedelta(seconds=random.randint(-4000, 4000), microseconds=7)
            fields, rules = random_text(random).split(), random.choice(RULES)
            for text in (" ".join(fields), f"*/7 * {' '.join(fields[1:])}"):
                schedule = Schedule(parse(text, "ojs"), place, *rules)
                found.append(schedule.in_minute_of(at))
                assert found[-1] == _by_search(schedule, at), (text, at, rules)
    assert len([each for each in found if each is not None]) > 10


@pytest.mark.parametrize(
    ("zone", "text", "resumed"),
    [
        ("America/New_York", "30 2 * * *", "2026-03-08T07:00:00+00:00"),
        ("Australia/Lord_Howe", "5 2 * * *", "2026-10-03T15:30:00+00:00"),
        # The clocks leapt at an odd second, and the first whole minute came later.
        ("Asia/Kolkata", "0 0 * * *", "1905-12-31T18:39:00+00:00"),
    ],
)
def test_what_a_gap_has_moved_is_in_the_minute_it_was_moved_to(
    zone: str, text: str, resumed: str
) -> None:
    schedule = Schedule(parse(text), ZoneInfo(zone), gap="shift")
    moved = datetime.fromisoformat(resumed)
    found = schedule.in_minute_of(moved + timedelta(seconds=59))
    assert found == _by_search(schedule, moved + timedelta(seconds=59)) == moved


@pytest.mark.parametrize("seed", range(5))
def test_p11_what_is_shown_beforehand_is_what_the_engine_asks_for(seed: int) -> None:
    random = Random(seed)
    zones = ("America/New_York", "America/Santiago", "Europe/Berlin", "Asia/Kathmandu")
    for _ in range(10):
        zone = random.choice(zones)
        start = random.choice(change_instants(zone, 1985, 2030)) - timedelta(days=2)
        rules, cron = random.choice(RULES), parse(random_text(random))
        schedule = Schedule(cron, ZoneInfo(zone), *rules)
        shown, walked = islice(schedule.upcoming(start), 50), start
        for instant in shown:
            (gap, fold), before = rules, walked
            asked = cron.next_after(before, schedule.zone, gap=gap, fold=fold)
            assert asked is not None
            assert (instant, schedule.next_after(before)) == (asked, asked), (cron, zone, start)
            walked = asked


# --- spread: evenly enough, and the same everywhere and for good ---


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
