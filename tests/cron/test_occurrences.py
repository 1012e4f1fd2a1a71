"""Which times an expression names, and the next and previous ones (cases NX and PV)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.cron import CronExpression, parse

from .oracle import MINUTE, SECOND, at, fields_of
from .strategies import RULES

ZONE = ZoneInfo("UTC")


def ojs(text: str) -> CronExpression:
    return parse(text, "ojs")


@pytest.mark.requirement("001 Time Provider and Granularity/2")
@pytest.mark.parametrize(
    ("dialect", "text", "local", "named"),
    [
        pytest.param("posix", "30 14 * * *", "2024-01-01T14:30:00", True, id="NX-01 on the minute"),
        pytest.param(
            "posix", "30 14 * * *", "2024-01-01T14:30:59", True, id="NX-01 within the minute"
        ),
        pytest.param(
            "posix", "30 14 * * *", "2024-01-01T14:31:00", False, id="NX-01 the next minute"
        ),
        pytest.param("posix", "0 0 1,15 * 1", "2024-01-01T00:00:00", True, id="NX-02 both"),
        pytest.param("posix", "0 0 1,15 * 1", "2024-01-02T00:00:00", False, id="NX-02 neither"),
        pytest.param("posix", "0 0 1,15 * 1", "2024-01-08T00:00:00", True, id="NX-02 the weekday"),
        pytest.param("posix", "0 0 1,15 * 1", "2024-01-15T00:00:00", True, id="NX-02 the day"),
        pytest.param("posix", "* * * * *", "0001-01-01T00:00:00", True, id="the first minute"),
        pytest.param("posix", "* * * * *", "9999-12-31T23:59:59", True, id="the last minute"),
        ("ojs", "30 0 9 * * *", "2024-01-01T09:00:30", True),
        ("ojs", "30 0 9 * * *", "2024-01-01T09:00:30.9", True),
        ("ojs", "30 0 9 * * *", "2024-01-01T09:00:00", False),
        ("ojs", "0 9 * * *", "2024-01-01T09:00:30", True),
        ("ojs", "0 9 L * *", "2024-01-31T09:00:00", True),
        ("ojs", "0 9 L * *", "2024-01-30T09:00:00", False),
        ("ojs", "@every 1m", "2024-01-31T09:00:00", False),
    ],
)
def test_matching(dialect: str, text: str, local: str, named: bool) -> None:
    assert parse(text, dialect).matches(datetime.fromisoformat(local)) is named


@pytest.mark.requirement("001 Time Provider and Granularity/4")
@pytest.mark.parametrize(
    ("text", "instant", "expected"),
    [
        pytest.param("0 * * * *", "2024-01-01T14:30", "2024-01-01T15:00", id="NX-03"),
        pytest.param("0 * * * *", "2024-01-01T14:00", "2024-01-01T15:00", id="NX-04 exact"),
        pytest.param("0 * * * *", "2024-01-01T14:00:00.001", "2024-01-01T15:00", id="NX-04 past"),
        pytest.param("* * * * *", "2025-01-01T00:00", "2025-01-01T00:01", id="NX-05"),
        pytest.param("45 * * * *", "2024-01-01T14:30", "2024-01-01T14:45", id="NX-06"),
        pytest.param("0 2 * * *", "2024-01-01T14:30", "2024-01-02T02:00", id="NX-07 later"),
        pytest.param("0 2 * * *", "2024-01-01T02:00", "2024-01-02T02:00", id="NX-07 exact"),
        pytest.param(
            "0,15,30,45 * * * *", "2025-01-14T10:15:00.001", "2025-01-14T10:30", id="NX-09"
        ),
        pytest.param("10,20,50 * * * *", "2024-01-01T10:50", "2024-01-01T11:10", id="NX-10"),
        pytest.param("0 8-17 * * *", "2024-01-01T17:01", "2024-01-02T08:00", id="NX-12"),
        pytest.param("45 23 * * *", "2024-01-01T23:45", "2024-01-02T23:45", id="NX-13"),
        pytest.param("0 0 1 * *", "2024-01-31T23:59", "2024-02-01T00:00", id="NX-14"),
        pytest.param("0 0 1 1 *", "2024-12-31T23:59:59.999", "2025-01-01T00:00", id="NX-15"),
        pytest.param("0 0 31 * *", "2025-04-01T00:00", "2025-05-31T00:00", id="NX-16"),
        pytest.param("0 0 29 2 *", "2025-02-01T00:00", "2028-02-29T00:00", id="NX-18"),
        pytest.param("0 0 1 4,7,10 *", "2025-10-01T00:00", "2026-04-01T00:00", id="NX-20"),
        pytest.param("23 0 1 3-5 *", "2025-05-01T00:23", "2026-03-01T00:23", id="NX-21"),
        pytest.param("0 0 * 4 *", "2025-04-30T23:59:59.999", "2026-04-01T00:00", id="NX-22"),
        pytest.param("0 9 1 * 1", "2025-01-01T08:59", "2025-01-01T09:00", id="NX-23 the day"),
        pytest.param("0 9 1 * 1", "2025-01-02T10:00", "2025-01-06T09:00", id="NX-23 the weekday"),
        pytest.param("0 12 3 * *", "2025-01-01T10:00", "2025-01-03T12:00", id="NX-25"),
        pytest.param("0 12 * * 1", "2025-01-01T10:00", "2025-01-06T12:00", id="NX-27 this week"),
        pytest.param("0 12 * * 1", "2025-01-06T12:00", "2025-01-13T12:00", id="NX-27 next week"),
        pytest.param("0 0 * * 0", "2025-01-05T00:00", "2025-01-12T00:00", id="NX-28"),
        pytest.param("0,15,30,45 8-17 20 * *", "2025-01-20T17:50", "2025-02-20T08:00", id="NX-29"),
        pytest.param("0 0 29 2 *", "1896-03-01T00:00", "1904-02-29T00:00", id="no leap year 1900"),
        pytest.param("0 0 31 1 *", "2024-02-01T00:00", "2025-01-31T00:00", id="one day a year"),
    ],
)
def test_next(text: str, instant: str, expected: str) -> None:
    assert parse(text).next_after(at(instant), ZONE) == at(expected)


@pytest.mark.requirement("001 Time Provider and Granularity/4")
@pytest.mark.parametrize(
    ("text", "instant", "expected"),
    [
        pytest.param("* * * * *", "2024-01-01T14:30", "2024-01-01T14:30", id="PV-01 exact"),
        pytest.param("0 * * * *", "2024-01-01T14:00:00.001", "2024-01-01T14:00", id="PV-01 past"),
        pytest.param("0 * * * *", "2024-01-01T14:00:15", "2024-01-01T14:00", id="PV-01 seconds"),
        pytest.param("0 * * * *", "2024-01-01T14:30", "2024-01-01T14:00", id="PV-02 on the hour"),
        pytest.param("45 * * * *", "2024-01-01T14:50", "2024-01-01T14:45", id="PV-02 at :45"),
        pytest.param(
            "0,15,30,45 * * * *", "2025-01-14T10:15:59.999", "2025-01-14T10:15", id="PV-03"
        ),
        pytest.param("0 8-17 * * *", "2025-01-15T07:59", "2025-01-14T17:00", id="PV-05"),
        pytest.param("0 0 29 2 *", "2024-03-01T00:00", "2024-02-29T00:00", id="PV-06"),
        pytest.param("0 12 * * 1", "2025-01-06T11:00", "2024-12-30T12:00", id="PV-08"),
        pytest.param("0 0 1 1 *", "2024-12-31T23:59:59.999", "2024-01-01T00:00", id="PV-09 end"),
        pytest.param("0 0 1 1 *", "2025-01-01T00:00:10", "2025-01-01T00:00", id="PV-09 start"),
        pytest.param("0 0 31 * *", "2025-06-01T00:00", "2025-05-31T00:00", id="PV-11"),
        pytest.param("0 0 29 2 *", "1904-02-28T00:00", "1896-02-29T00:00", id="no leap year 1900"),
    ],
)
def test_previous(text: str, instant: str, expected: str) -> None:
    assert parse(text).latest_at_or_before(at(instant), ZONE) == at(expected)


@pytest.mark.parametrize("start", ["2024-02-29T23:59:59.999", "2025-12-31T00:00"])
def test_pv_12_previous_is_found_by_stepping_back(start: str) -> None:
    for minute, hour, day in product("*0", "*0", "*1"):
        text = f"{minute} {hour} {day} * *"
        fields, moment = fields_of(text), at(start).replace(second=0, microsecond=0)
        while not fields.name(moment):
            moment -= MINUTE
        assert parse(text).latest_at_or_before(at(start), ZONE) == moment


def dates(text: str, first: str, last: str) -> list[str]:
    """List the dates that an expression names, with ``last`` left out."""
    cron, end = ojs(text), at(last)
    moment, found = at(first) - SECOND, []
    while (following := cron.next_after(moment, ZONE)) is not None and following < end:
        moment = following
        found.append(f"{moment:%m-%d}")
    back = cron.latest_at_or_before(end - SECOND, ZONE)
    assert back == moment or not found
    assert cron.count_between(at(first) - SECOND, end, ZONE) >= len(found)
    return found


@pytest.mark.requirement("001 Day-of-Month/Day-of-Week Semantics/1", "002 CRON-S01")
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
    ("text", "lasts"), [("* * * * *", 60), ("0 * * * * *", 60), ("5 * * * * *", 1)]
)
def test_a_named_time_lasts_as_long_as_the_finest_field(text: str, lasts: int) -> None:
    assert ojs(text).resolution == timedelta(seconds=lasts)


def test_answers_are_aware_and_in_utc() -> None:
    cron = parse("0 * * * *")
    asked = datetime.fromisoformat("2024-01-01T14:30+05:30")
    found = cron.next_after(asked, ZoneInfo("Asia/Kathmandu"))
    assert found is not None
    assert found.tzinfo is UTC
    assert found == at("2024-01-01T09:15")
    assert cron.next_after(asked, UTC) == at("2024-01-01T10:00")


@pytest.mark.parametrize("instant", [datetime(2024, 1, 1), None, date(2024, 1, 1), 0])
def test_an_instant_must_be_aware(instant: Any) -> None:
    cron = parse("0 * * * *")
    for ask in (cron.next_after, cron.latest_at_or_before):
        with pytest.raises(ValueError, match="aware"):
            ask(instant, ZONE)


def test_a_civil_minute_must_be_naive() -> None:
    with pytest.raises(ValueError, match="naive"):
        parse("0 * * * *").matches(at("2024-01-01T00:00"))


def test_unknown_rules_and_zones_are_refused() -> None:
    cron, instant = parse("0 * * * *"), at("2024-01-01T00:00")
    with pytest.raises(ValueError, match="gap must be"):
        cron.next_after(instant, ZONE, gap="later")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fold first or both"):
        cron.count_between(instant, instant, ZONE, fold="second")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ZoneInfo"):
        cron.next_after(instant, "UTC")  # type: ignore[arg-type]


FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "key", ["UTC", "America/New_York", "Pacific/Kiritimati", "Africa/Monrovia"]
)
@pytest.mark.parametrize("text", ["* * * * *", "0 0 29 2 *", "59 23 31 12 *", "30 2 * * 0"])
def test_at_the_limits_of_datetime_the_answer_is_none_or_right(key: str, text: str) -> None:
    cron, zone = parse(text), ZoneInfo(key)
    for seconds in (0, 60, 50_000, 200_000):
        late, early = LAST - timedelta(seconds=seconds), FIRST + timedelta(seconds=seconds)
        for gap, fold in RULES:
            after = cron.next_after(late, zone, gap=gap, fold=fold)
            until = cron.latest_at_or_before(early, zone, gap=gap, fold=fold)
            assert after is None or after > late
            assert until is None or until <= early
            following = cron.next_after(early, zone, gap=gap, fold=fold)
            previous = cron.latest_at_or_before(late, zone, gap=gap, fold=fold)
            assert following is not None and following > early
            assert previous is not None and previous <= late
    assert cron.next_after(LAST, zone) is None


@pytest.mark.parametrize(
    ("key", "expected"), [("UTC", FIRST), ("Asia/Tokyo", FIRST), ("America/New_York", None)]
)
def test_the_first_instant_has_a_local_minute_only_east_of_greenwich(
    key: str, expected: datetime | None
) -> None:
    cron, zone = parse("* * * * *"), ZoneInfo(key)
    found = cron.latest_at_or_before(FIRST + timedelta(seconds=59), zone)
    assert (found is None) is (expected is None)


def test_every_minute_of_the_calendar_can_be_counted() -> None:
    assert parse("* * * * *").count_between(FIRST, LAST, ZONE) == 3_652_059 * 1440 - 1
