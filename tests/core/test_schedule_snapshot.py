"""A year of tasks as text: complete, short, and the same until the schedule changes."""

from __future__ import annotations

from datetime import date, timedelta
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron.core.declarations.declaration import Declaration, Target
from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.schedule_snapshot import difference, first_day, yearbook
from django_declarative_cron.cron import Fold, Gap, parse

DECEMBER = date(2026, 12, 1)


def task(
    name: str,
    cron: str,
    zone: str = "Europe/Berlin",
    *,
    gap: Gap = "skip",
    fold: Fold = "first",
    enabled: bool = True,
) -> Declaration:
    schedule = Schedule(parse(cron, dialect="ojs"), ZoneInfo(zone), gap, fold)
    target = Target("shop.tasks.work", lambda: None)
    return Declaration(name, schedule, target, FixedDelay(timedelta(minutes=5)), enabled=enabled)


def lines(declaration: Declaration, first: date = DECEMBER) -> list[str]:
    return [line.strip() for line in yearbook([declaration], first).splitlines()[3:]]


def test_each_month_has_its_days_and_times() -> None:
    text = yearbook([task("b", "0 6 1 */3 *"), task("a", "0 0 29 2 *", "UTC")], DECEMBER)
    assert text == (
        "# A year of scheduled tasks, each in its own time zone; `cron snapshot` writes it anew.\n"
        "# From 2026-12-01 up to 2027-12-01.\n"
        "\n"
        "a\n"
        "    0 0 29 2 *  UTC  shop.tasks.work\n"
        "    0 runs\n"
        "\n"
        "b\n"
        "    0 6 1 */3 *  Europe/Berlin  shop.tasks.work\n"
        "    2027-01  Fri 1  06:00\n"
        "    2027-04  Thu 1  06:00\n"
        "    2027-07  Thu 1  06:00\n"
        "    2027-10  Fri 1  06:00\n"
        "    4 runs\n"
    )
    assert first_day(text) == DECEMBER


def test_days_are_spans_and_a_gap_of_the_clock_is_named() -> None:
    found = lines(task("a", "30 2 * * *"))
    assert found[2] == "2026-12  1-31  02:30"
    assert found[5] == "2027-03  1-27 29-31  02:30"
    assert found[-2:] == ["2027-03-28 02:30 does not exist: no run", "364 runs"]


def test_rules_for_the_change_of_the_clock_are_said_and_seen() -> None:
    found = lines(task("a", "30 2 * * *", gap="shift", fold="both"))
    assert found[1] == "30 2 * * *  Europe/Berlin  shop.tasks.work  gap: shift  fold: both"
    assert "2027-10  Sun 31  02:30, 02:30 again" in found
    assert "2027-03  Sun 28  03:00" in found
    assert found[-1] == "366 runs"


@pytest.mark.parametrize(
    ("cron", "usual", "in_march", "total"),
    [
        ("0 * * * *", "24 times from 00:00 to 23:00", "23 times from 00:00 to 23:00", "8,759 runs"),
        (
            "* * * * *",
            "1,440 times from 00:00 to 23:59",
            "1,380 times from 00:00 to 23:59",
            "525,540 runs",
        ),
    ],
)
def test_many_times_a_day_are_counted(cron: str, usual: str, in_march: str, total: str) -> None:
    found = lines(task("a", cron))
    assert found[2] == f"2026-12  1-31  {usual}"
    assert f"2027-03  Sun 28  {in_march}" in found
    assert found[-1] == total


def test_a_year_from_a_leap_day_has_one() -> None:
    found = lines(task("a", "0 0 29 2 *"), date(2028, 2, 29))
    assert found[2:] == ["2028-02  Tue 29  00:00", "1 run"]


def test_what_does_not_run_by_the_calendar_is_said() -> None:
    assert lines(task("a", "0 7 * * *", enabled=False))[2:] == ["disabled"]
    assert lines(task("a", "@every 90m"))[2:] == ["counts from its registration on"]


def test_what_differs_is_named_with_its_task() -> None:
    kept = yearbook([task("a", "0 6 1 1 *"), task("b", "0 6 1 1 *")], DECEMBER)
    present = yearbook([task("a", "0 6 1 1 *"), task("b", "0 6 2 1 *")], DECEMBER)
    assert difference(kept, present, "schedule.txt") == [
        "--- schedule.txt",
        "+++ what is declared now",
        "-b: 0 6 1 1 *  Europe/Berlin  shop.tasks.work",
        "-b: 2027-01  Fri 1  06:00",
        "+b: 0 6 2 1 *  Europe/Berlin  shop.tasks.work",
        "+b: 2027-01  Sat 2  06:00",
    ]
    assert difference(kept, kept, "schedule.txt") == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "a\n", "# From 2026-13-01 up to 2027-12-01.\n"),
        *("# From 9999-12-31 up to 9999-12-31.\n", "# From 1899-12-31 up to 1900-12-31.\n"),
    ],
)
def test_what_is_no_year_has_no_first_day(text: str) -> None:
    assert first_day(text) is None
