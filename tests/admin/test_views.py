"""The calendar of a month, and the expression helper."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.urls import reverse

from django_declarative_cron.admin import badges, calendar
from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.schedule import Schedule, load
from django_declarative_cron.cron import parse
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store.overview import coming_up
from django_declarative_cron.store.queries import Shape

from ..timezones import PROJECT, instant_of, zoned
from . import pages, rows
from .pages import text
from .rows import NOW

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def address(page: str, query: str = "", site: str = "admin") -> str:
    return reverse(f"{site}:{pages.APP}_scheduledtask_{page}") + query


def days(response: Any) -> dict[str, str]:
    html = response.content.decode()
    found = re.findall(r'<td class="ddc-day.*?href="\?day=([\d-]+)">(.*?)</td>', html, re.DOTALL)
    return {day: " ".join(re.sub(r"<[^>]+>", " ", cell).split()) for day, cell in found}


def test_a_month_counts_what_is_planned_and_what_became_of_it(root: Client) -> None:
    rows.task("hourly", registered_at=LONG_AGO)
    rows.task("nightly", cron="0 3 * * *", timezone="Europe/Berlin", registered_at=LONG_AGO)
    rows.task("off", enabled=False, registered_at=LONG_AGO)
    rows.run(scheduled_for=NOW - timedelta(days=1))
    rows.run(outcome="failed", scheduled_for=NOW - timedelta(days=1, hours=1))
    shown = days(root.get(address("calendar")))
    assert len(shown) in (35, 42)
    assert shown["2026-11-27"] == "27 25 planned ✔ 1 succeeded ✖ 1 failed"
    assert shown["2026-11-30"] == "30 25 planned"


def test_nothing_is_planned_before_a_task_was_registered(root: Client) -> None:
    rows.task("hourly", registered_at=instant_of("2026-11-28 03:00"), timezone=PROJECT)
    registered = {"registered_at": instant_of("2026-11-28 10:00:30"), "timezone": PROJECT}
    rows.task("every", cron="@every 8h", declaration={"dialect": "ojs"}, **registered)
    shown = days(root.get(address("calendar")))
    assert shown["2026-11-27"] == "27"
    # From 03:00 on each hour, and once eight hours after ten.
    assert shown["2026-11-28"] == "28 22 planned"
    assert f"hourly 21 0 0 {zoned('2026-11-28 03:00')}" in text(
        root.get(address("calendar", "?day=2026-11-28"))
    )
    assert "Nothing is planned" in text(root.get(address("calendar", "?day=2026-11-27")))


def test_what_calendars_and_people_take_out_is_not_planned(root: Client, settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": lambda day: day.day == 30}}
    excluding = {"dialect": "posix", "exclude_calendars": ["holidays"]}
    known = {"registered_at": LONG_AGO, "timezone": PROJECT}
    rows.task("working", declaration=excluding, **known)
    rows.task("skipped", skip_at=instant_of("2026-11-29 10:00"), **known)
    rows.task("spread", declaration={"spread": 1800.0}, **known)
    shown = days(root.get(address("calendar")))
    assert shown["2026-11-29"] == "29 71 planned"
    assert shown["2026-11-30"] == "30 48 planned"


def test_the_load_of_the_coming_hour_is_where_a_spread_moves_it(db: None) -> None:
    spread, minute = timedelta(minutes=30), timedelta(minutes=1)
    for name in ("a", "b", "c"):
        rows.task(name, declaration={"spread": 1800.0})
    rows.task("d")
    found = load(coming_up(ScheduledTask.objects.all(), NOW + 61 * minute), NOW)
    first = NOW.replace(minute=1, second=0)
    offsets = [timedelta(0), *(offset_of(name, spread) for name in ("a", "b", "c"))]
    starts = [
        first - minute + hour + offset for hour in (timedelta(0), 60 * minute) for offset in offsets
    ]
    expected = sorted((at - first) // minute for at in starts if first <= at < first + 60 * minute)
    assert [index for index, number in enumerate(found) for _ in range(number)] == expected
    assert len(set(expected)) == 4


def test_days_of_a_clock_change_have_the_hours_they_have(root: Client, settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    rows.task("hourly", timezone="Europe/Berlin", registered_at=LONG_AGO)
    spring = days(root.get(address("calendar", "?month=2026-03")))
    assert spring["2026-03-29"].endswith("23 planned")
    autumn = days(root.get(address("calendar", "?month=2026-10")))
    assert autumn["2026-10-25"].endswith("24 planned")


def test_a_day_opens_what_its_tasks_do(root: Client) -> None:
    task = rows.task("hourly", timezone=PROJECT)
    rows.task("nightly", cron="0 3 * * *", timezone=PROJECT)
    rows.task("monthly", cron="0 3 1 * *", timezone=PROJECT)
    response = root.get(address("calendar", "?day=2026-12-24"))
    shown = text(response)
    first, last = zoned("2026-12-24 00:00"), zoned("2026-12-24 23:00")
    assert f"hourly 24 0 0 {first} {last}" in shown
    assert f"nightly 1 0 0 {zoned('2026-12-24 03:00')} At 03:00" in shown
    assert "monthly 1" not in shown
    assert f'href="{pages.page(task)}"' in response.content.decode()


def test_a_day_shows_what_became_of_it_in_lanes(root: Client) -> None:
    rows.task("hourly", registered_at=LONG_AGO, timezone=PROJECT)
    rows.run("hourly", scheduled_for=instant_of("2026-11-28 04:00"))
    rows.run("hourly", "failed", scheduled_for=instant_of("2026-11-28 05:00"))
    rows.run("hourly", "failed", scheduled_for=instant_of("2026-11-27 05:00"))
    response = root.get(address("calendar", "?day=2026-11-28"))
    assert f"hourly 24 1 1 {zoned('2026-11-28 00:00')}" in text(response)
    html = response.content.decode()
    assert 'aria-label="hourly: 24 planned, 1 succeeded, 1 failed"' in html
    # Planned is what lies ahead: in UTC from 11:00 on.
    [ticks] = re.findall(r'<path class="ddc-planned" d="([^"]*)"', html)
    assert ticks.count("M") == 23 - NOW.astimezone(ZoneInfo(PROJECT)).hour


@pytest.mark.parametrize("query", ["month=x", "month=2026-13", "month=99999-1", "day=2026-02-30"])
def test_what_is_no_month_shows_the_present_one(root: Client, query: str) -> None:
    assert "2026-11-28" in days(root.get(address("calendar", f"?{query}")))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("expression=30+2+*+3+0&timezone=Europe/Berlin", "2027-03-28 02:30 does not exist"),
        ("expression=30+2+*+3+0&timezone=Europe/Berlin", "At 02:30, only on Sunday"),
        ("expression=61+*+*+*+*", "minute field"),
        ("expression=*/5+*+*+*+*", "Invalid cron expression"),
        ("expression=*/5+*+*+*+*", "Tasks written as dicts accept it: their dialect is ojs."),
        ("expression=0+0+*+*+*&timezone=Mars/Olympus", "Unknown time zone"),
        ("expression=0+0+29+2+*", "In some years there is no matching day."),
        ("expression=0+0+1+*+1", "Both day fields are restricted"),
        ("expression=*/7+*+*+*+*&dialect=ojs", "UTC"),
        ("expression=", "This field is required."),
        ("expression=0+0+*+*+*&dialect=x", "x is not one of the available choices"),
    ],
)
def test_an_expression_is_judged(root: Client, query: str, said: str) -> None:
    assert said in text(root.get(address("expression", f"?{query}")))


@pytest.mark.parametrize("dialect", ["posix", "ojs"])
def test_no_dialect_is_named_where_none_accepts_it(root: Client, dialect: str) -> None:
    query = f"?expression=61+*+*+*+*&dialect={dialect}"
    assert "dialect is ojs" not in text(root.get(address("expression", query)))


def test_the_list_leads_to_the_pages_on_its_own_site(root: Client) -> None:
    html = root.get(pages.changelist(site="operations", query="?status=active")).content.decode()
    timeline, calendar, helper = (
        address(page, site="operations") for page in ("timeline", "calendar", "expression")
    )
    assert f'href="{timeline}?status=active"' in html and f'href="{calendar}"' in html
    for page in (timeline, calendar):
        assert f'href="{helper}"' in root.get(page).content.decode()
    assert root.get(helper).status_code == 200


def test_the_timeline_shows_the_day_of_the_tasks_of_the_list(root: Client) -> None:
    rows.task("hourly")
    rows.run("hourly", "failed", scheduled_for=NOW - timedelta(hours=2))
    rows.run("hourly", scheduled_for=NOW - timedelta(hours=1))
    rows.task("paused", paused_since=NOW)
    response = root.get(address("timeline", "?status=active"))
    shown, html = text(response), response.content.decode()
    assert "Active: 1 · Paused: 1" in shown
    assert 'aria-label="hourly: 1 succeeded, 1 failed, 0 did not run"' in html
    assert "hourly 1 1 0 in 59 min" in shown
    assert "paused: 0 succeeded" not in html
    assert "2 starts in the coming hour" in shown
    assert root.get(address("timeline", "?nonsense=1"), follow=True).status_code == 200


def test_lanes_are_bounded_and_the_rest_is_counted(root: Client) -> None:
    for number in range(43):
        rows.task(f"t{number:02}")
    response = root.get(address("timeline"))
    assert response.content.decode().count("ddc-lane-chart") == 40
    assert "3 more tasks are not shown." in text(response)
    shown = text(root.get(address("calendar", "?day=2026-12-24")))
    assert "t39 24" in shown
    assert "t40 24" not in shown
    assert "3 more tasks start on this day." in shown


def test_a_damaged_row_keeps_no_calendar_from_being_shown_and_today_is_marked(root: Client) -> None:
    rows.task("broken", cron="* * *")
    rows.task("hourly")
    response = root.get(address("calendar"))
    assert days(response)["2026-11-30"] == "30 24 planned"
    [today] = re.findall(
        r'aria-current="date">\s*<a href="\?day=([\d-]+)"', response.content.decode()
    )
    assert today == "2026-11-28"
    assert root.get(address("calendar", "?day=2026-11-30")).status_code == 200


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        *((0, ""), (999, "999"), (9999, "9,999"), (10_000, "10 k")),
        *((182_974, "182 k"), (1_829_744, "1.8 M"), (42_000_000, "42 M")),
    ],
)
def test_many_are_told_in_little_room(number: int, shown: str) -> None:
    assert badges.about(number).replace("\u202f", " ") == shown


# --- what a month counts of spread tasks ---


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
