"""Calendars: functions, dotted paths and files, what they say and what they do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import override_settings

from django_declarative_cron import conf
from django_declarative_cron.calendars import Calendars, _days_in
from django_declarative_cron.checks import check_options
from django_declarative_cron.exceptions import CalendarError, InvalidRegistrationError
from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation

pytestmark = pytest.mark.usefixtures("still_clock")

FILE = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
BEGIN:VEVENT
UID:1
SUMMARY:New Year
DTSTART;VALUE=DATE:20200101
DTEND;VALUE=DATE:20200102
RRULE:FREQ=YEARLY
END:VEVENT
BEGIN:VEVENT
UID:2
SUMMARY:Fair
DTSTART;VALUE=DATE:20240506
DTEND;VALUE=DATE:20240509
END:VEVENT
BEGIN:VEVENT
UID:3
SUMMARY:Overnight
DTSTART:20240610T220000Z
DTEND:20240611T000000Z
END:VEVENT
BEGIN:VEVENT
UID:4
STATUS:CANCELLED
DTSTART;VALUE=DATE:20240801
END:VEVENT
END:VCALENDAR
""".replace("\n", "\r\n")


def is_leap_day(day: date) -> bool:
    return (day.month, day.day) == (2, 29)


def _asked(source: Any, day: date) -> str:
    return Calendars({"c": source}).exclusion(["c"]).calendar_of(day)


@pytest.mark.parametrize("source", [is_leap_day, f"{__name__}.is_leap_day"])
def test_a_function_or_its_path_says_which_days(source: Any) -> None:
    assert _asked(source, date(2024, 2, 29)) == "c"
    assert _asked(source, date(2024, 3, 1)) == ""


def test_the_first_that_excludes_a_day_is_named() -> None:
    calendars = Calendars({"a": lambda day: day.day == 2, "b": lambda day: True})
    exclusion = calendars.exclusion(["a", "b"])
    assert [exclusion.calendar_of(date(2024, 1, day)) for day in (1, 2)] == ["b", "a"]


def test_a_file_excludes_the_days_of_its_events(tmp_path: Path) -> None:
    pytest.importorskip("recurring_ical_events")
    path = tmp_path / "days.ics"
    path.write_bytes(FILE.encode())
    excluded = [
        day
        for month in range(1, 13)
        for number in range(1, 29)
        if _asked(str(path), day := date(2024, month, number))
    ]
    fair = [date(2024, 5, number) for number in (6, 7, 8)]
    assert excluded == [date(2024, 1, 1), *fair, date(2024, 6, 10)]
    assert _asked(str(path), date(2031, 1, 1)) == "c"


def test_a_file_that_changes_counts_at_once(tmp_path: Path) -> None:
    pytest.importorskip("recurring_ical_events")
    path = tmp_path / "days.ics"
    path.write_bytes(FILE.encode())
    assert _asked(str(path), date(2024, 5, 6)) == "c"
    path.write_bytes(FILE.replace("20240506", "20240507").replace("Fair", "Fairer").encode())
    assert _asked(str(path), date(2024, 5, 6)) == ""


def _file_with(path: Path, rule: str) -> str:
    path.write_bytes(FILE.replace("RRULE:FREQ=YEARLY", rule).encode())
    return str(path)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("RRULE:FREQ=SECONDLY", "FREQ=SECONDLY"),
        ("RRULE:FREQ=MINUTELY;COUNT=3", "FREQ=MINUTELY"),
        ("RRULE:INTERVAL=2;FREQ=HOURLY", "FREQ=HOURLY"),
        ("rrule:freq=hourly", "freq=hourly"),
        ("RRULE:FREQ=DAILY;BYHOUR=9,10", "BYHOUR=9,10"),
        ("RRULE:FREQ=YEARLY;BYMINUTE=0,1,2", "BYMINUTE=0,1,2"),
        ("RRULE:FREQ=SECO\r\n NDLY", "FREQ=SECONDLY"),
    ],
)
def test_a_file_that_repeats_within_a_day_is_refused(
    tmp_path: Path, settings: Any, rule: str, said: str
) -> None:
    path = _file_with(tmp_path / "days.ics", rule)
    settings.DECLARATIVE_CRON = {"CALENDARS": {"a": path}}
    (message,) = check_options()
    assert message.id == "declarative_cron.E019"
    assert f"repeats within a day ({said})" in message.msg
    with pytest.raises(CalendarError, match="repeats within a day"):
        _asked(path, date(2024, 1, 1))


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, settings: Any) -> None:
    path = _file_with(tmp_path / "days.ics", "RRULE:FREQ=YEARLY\r\nCOMMENT:" + "x" * 1_000_000)
    settings.DECLARATIVE_CRON = {"CALENDARS": {"a": path}}
    (message,) = check_options()
    assert message.id == "declarative_cron.E019"
    assert "a calendar has at most 1000000" in message.msg
    with pytest.raises(CalendarError, match="at most 1000000"):
        _asked(path, date(2024, 1, 1))


def test_one_hour_of_a_day_is_no_repetition_within_it(tmp_path: Path) -> None:
    pytest.importorskip("recurring_ical_events")
    path = _file_with(tmp_path / "days.ics", "RRULE:FREQ=YEARLY;BYHOUR=0")
    assert _asked(path, date(2024, 5, 6)) == "c"


def test_an_event_of_a_thousand_years_is_expanded_for_one(tmp_path: Path) -> None:
    pytest.importorskip("recurring_ical_events")
    path = tmp_path / "days.ics"
    path.write_bytes(FILE.replace("20240509", "30000101").encode())
    assert _asked(str(path), date(2030, 7, 1)) == "c"
    assert len(_days_in(path, 2030)) == 365


def test_a_function_is_asked_once_for_each_day() -> None:
    asked: list[date] = []

    def calendar(day: date) -> bool:
        asked.append(day)
        return True

    days = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1)]
    assert [_asked(calendar, day) for day in days] == ["c", "c", "c"]
    assert asked == days[:2]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "spoil", [lambda: transaction.set_rollback(True), lambda: User.objects.raw("SELEC")[0]]
)
def test_a_query_that_fails_spoils_no_transaction_around_it(spoil: Callable[[], object]) -> None:
    User.objects.create(username="ada")
    calendar = Calendars({"c": lambda day: bool(spoil())}).exclusion(["c"])
    with suppress(CalendarError):
        calendar.calendar_of(date(2024, 1, 1))
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_calendar_that_raises_does_not_stop_the_other_tasks() -> None:
    calendars = {"c": lambda day: User.objects.raw("SELEC")[0]}
    with override_settings(DECLARATIVE_CRON={"CALENDARS": calendars}):
        sim = Simulation(start="2024-01-01T10:10:00Z", time_zone="UTC")
        entry = {"cron": "0 11 * * *", "callback": sim.job(), "dialect": "posix"}
        sim.initialize([{"name": "a", "exclude_calendars": "c", **entry}, {"name": "b", **entry}])
        sim.advance_to("2024-01-01T11:00:01Z")
        assert set(TaskRun.objects.values_list("task_name", flat=True)) == {"b"}
        sim.crash()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("no.such.module", "gives no answer for 2024-01-01: ModuleNotFoundError"),
        ("missing.ics", "gives no answer for 2024-01-01: FileNotFoundError"),
        (lambda day: 1 / 0, "gives no answer for 2024-01-01: ZeroDivisionError"),
        (lambda day: sys.exit(3), "gives no answer for 2024-01-01: SystemExit: 3"),
        (lambda day: None, "says NoneType, not True or False, of 2024-01-01"),
        (None, "is not in DECLARATIVE_CRON['CALENDARS']"),
    ],
)
def test_what_gives_no_answer_says_why(source: Any, reason: str) -> None:
    with pytest.raises(CalendarError) as caught:
        _asked(source, date(2024, 1, 1))
    assert caught.value.message.startswith(f"calendar 'c' {reason}")


def test_a_name_that_is_none_is_refused_with_the_nearest(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": is_leap_day}}
    task = {"name": "t", "cron": "0 9 * * *", "callback": f"{__name__}.is_leap_day"}
    with pytest.raises(InvalidRegistrationError) as caught:
        conf.declarations([{**task, "exclude_calendars": "holyday"}])
    assert "'holyday' is not a known calendar; did you mean `holidays`?" in caught.value.message
    assert caught.value.__notes__[0].endswith(": Write `holidays`.")
    (problem,) = conf.problems([{**task, "exclude_calendars": ["holidays", "fair"]}])
    assert str(problem.check) == "declarative_cron.E017"
    assert problem.hint == "Known calendars: `holidays`."
    (declaration,) = conf.declarations([{**task, "exclude_calendars": "holidays"}])
    assert declaration.operating.exclude_calendars == ("holidays",)


def test_a_silent_calendar_is_warned_of(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"a": is_leap_day, "b": Path("missing.ics")}}
    (message,) = check_options()
    assert message.id == "declarative_cron.W014"
    assert message.obj == "DECLARATIVE_CRON['CALENDARS']['b']"
