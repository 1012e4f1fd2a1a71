"""When intervals such as ``@every 30m`` are due: counted from an anchor, not by the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.cron import CronExpression, parse

from .oracle import at
from .strategies import RULES

ZONE = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
LOS_ANGELES = ZoneInfo("America/Los_Angeles")


def every(length: str) -> CronExpression:
    return parse(f"@every {length}", "ojs")


def test_p03_an_interval_does_not_heed_the_clock_on_the_wall() -> None:
    cron, anchor = every("1h"), at("2026-11-01T04:00")
    moment, found = anchor, []
    while (moment := cron.next_after(moment, NEW_YORK, anchor=anchor) or anchor) <= at(
        "2026-11-01T08:00"
    ):
        found.append(moment)
    assert found == [at(f"2026-11-01T0{hour}:00") for hour in (5, 6, 7, 8)]
    assert cron.lost_between(anchor, found[-1], NEW_YORK) == ()


def test_p05_an_interval_anchored_in_a_fold_keeps_its_distance() -> None:
    cron, anchor, end = every("10m"), at("2026-11-01T08:18"), at("2026-11-01T11:00")
    found = [anchor]
    while (following := cron.next_after(found[-1], LOS_ANGELES, anchor=anchor)) and following < end:
        found.append(following)
    assert len(found) - 1 == 16
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=10)}
    assert cron.count_between(anchor, end, LOS_ANGELES, anchor=anchor) == 16


@pytest.mark.parametrize(
    ("instant", "previous", "following"),
    [
        pytest.param("2024-01-01T09:00", None, "2024-01-01T10:37", id="before the anchor"),
        pytest.param("2024-01-01T10:07", None, "2024-01-01T10:37", id="not at the anchor"),
        pytest.param("2024-01-01T10:36:59.9", None, "2024-01-01T10:37", id="just before"),
        pytest.param("2024-01-01T10:37", "2024-01-01T10:37", "2024-01-01T11:07", id="exact"),
        pytest.param("2024-01-01T12:00", "2024-01-01T11:37", "2024-01-01T12:07", id="between"),
        pytest.param("2024-03-01T00:00", "2024-02-29T23:37", "2024-03-01T00:07", id="long after"),
    ],
)
def test_an_interval_is_counted_from_its_anchor(
    instant: str, previous: str | None, following: str
) -> None:
    cron, anchor = every("30m"), at("2024-01-01T10:07")
    for gap, fold in RULES:
        found = cron.next_after(at(instant), NEW_YORK, anchor=anchor, gap=gap, fold=fold)
        assert found == at(following)
    latest = cron.latest_at_or_before(at(instant), NEW_YORK, anchor=anchor)
    assert latest == (None if previous is None else at(previous))


@pytest.mark.parametrize(
    ("after", "until", "count"),
    [
        ("2024-01-01T09:00", "2024-01-01T10:00", 0),
        ("2024-01-01T09:00", "2024-01-01T11:00", 2),
        ("2024-01-01T10:30", "2024-01-01T11:00", 1),
        ("2024-01-01T11:00", "2024-01-01T10:30", 0),
        ("2024-01-01T11:00", "2024-01-02T11:00", 48),
    ],
)
def test_counting_intervals(after: str, until: str, count: int) -> None:
    counted = every("30m").count_between(at(after), at(until), ZONE, anchor=at("2024-01-01T10:00"))
    assert counted == count


def test_an_interval_keeps_the_fraction_of_its_anchor() -> None:
    anchor = at("2024-01-01T10:00:00.123456")
    found = every("1500ms").next_after(anchor, ZONE, anchor=anchor)
    assert found == at("2024-01-01T10:00:01.623456")


def test_an_interval_beyond_the_end_of_time_is_none() -> None:
    late = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert every("1h").next_after(late, ZONE, anchor=late) is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "an anchor is needed"),
        ({"anchor": datetime(2024, 1, 1)}, "anchor must be an aware"),
        ({"anchor": at("2024-01-01"), "gap": "wait"}, "gap must be"),
    ],
)
def test_an_interval_is_asked_rightly(arguments: dict[str, Any], told: str) -> None:
    cron = every("1h")
    for ask in (cron.next_after, cron.latest_at_or_before):
        with pytest.raises(ValueError, match=told):
            ask(at("2024-01-01"), ZONE, **arguments)
    with pytest.raises(ValueError, match="instant must be an aware"):
        cron.next_after(datetime(2024, 1, 1), ZONE, anchor=at("2024-01-01"))
