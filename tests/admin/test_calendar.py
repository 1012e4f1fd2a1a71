"""What a month counts of spread tasks is what each of its days shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.admin import calendar
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse
from django_declarative_cron.store.queries import Shape

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
DAYS = [date(2026, 3, day) for day in range(25, 32)]
OFFSETS = [timedelta(seconds=n) for n in (0, 1, 59, 60, 600, 600, 3599)]


def shapes(cron: str, since: datetime = LONG_AGO, zone: str = "Europe/Berlin") -> list[Shape]:
    plain = Schedule(parse(cron), ZoneInfo(zone))
    return [Shape(replace(plain, offset=each), since, 1) for each in OFFSETS]


@pytest.mark.parametrize(
    "cron", ["59 23 * * *", "0 * * * *", "0,20,40,53 * * * *", "30 12 * * 1", "0 0 * * *"]
)
@pytest.mark.parametrize(
    "since", [LONG_AGO, datetime(2026, 3, 27, 12, 0, 30, tzinfo=UTC)], ids=["before", "within"]
)
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kathmandu"])
def test_a_month_counts_where_a_spread_moves_it(cron: str, since: datetime, zone: str) -> None:
    berlin, declared = ZoneInfo("Europe/Berlin"), shapes(cron, since, zone)
    expected: Counter[date] = Counter()
    for shape in declared:
        for day in DAYS:
            begin, end = calendar.bounds(day, berlin)
            at = shape.schedule.next_after(max(begin, since) - timedelta(microseconds=1))
            while at is not None and at < end:
                expected[day] += 1
                at = shape.schedule.next_after(at)
    assert calendar._planned(DAYS, berlin, declared) == expected


def test_what_moves_over_no_edge_is_counted_once() -> None:
    edges = [calendar.bounds(day, ZoneInfo("Europe/Berlin"))[0] for day in DAYS]
    merged = list(calendar._merged(shapes("0 12 * * *"), edges))
    assert [shape.number for shape in merged] == [1, 6]
    assert len(list(calendar._merged(shapes("59 23 * * *"), edges))) == 6
