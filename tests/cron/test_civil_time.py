"""Where the wall clock jumps or repeats (cases DS, and what users reported elsewhere)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.cron import Fold, Gap, Lost, parse

from .oracle import at

NEW_YORK, LOS_ANGELES, DENVER, SANTIAGO, SAO_PAULO = (
    ZoneInfo(f"America/{city}")
    for city in ("New_York", "Los_Angeles", "Denver", "Santiago", "Sao_Paulo")
)
BERLIN, PRAGUE = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Prague")
APIA, LORD_HOWE = ZoneInfo("Pacific/Apia"), ZoneInfo("Australia/Lord_Howe")
BLANTYRE, KATHMANDU = ZoneInfo("Africa/Blantyre"), ZoneInfo("Asia/Kathmandu")
MONROVIA = ZoneInfo("Africa/Monrovia")


def fires(text: str, key: str, start: str, end: str, *, fold: Fold = "first") -> list[datetime]:
    """List the occurrences after ``start`` and not after ``end``."""
    cron, zone, moment, found = parse(text), ZoneInfo(key), at(start), []
    while (moment := cron.next_after(moment, zone, fold=fold) or at(end)) < at(end):
        found.append(moment)
    return [*found, moment] if cron.matches(moment.astimezone(zone).replace(tzinfo=None)) else found


@pytest.mark.requirement(
    "001 Timely Behavior/2",
    "001 Timely Behavior/4",
    "001 Timely Behavior/7",
    "001 Timely Behavior/9",
)
@pytest.mark.parametrize(
    ("text", "zone", "instant", "expected"),
    [
        pytest.param("30 2 * * *", NEW_YORK, "2024-03-10T06:00", "2024-03-11T06:30",
                     id="DS-01 a lost minute waits for the next day"),
        pytest.param("0 * * * *", NEW_YORK, "2024-03-10T06:00", "2024-03-10T07:00",
                     id="DS-03 hourly goes on at the end of the gap"),
        pytest.param("* * * * *", NEW_YORK, "2024-03-10T06:59", "2024-03-10T07:00",
                     id="DS-03 minutely goes on at the end of the gap"),
        pytest.param("0 3 * * *", NEW_YORK, "2024-03-10T06:59:30", "2024-03-10T07:00",
                     id="DS-03 the first minute after the gap exists"),
        pytest.param("30 2 10 3 *", NEW_YORK, "2024-03-09T12:00", "2025-03-10T06:30",
                     id="DS-05 a lost yearly minute waits for the next year"),
        pytest.param("30 1 * * *", NEW_YORK, "2024-11-03T04:00", "2024-11-03T05:30",
                     id="DS-06 the first pass"),
        pytest.param("30 1 * * *", NEW_YORK, "2024-11-03T05:30", "2024-11-04T06:30",
                     id="DS-06 not the second pass"),
        pytest.param("30 1 * * *", NEW_YORK, "2024-11-03T06:00", "2024-11-04T06:30",
                     id="DS-06 asked in the second pass"),
        pytest.param("0 * * * *", NEW_YORK, "2024-11-03T05:00", "2024-11-03T07:00",
                     id="DS-07 hourly skips the second pass"),
        pytest.param("* * * * *", NEW_YORK, "2024-11-03T05:59", "2024-11-03T07:00",
                     id="DS-07 minutely skips the second pass"),
        pytest.param("* * * * *", NEW_YORK, "2024-11-03T06:30", "2024-11-03T07:00",
                     id="DS-07 asked in the second pass"),
        pytest.param("15,45 * * * *", LORD_HOWE, "2024-04-06T14:40", "2024-04-06T14:45",
                     id="DS-16 half an hour, first pass"),
        pytest.param("45 1 * * *", LORD_HOWE, "2024-04-06T14:50", "2024-04-07T15:15",
                     id="DS-16 half an hour, second pass"),
        pytest.param("0 0 * * *", SAO_PAULO, "2018-11-03T12:00", "2018-11-05T02:00",
                     id="DS-18 a midnight that does not exist"),
        pytest.param("0 0 * * *", KATHMANDU, "2024-01-01T00:00", "2024-01-01T18:15",
                     id="DS-20 a quarter of an hour"),
        pytest.param("0 12 30 12 *", APIA, "2011-12-01T00:00", "2012-12-29T22:00",
                     id="a day that does not exist"),
        pytest.param("0 12 * * *", APIA, "2011-12-29T22:00", "2011-12-30T22:00",
                     id="the day after a day that does not exist"),
        pytest.param("0 7 * * *", LOS_ANGELES, "2026-01-15T10:00", "2026-01-15T15:00",
                     id="P12 hours behind UTC, on the same day"),
        pytest.param("0 8 * * 1-5", BLANTYRE, "2026-11-30T12:00", "2026-12-01T06:00", id="P13"),
        pytest.param("10 3 * * 0", PRAGUE, "2026-10-19T10:00", "2026-10-25T02:10",
                     id="P10 on the day of the change"),
        pytest.param("10 3 * * 0", PRAGUE, "2026-10-25T02:10", "2026-11-01T02:10",
                     id="P10 the week after"),
        pytest.param("0 12 * * 0", BERLIN, "2027-03-25T11:00", "2027-03-28T10:00",
                     id="P11 a day of 23 hours"),
    ],
)  # fmt: skip
def test_next(text: str, zone: ZoneInfo, instant: str, expected: str) -> None:
    assert parse(text).next_after(at(instant), zone) == at(expected)


@pytest.mark.parametrize(
    ("text", "zone", "instant", "expected"),
    [
        pytest.param("10 3 * * 0", PRAGUE, "2026-10-19T10:00", "2026-10-18T01:10", id="P10"),
        pytest.param("0 1 * * *", DENVER, "2027-03-15T06:59", "2027-03-14T08:00",
                     id="P17 23 hours before the next"),
        pytest.param("* * * * *", NEW_YORK, "2024-11-03T06:30", "2024-11-03T05:59",
                     id="in the second pass the last of the first"),
        pytest.param("30 1 * * *", NEW_YORK, "2024-11-03T06:10", "2024-11-03T05:30",
                     id="in the second pass, before the minute comes again"),
        pytest.param("30 1 * * *", NEW_YORK, "2024-11-03T05:10", "2024-11-02T05:30",
                     id="in the first pass, before the minute"),
        pytest.param("30 2 * * *", NEW_YORK, "2024-03-10T12:00", "2024-03-09T07:30",
                     id="a lost minute is no occurrence"),
        pytest.param("0 12 * * *", APIA, "2011-12-30T21:00", "2011-12-29T22:00",
                     id="a day that does not exist"),
    ],
)  # fmt: skip
def test_previous(text: str, zone: ZoneInfo, instant: str, expected: str) -> None:
    assert parse(text).latest_at_or_before(at(instant), zone) == at(expected)


@pytest.mark.parametrize("start", ["2027-03-13T00:00", "2027-03-14T09:59", "2027-03-14T10:01"])
def test_p01_the_day_of_the_change_has_its_own_offset(start: str) -> None:
    expected = [at("2027-03-13T22:00"), at("2027-03-14T21:00"), at("2027-03-15T21:00")]
    found = fires("0 14 * * *", "America/Los_Angeles", start, "2027-03-15T21:00")
    assert found == [moment for moment in expected if moment > at(start)]


@pytest.mark.requirement("001 Timely Behavior/8")
@pytest.mark.parametrize(("fold", "count"), [("first", 60), ("both", 120)])
def test_p02_minutely_through_the_fold(fold: Fold, count: int) -> None:
    start, end = "2026-11-01T07:59", "2026-11-01T09:59"
    found = fires("* * * * *", "America/Los_Angeles", start, "2026-11-01T10:00", fold=fold)[:-1]
    assert found == [at("2026-11-01T08:00") + timedelta(minutes=each) for each in range(count)]
    counted = parse("* * * * *").count_between(at(start), at(end), LOS_ANGELES, fold=fold)
    assert counted == count


@pytest.mark.requirement("001 Timely Behavior/8")
@pytest.mark.parametrize(("fold", "hours"), [("first", [4, 5, 7]), ("both", [4, 5, 6, 7])])
def test_p03_hourly_through_the_fold(fold: Fold, hours: list[int]) -> None:
    found = fires(
        "0 * * * *", "America/New_York", "2026-11-01T03:00", "2026-11-01T07:00", fold=fold
    )
    assert found == [at(f"2026-11-01T{hour:02}:00") for hour in hours]


@pytest.mark.requirement("001 Timely Behavior/5")
@pytest.mark.parametrize("restart", ["05:30", "05:45", "06:15", "06:29", "06:30", "06:45"])
def test_p04_daily_in_the_fold_happens_once_whenever_one_asks(restart: str) -> None:
    cron, asked = parse("30 1 * * *"), at(f"2026-11-01T{restart}")
    assert cron.latest_at_or_before(asked, NEW_YORK) == at("2026-11-01T05:30")
    assert cron.next_after(asked, NEW_YORK) == at("2026-11-02T06:30")


def test_p07_a_midnight_that_does_not_exist_costs_a_week() -> None:
    cron, found = parse("0 0 * * 0"), at("2027-08-29T04:00")
    assert cron.next_after(at("2027-08-28T00:00"), SANTIAGO) == found
    assert cron.next_after(found, SANTIAGO) == at("2027-09-12T03:00")
    assert cron.next_after(found, SANTIAGO, gap="shift") == at("2027-09-05T04:00")
    assert cron.lost_between(found, found + timedelta(days=30), SANTIAGO) == (
        Lost(resumes_at=at("2027-09-05T04:00"), civil=datetime(2027, 9, 5), count=1),
    )


def test_p17_the_distance_to_the_previous_is_that_of_the_instants() -> None:
    cron = parse("0 1 * * *")
    asked = at("2027-03-15T06:59:59")
    previous, following = cron.latest_at_or_before(asked, DENVER), cron.next_after(asked, DENVER)
    assert previous is not None
    assert following is not None
    assert following - previous == timedelta(hours=23)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("30 2 * * *", ["10T07:00", "11T06:30"], id="one lost minute"),
        pytest.param("0,30 2 * * *", ["10T07:00", "11T06:00"], id="two lost minutes run once"),
        pytest.param("0 2,3 * * *", ["10T07:00", "11T06:00"], id="not besides an ordinary one"),
        pytest.param("30 1-4 * * *", ["10T06:30", "10T07:00", "10T07:30"], id="between others"),
        pytest.param("15 3 * * *", ["10T07:15", "11T07:15"], id="nothing was lost"),
    ],
)
def test_a_shifted_occurrence_runs_at_the_end_of_the_gap(text: str, expected: list[str]) -> None:
    cron, moment, found = parse(text), at("2024-03-09T12:00"), []
    for _ in expected:
        moment = cron.next_after(moment, NEW_YORK, gap="shift") or moment
        found.append(moment)
    assert found == [at(f"2024-03-{each}") for each in expected]
    back = [cron.latest_at_or_before(each, NEW_YORK, gap="shift") for each in found]
    assert back == found
    just_before = at("2024-03-09T12:00")
    assert cron.count_between(just_before, found[-1], NEW_YORK, gap="shift") == len(found)


def test_a_shifted_occurrence_waits_for_a_whole_minute() -> None:
    # Until 1972 Monrovia was 44 minutes and 30 seconds behind; the clock then skipped them.
    cron = parse("10 0 7 1 *")
    jump, expected = at("1972-01-07T00:44:30"), at("1972-01-07T00:45")
    assert cron.next_after(jump - timedelta(days=1), MONROVIA, gap="shift") == expected
    assert cron.next_after(jump, MONROVIA, gap="shift") == expected
    assert cron.latest_at_or_before(expected, MONROVIA, gap="shift") == expected
    earlier = cron.latest_at_or_before(jump, MONROVIA, gap="shift")
    assert earlier == at("1971-01-07T00:54:30")
    (lost,) = cron.lost_between(jump - timedelta(days=1), jump, MONROVIA)
    assert (lost.resumes_at, lost.civil) == (jump, datetime(1972, 1, 7, 0, 10))


def test_local_mean_time_has_minutes_that_begin_at_odd_seconds() -> None:
    found = parse("0 12 * * *").next_after(at("1880-01-01"), NEW_YORK)
    assert found == at("1880-01-01T16:56:02")


@pytest.mark.requirement("001 Timely Behavior/7")
def test_losses_are_told_once_per_gap() -> None:
    cron = parse("0,20,40 2 * * *")
    lost = cron.lost_between(at("2024-01-01"), at("2026-01-01"), NEW_YORK)
    assert lost == (
        Lost(at("2024-03-10T07:00"), datetime(2024, 3, 10, 2, 0), 3),
        Lost(at("2025-03-09T07:00"), datetime(2025, 3, 9, 2, 0), 3),
    )


def test_the_span_of_losses_leaves_its_start_out_and_takes_its_end_in() -> None:
    cron, end_of_gap = parse("30 2 * * *"), at("2024-03-10T07:00")
    before = end_of_gap - timedelta(seconds=1)
    assert len(cron.lost_between(before, end_of_gap, NEW_YORK)) == 1
    assert cron.lost_between(end_of_gap, end_of_gap + timedelta(days=30), NEW_YORK) == ()
    assert cron.lost_between(before - timedelta(days=30), before, NEW_YORK) == ()
    assert cron.lost_between(before, before + timedelta(seconds=0.9), NEW_YORK) == ()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param("30 * * * *", "America/New_York", id="the hour is not restricted"),
        pytest.param("30 3 * * *", "America/New_York", id="the hour is not lost"),
        pytest.param("30 2 * 7 *", "America/New_York", id="the month has no gap"),
        pytest.param("30 2 * * *", "UTC", id="the zone has no gaps"),
    ],
)
def test_nothing_is_lost_where_nothing_was_named(text: str, key: str) -> None:
    cron, zone = parse(text), ZoneInfo(key)
    assert cron.lost_between(at("2020-01-01"), at("2026-01-01"), zone) == ()


def test_a_lost_day_is_one_loss_with_all_its_minutes() -> None:
    cron = parse("0,30 * 30 * *")
    assert cron.lost_between(at("2011-12-01"), at("2012-01-01"), APIA) == ()
    (lost,) = parse("0,30 0-23 30 * *").lost_between(at("2011-12-01"), at("2012-01-01"), APIA)
    assert lost == Lost(at("2011-12-30T10:00"), datetime(2011, 12, 30), 48)


def test_losses_are_searched_to_the_end_of_time() -> None:
    cron, late = parse("30 2 * * *"), datetime(9999, 6, 1, tzinfo=UTC)
    assert cron.lost_between(late, datetime.max.replace(tzinfo=UTC), NEW_YORK) == ()


def yearly_gap_on_a_fixed_date() -> ZoneInfo:
    """Make a zone that leaves out the hour after 02:00 on each 1 March (its day 60)."""
    nothing = bytes(15) + bytes(4 * 3) + (0).to_bytes(4, "big")
    header = b"TZif2" + nothing + (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
    block = header + bytes(6) + b"AAA\0"
    return ZoneInfo.from_file(BytesIO(block * 2 + b"\nAAA0BBB,J60/2,J300/2\n"))


def test_an_occurrence_that_always_falls_into_a_gap_is_given_up_after_50_years() -> None:
    zone, cron = yearly_gap_on_a_fixed_date(), parse("30 2 1 3 *")
    assert cron.next_after(at("2024-01-01"), zone) is None
    assert cron.latest_at_or_before(at("2124-01-01"), zone) is None
    assert cron.next_after(at("2024-01-01"), zone, gap="shift") == at("2024-03-01T02:00")
    assert parse("30 3 1 3 *").next_after(at("2024-01-01"), zone) == at("2024-03-01T02:30")


# --- seconds and rules for days ---


def test_seconds_in_a_gap_are_lost_and_told_in_one() -> None:
    cron, before, after = (
        parse("*/30 30 2 * * *", "ojs"),
        at("2024-03-10T06:59"),
        at("2024-03-10T07:00"),
    )
    assert cron.next_after(before, NEW_YORK) == at("2024-03-11T06:30:00")
    assert cron.next_after(before, NEW_YORK, gap="shift") == after
    assert cron.next_after(after, NEW_YORK, gap="shift") == at("2024-03-11T06:30:00")
    assert cron.lost_between(before, after, NEW_YORK) == (
        Lost(resumes_at=after, civil=datetime(2024, 3, 10, 2, 30), count=2),
    )


@pytest.mark.parametrize(("fold", "count"), [("first", 60), ("both", 120)])
def test_seconds_in_a_fold(fold: Fold, count: int) -> None:
    cron, start, end = parse("30 * * * * *", "ojs"), at("2024-11-03T05:00"), at("2024-11-03T07:00")
    assert cron.count_between(start, end, NEW_YORK, fold=fold) == count


def test_a_second_shifted_by_a_gap_within_a_minute_comes_before_the_next_one() -> None:
    # Until 1972 Monrovia was 44 minutes and 30 seconds behind; the clock then skipped them.
    jump = at("1972-01-07T00:44:30")
    cron = parse("* 10,44 0 7 1 *", "ojs")
    assert cron.next_after(jump - timedelta(seconds=1), MONROVIA, gap="shift") == jump
    assert cron.next_after(jump, MONROVIA, gap="shift") == jump + timedelta(seconds=1)
    assert cron.latest_at_or_before(jump, MONROVIA, gap="shift") == jump


@pytest.mark.parametrize("gap", ["skip", "shift"])
def test_the_last_day_of_a_month_that_a_zone_never_had(gap: Gap) -> None:
    # Apia left out 30 December 2011; the last working day of that month is the 30th.
    cron = parse("0 12 LW 12 *", "ojs")
    found = cron.next_after(at("2011-12-01"), APIA, gap=gap)
    expected = {"skip": "2012-12-30T22:00", "shift": "2011-12-30T10:00"}
    assert found == at(expected[gap])
