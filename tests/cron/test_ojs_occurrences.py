"""When expressions of the ojs dialect are due: dates, seconds, intervals, changes of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.cron import CronExpression, Gap, Lost, parse

from .oracle import at
from .strategies import RULES

ZONE = ZoneInfo("UTC")
NEW_YORK = ZoneInfo("America/New_York")
LOS_ANGELES = ZoneInfo("America/Los_Angeles")


def ojs(text: str) -> CronExpression:
    return parse(text, "ojs")


def dates(text: str, first: str, last: str) -> list[str]:
    """List the dates that an expression names, with ``last`` left out."""
    cron, end = ojs(text), at(last)
    moment, found = at(first) - timedelta(seconds=1), []
    while (following := cron.next_after(moment, ZONE)) is not None and following < end:
        moment = following
        found.append(f"{moment:%m-%d}")
    back = cron.latest_at_or_before(end - timedelta(seconds=1), ZONE)
    assert back == moment or not found
    assert cron.count_between(at(first) - timedelta(seconds=1), end, ZONE) >= len(found)
    return found


@pytest.mark.requirement("002 CRON-S01")
@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        pytest.param("0 0 L * *", "2027-02-01", "2027-03-01", "02-28", id="P83 L"),
        pytest.param("0 0 L * *", "2028-02-01", "2028-03-01", "02-29", id="P83 L in a leap year"),
        pytest.param(
            "0 4 * */2 2L", "2027-01-01", "2028-01-01", "01-26 03-30 05-25 07-27 09-28 11-30",
            id="P83 the last Tuesday",
        ),
        pytest.param("0 9 1W * *", "2027-05-01", "2027-06-01", "05-03", id="P83 1W on a Saturday"),
        pytest.param("0 9 31W * *", "2027-01-01", "2027-02-01", "01-29", id="P83 31W on a Sunday"),
        pytest.param("0 9 30W * *", "2027-02-01", "2027-03-01", "", id="nW beyond the month"),
        pytest.param("0 9 15W * *", "2027-05-01", "2027-06-01", "05-14", id="15W on a Saturday"),
        pytest.param("0 9 15W * *", "2027-08-01", "2027-09-01", "08-16", id="15W on a Sunday"),
        pytest.param("0 9 15W * *", "2027-09-01", "2027-10-01", "09-15", id="15W on a Wednesday"),
        pytest.param("0 9 LW * *", "2027-01-01", "2027-03-01", "01-29 02-26", id="LW"),
        pytest.param(
            "0 0 * * 5#5", "2027-01-01", "2028-01-01", "01-29 04-30 07-30 10-29 12-31",
            id="P83 a fifth Friday",
        ),
        pytest.param("0 0 * * 5#3", "2027-02-01", "2027-03-01", "02-19", id="a third Friday"),
        pytest.param(
            "0 0 * * 5#3,1L", "2027-02-01", "2027-03-01", "02-19 02-22", id="a list of rules",
        ),
        pytest.param(
            "0 0 1,15W,L * *", "2027-08-01", "2027-09-01", "08-01 08-16 08-31",
            id="a list of a day and rules",
        ),
        pytest.param(
            "0 0 31 2 0", "2027-02-01", "2027-03-01", "02-07 02-14 02-21 02-28", id="P84",
        ),
        pytest.param(
            "0 0 1,15 * 5", "2027-02-01", "2027-03-01", "02-01 02-05 02-12 02-15 02-19 02-26",
            id="P84 either day",
        ),
        pytest.param(
            "0 0 L * 1#1", "2027-02-01", "2027-03-01", "02-01 02-28", id="either of two rules",
        ),
        pytest.param(
            "0 5 1-7 * 1", "2027-02-01", "2027-03-01",
            "02-01 02-02 02-03 02-04 02-05 02-06 02-07 02-08 02-15 02-22", id="P72 days or Mondays",
        ),
        pytest.param("0 5 * * 1#1", "2027-02-01", "2027-03-01", "02-01", id="P72 first Monday"),
        pytest.param(
            "0 0 */2 * 1-5", "2027-01-01", "2027-02-01",
            "01-01 01-03 01-04 01-05 01-06 01-07 01-08 01-09 01-11 01-12 01-13 01-14 01-15 "
            "01-17 01-18 01-19 01-20 01-21 01-22 01-23 01-25 01-26 01-27 01-28 01-29 01-31",
            id="P72 a stepped day is restricted: 26 days",
        ),
        pytest.param(
            "0 0 * * */3", "2027-02-01", "2027-02-11", "02-03 02-06 02-07 02-10", id="P88",
        ),
        pytest.param("0 0 29 2 *", "2027-01-01", "2029-01-01", "02-29", id="P86 leap years"),
        pytest.param("0 0 * 2 5#5", "2027-01-01", "2060-01-01", "02-29", id="one of 28 years"),
        pytest.param("@monthly", "2027-01-01", "2027-03-01", "01-01 02-01", id="a macro"),
        pytest.param("@weekly", "2027-02-01", "2027-02-15", "02-07 02-14", id="a week of Sundays"),
    ],
)  # fmt: skip
def test_dates(text: str, first: str, last: str, expected: str) -> None:
    assert dates(text, first, last) == expected.split()


def test_a_fifth_thursday_in_february_is_found_across_2100() -> None:
    cron = ojs("0 0 * 2 4#5")
    assert cron.next_after(at("2080-03-01"), ZONE) == at("2120-02-29")
    assert cron.latest_at_or_before(at("2120-02-01"), ZONE) == at("2080-02-29")


@pytest.mark.parametrize(
    ("text", "instant", "previous", "following"),
    [
        pytest.param(
            "*/20 * * * * *", "2024-01-01T10:00:20", "10:00:20", "10:00:40", id="within a minute"
        ),
        pytest.param(
            "*/20 * * * * *", "2024-01-01T10:00:40.5", "10:00:40", "10:01:00", id="between seconds"
        ),
        pytest.param(
            "15,45 30 10 * * *", "2024-01-01T10:30:20", "10:30:15", "10:30:45", id="one minute"
        ),
        pytest.param("59 59 23 * * *", "2024-01-01T23:59:58.9", None, "23:59:59", id="at the end"),
        pytest.param("* * * * * *", "2024-01-01T10:00:00", "10:00:00", "10:00:01", id="each"),
        pytest.param("30 * * * * *", "2024-01-01T10:00:10", "09:59:30", "10:00:30", id="CRON-08"),
        pytest.param("* * * * *", "2024-01-01T10:00:10", "10:00:00", "10:01:00", id="second 0"),
    ],
)
def test_seconds(text: str, instant: str, previous: str | None, following: str) -> None:
    cron = ojs(text)
    assert cron.next_after(at(instant), ZONE) == at(f"2024-01-01T{following}")
    expected = "2023-12-31T23:59:59" if previous is None else f"2024-01-01T{previous}"
    assert cron.latest_at_or_before(at(instant), ZONE) == at(expected)


@pytest.mark.parametrize(
    ("text", "local", "named"),
    [
        ("30 0 9 * * *", "2024-01-01T09:00:30", True),
        ("30 0 9 * * *", "2024-01-01T09:00:30.9", True),
        ("30 0 9 * * *", "2024-01-01T09:00:00", False),
        ("0 9 * * *", "2024-01-01T09:00:30", True),
        ("0 9 L * *", "2024-01-31T09:00:00", True),
        ("0 9 L * *", "2024-01-30T09:00:00", False),
        ("@every 1m", "2024-01-31T09:00:00", False),
    ],
)
def test_matching(text: str, local: str, named: bool) -> None:
    assert ojs(text).matches(datetime.fromisoformat(local)) is named


@pytest.mark.parametrize(
    ("text", "lasts"), [("* * * * *", 60), ("0 * * * * *", 60), ("5 * * * * *", 1)]
)
def test_a_named_time_lasts_as_long_as_the_finest_field(text: str, lasts: int) -> None:
    assert ojs(text).resolution == timedelta(seconds=lasts)


def test_seconds_in_a_gap_are_lost_and_told_in_one() -> None:
    cron, before, after = ojs("*/30 30 2 * * *"), at("2024-03-10T06:59"), at("2024-03-10T07:00")
    assert cron.next_after(before, NEW_YORK) == at("2024-03-11T06:30:00")
    assert cron.next_after(before, NEW_YORK, gap="shift") == after
    assert cron.next_after(after, NEW_YORK, gap="shift") == at("2024-03-11T06:30:00")
    assert cron.lost_between(before, after, NEW_YORK) == (
        Lost(resumes_at=after, civil=datetime(2024, 3, 10, 2, 30), count=2),
    )


@pytest.mark.parametrize(("fold", "count"), [("first", 60), ("both", 120)])
def test_seconds_in_a_fold(fold: Any, count: int) -> None:
    cron, start, end = ojs("30 * * * * *"), at("2024-11-03T05:00"), at("2024-11-03T07:00")
    assert cron.count_between(start, end, NEW_YORK, fold=fold) == count


def test_a_second_shifted_by_a_gap_within_a_minute_comes_before_the_next_one() -> None:
    # Until 1972 Monrovia was 44 minutes and 30 seconds behind; the clock then skipped them.
    monrovia, jump = ZoneInfo("Africa/Monrovia"), at("1972-01-07T00:44:30")
    cron = ojs("* 10,44 0 7 1 *")
    assert cron.next_after(jump - timedelta(seconds=1), monrovia, gap="shift") == jump
    assert cron.next_after(jump, monrovia, gap="shift") == jump + timedelta(seconds=1)
    assert cron.latest_at_or_before(jump, monrovia, gap="shift") == jump


@pytest.mark.parametrize("gap", ["skip", "shift"])
def test_the_last_day_of_a_month_that_a_zone_never_had(gap: Gap) -> None:
    # Apia left out 30 December 2011; the last working day of that month is the 30th.
    apia, cron = ZoneInfo("Pacific/Apia"), ojs("0 12 LW 12 *")
    found = cron.next_after(at("2011-12-01"), apia, gap=gap)
    expected = {"skip": "2012-12-30T22:00", "shift": "2011-12-30T10:00"}
    assert found == at(expected[gap])


def test_p03_an_interval_does_not_heed_the_clock_on_the_wall() -> None:
    cron, anchor = ojs("@every 1h"), at("2026-11-01T04:00")
    moment, found = anchor, []
    while (moment := cron.next_after(moment, NEW_YORK, anchor=anchor) or anchor) <= at(
        "2026-11-01T08:00"
    ):
        found.append(moment)
    assert found == [at(f"2026-11-01T0{hour}:00") for hour in (5, 6, 7, 8)]
    assert cron.lost_between(anchor, found[-1], NEW_YORK) == ()


def test_p05_an_interval_anchored_in_a_fold_keeps_its_distance() -> None:
    cron, anchor, end = ojs("@every 10m"), at("2026-11-01T08:18"), at("2026-11-01T11:00")
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
    cron, anchor = ojs("@every 30m"), at("2024-01-01T10:07")
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
    counted = ojs("@every 30m").count_between(
        at(after), at(until), ZONE, anchor=at("2024-01-01T10:00")
    )
    assert counted == count


def test_an_interval_keeps_the_fraction_of_its_anchor() -> None:
    anchor = at("2024-01-01T10:00:00.123456")
    found = ojs("@every 1500ms").next_after(anchor, ZONE, anchor=anchor)
    assert found == at("2024-01-01T10:00:01.623456")


def test_an_interval_beyond_the_end_of_time_is_none() -> None:
    late = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    assert ojs("@every 1h").next_after(late, ZONE, anchor=late) is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "an anchor is needed"),
        ({"anchor": datetime(2024, 1, 1)}, "anchor must be an aware"),
        ({"anchor": at("2024-01-01"), "gap": "wait"}, "gap must be"),
    ],
)
def test_an_interval_is_asked_rightly(arguments: dict[str, Any], told: str) -> None:
    cron = ojs("@every 1h")
    for ask in (cron.next_after, cron.latest_at_or_before):
        with pytest.raises(ValueError, match=told):
            ask(at("2024-01-01"), ZONE, **arguments)
    with pytest.raises(ValueError, match="instant must be an aware"):
        cron.next_after(datetime(2024, 1, 1), ZONE, anchor=at("2024-01-01"))
