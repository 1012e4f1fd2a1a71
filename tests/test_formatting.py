"""Instants, durations and counts have one written form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.formatting import (
    format_civil,
    format_count,
    format_duration,
    format_elapsed,
    format_instant,
    format_relative,
    iso8601,
)

pytestmark = pytest.mark.pure

NOON = datetime(2024, 7, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (NOON.astimezone(BERLIN), "2024-07-01T12:00:00Z"),
        (NOON + timedelta(microseconds=999), "2024-07-01T12:00:00Z"),
        (NOON + timedelta(microseconds=1999), "2024-07-01T12:00:00.001Z"),
        (None, None),
    ],
)
def test_iso8601(instant: datetime | None, text: str | None) -> None:
    assert iso8601(instant) == text


def test_an_instant_names_its_zone() -> None:
    assert format_instant(NOON, BERLIN) == "2024-07-01 14:00 CEST"
    assert format_instant(NOON + timedelta(seconds=5), UTC) == "2024-07-01 12:00:05 UTC"


def test_a_civil_time_names_its_zone_only_where_it_is_shown_twice() -> None:
    assert format_civil(NOON + timedelta(seconds=5), BERLIN) == "2024-07-01 14:00:05"
    for hour, text in ((0, "2024-10-27 02:30 CEST"), (1, "2024-10-27 02:30 CET")):
        assert format_civil(datetime(2024, 10, 27, hour, 30, tzinfo=UTC), BERLIN) == text


FIRST, LAST = (each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max))


@pytest.mark.parametrize(
    ("instant", "zone", "text"),
    [
        (LAST, "Pacific/Kiritimati", "9999-12-31 23:59:59 UTC"),
        (LAST, "America/New_York", "9999-12-31 18:59:59 EST"),
        (FIRST, "America/New_York", "0001-01-01 00:00 UTC"),
        (FIRST, "Etc/GMT-14", "0001-01-01 14:00 +14"),
    ],
)
def test_an_instant_that_a_zone_cannot_show_is_shown_in_utc(
    instant: datetime, zone: str, text: str
) -> None:
    assert format_instant(instant, ZoneInfo(zone)) == text
    civil = text if text.endswith("UTC") else text.rpartition(" ")[0]
    assert format_civil(instant, ZoneInfo(zone)) == civil


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (0.4, "now"),
        (59, "in 59 s"),
        (60, "in 1 min"),
        (3599, "in 59 min"),
        (3600, "in 1 h"),
        (86_400, "in 1 d"),
        (86_400 * 400, "in 400 d"),
        (-1.9, "1 s ago"),
        (-86_399, "23 h ago"),
    ],
)
def test_a_distance_has_its_largest_unit(seconds: float, text: str) -> None:
    assert format_relative(NOON + timedelta(seconds=seconds), NOON) == text


def test_a_distance_is_elapsed_time() -> None:
    before = datetime(2024, 10, 27, 0, 30, tzinfo=UTC).astimezone(BERLIN)
    after = datetime(2024, 10, 27, 4, 30, tzinfo=UTC).astimezone(BERLIN)
    assert format_relative(after, before) == "in 4 h"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0.0004, "0 s"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (1.26, "1.2 s"),
        (59.99, "59.9 s"),
        (60, "1 min"),
        (3725, "1 h 2 min"),
        (86_400 + 59, "1 d"),
        (timedelta(days=2, hours=3, minutes=4), "2 d 3 h"),
    ],
)
def test_durations(seconds: timedelta | float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("seconds", [-1, 0, 0.0004, 0.000_999])
def test_a_measured_duration_is_never_nothing(seconds: float) -> None:
    assert format_elapsed(seconds) == format_elapsed(timedelta(seconds=seconds)) == "<1 ms"
    assert format_elapsed(seconds, translate=str.upper) == "<1 MS"
    assert format_elapsed(0.001) == "1 ms"


def test_units_are_translated() -> None:
    assert format_duration(3725, units=1, translate=str.upper) == "1 H"


def test_counts() -> None:
    assert [format_count(n, "task") for n in (0, 1, 1234)] == ["0 tasks", "1 task", "1,234 tasks"]
