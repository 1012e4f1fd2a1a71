"""Assertions about declared tasks, and a year of them in a file: what differs is said in words."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from django_declarative_cron import conf
from django_declarative_cron.core.schedule_snapshot import yearbook
from django_declarative_cron.exceptions import CalendarError, DeclarativeCronError
from django_declarative_cron.testing import (
    assert_fires,
    assert_schedule_snapshot,
    assert_schedule_valid,
    occurrences,
    schedules,
)

CALLBACK = "tests.callables.jobs.send_mail"
WEEK = ("2027-03-22", "2027-03-29")


@pytest.fixture(autouse=True)
def _tasks(settings: Any, still_clock: None) -> None:
    berlin = {"timezone": "Europe/Berlin", "callback": CALLBACK}
    settings.SCHEDULED_TASKS = [
        {"name": "digest", "cron": "0 7 * * 1-5", **berlin},
        {"name": "nightly", "cron": "30 2 * * *", **berlin},
        {"name": "twice", "cron": "30 2 * * *", "fold": "both", **berlin},
        {"name": "off", "cron": "0 7 * * *", "enabled": False, **berlin},
        {"name": "steady", "cron": "@every 90m", **berlin},
        ("short", "0 7 * * *", CALLBACK, timedelta(minutes=5)),
    ]


def refusal(*arguments: Any, **keys: Any) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        assert_fires(*arguments, **keys)
    return str(caught.value).splitlines()


def test_instants_without_an_offset_are_local_times_of_the_task() -> None:
    assert_fires(
        "digest",
        between=("2027-03-26", "2027-03-30"),
        at=["2027-03-26 07:00", "2027-03-29T07:00"],
    )
    assert_fires(
        "digest",
        between=("2027-03-26T00:00Z", datetime(2027, 3, 30, tzinfo=UTC)),
        at=["2027-03-29T05:00Z", datetime(2027, 3, 26, 6, tzinfo=UTC)],
    )
    assert_fires("short", between=WEEK, at=[f"2027-03-{day} 07:00" for day in range(22, 29)])


def test_the_end_of_the_span_is_not_part_of_it_and_its_beginning_is() -> None:
    assert_fires(
        "digest", between=("2027-03-22 07:00", "2027-03-23 07:00"), at=["2027-03-22 07:00"]
    )


def test_what_is_missing_and_what_is_too_many_is_said_in_the_zone_of_the_task() -> None:
    assert refusal(
        "digest",
        between=("2027-03-26", "2027-03-30"),
        at=["2027-03-26 07:00", "2027-03-27 07:00"],
    ) == [
        "'digest' (0 7 * * 1-5, Europe/Berlin) is not due as expected"
        " from Fri 2027-03-26 00:00+01:00 up to Tue 2027-03-30 00:00+02:00:",
        "  missing: Sat 2027-03-27 07:00+01:00",
        "  too many: Mon 2027-03-29 07:00+02:00",
        "  as expected: 1",
    ]


def test_a_gap_of_the_clock_is_named_as_the_reason() -> None:
    said = refusal("nightly", between=("2027-03-28", "2027-03-29"), at=["2027-03-28 03:30"])
    assert said[1:] == [
        "  missing: Sun 2027-03-28 03:30+02:00",
        "  2027-03-28 02:30 does not exist in Europe/Berlin: no run then",
    ]
    assert_fires("nightly", between=("2027-03-28", "2027-03-29"), at=[])


def test_a_local_time_that_is_none_or_two_is_refused() -> None:
    day = ("2027-10-31", "2027-11-01")
    with pytest.raises(ValueError) as caught:
        assert_fires("twice", between=day, at=["2027-10-31 02:30"])
    assert str(caught.value) == (
        "2027-10-31 02:30 happens twice in Europe/Berlin:"
        " write 2027-10-31 02:30+02:00 or 2027-10-31 02:30+01:00"
    )
    assert_fires("twice", between=day, at=["2027-10-31 02:30+02:00", "2027-10-31 02:30+01:00"])
    with pytest.raises(ValueError, match="2027-03-28 02:30 does not exist in Europe/Berlin"):
        assert_fires("nightly", between=WEEK, at=["2027-03-28 02:30"])


def is_holiday(day: date) -> bool:
    """Exclude a Good Friday."""
    return day == date(2027, 3, 26)


def test_calendars_and_spread_count_and_are_named_as_reasons(settings: Any) -> None:
    calendars = {"holidays": f"{__name__}.is_holiday"}
    settings.DECLARATIVE_CRON = {"CALENDARS": calendars}
    entry = {"name": "digest", "cron": "0 7 * * 1-5", "timezone": "UTC", "callback": CALLBACK}
    settings.SCHEDULED_TASKS = [
        {**entry, "exclude_calendars": ["holidays"]},
        {**entry, "name": "apart", "spread": timedelta(hours=1)},
    ]
    assert_fires("digest", between=("2027-03-26", "2027-03-30"), at=["2027-03-29 07:00"])
    said = refusal("digest", between=("2027-03-26", "2027-03-27"), at=["2027-03-26 07:00"])
    assert said[1:] == [
        "  missing: Fri 2027-03-26 07:00+00:00",
        "  2027-03-26 has no run: calendar 'holidays'",
    ]
    (due,) = occurrences("apart", between=("2027-03-26", "2027-03-27"))
    later = due - datetime(2027, 3, 26, 7, tzinfo=UTC)
    assert timedelta(0) < later < timedelta(hours=1)
    said = refusal("apart", between=("2027-03-26", "2027-03-27"), at=["2027-03-26 07:00"])
    assert said[-1] == f"  Each is {later} later than its expression says: `spread`."


def breaks(day: date) -> bool:
    """Return no answer."""
    raise RuntimeError("the file is not there")


def test_a_calendar_that_gives_no_answer_is_an_error(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": f"{__name__}.breaks"}}
    entry = {"name": "a", "cron": "0 7 26 * *", "timezone": "UTC", "callback": CALLBACK}
    tasks = [{**entry, "exclude_calendars": ["holidays"]}]
    with pytest.raises(CalendarError, match="the file is not there"):
        occurrences("a", between=("2027-01-01", "2027-02-01"), tasks=tasks)
    with pytest.raises(CalendarError, match="the file is not there"):
        yearbook(conf.declarations(tasks), date(2027, 1, 1))
    settings.SCHEDULED_TASKS = tasks
    with pytest.raises(CommandError, match=r"calendar .holidays. gives no answer"):
        call_command("cron", "snapshot", "schedule.txt")


def test_a_snapshot_names_calendars_and_spread(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"CALENDARS": {"holidays": f"{__name__}.is_holiday"}}
    entry = {"name": "a", "cron": "0 7 26 * *", "timezone": "UTC", "callback": CALLBACK}
    kept = [{**entry, "exclude_calendars": ["holidays"]}, {**entry, "name": "b", "spread": 60}]
    text = yearbook(conf.declarations(kept), date(2027, 1, 1))
    assert "    2027-03  Fri 26  no run: holidays\n" in text
    assert "    11 runs\n" in text
    later = conf.declarations(kept)[1].schedule.offset
    assert f"    0 7 26 * *  UTC  {CALLBACK}  later by {later}\n" in text
    assert f"    2027-02  Fri 26  07:00:{later.seconds:02}\n" in text


def test_a_long_list_is_cut() -> None:
    said = refusal("nightly", between=("2027-04-01", "2027-05-01"), at=[])
    assert len(said) == 22
    assert said[-1] == "  too many: 10 more"


def test_a_disabled_task_is_never_due() -> None:
    assert_fires("off", between=WEEK, at=[])
    said = refusal("off", between=WEEK, at=["2027-03-22 07:00"])
    assert said[1:] == ["  missing: Mon 2027-03-22 07:00+01:00", "  It is disabled."]


def test_an_interval_counts_from_the_registration() -> None:
    span = ("2027-03-22 00:00", "2027-03-22 03:00")
    with pytest.raises(ValueError, match="@every 90m counts from the registration"):
        assert_fires("steady", between=span, at=[])
    assert_fires(
        "steady",
        between=span,
        at=["2027-03-22 00:10", "2027-03-22 01:40"],
        registered_at="2027-03-21 22:40",
    )


def test_an_unknown_name_is_a_failure_that_helps() -> None:
    assert refusal("digets", between=WEEK, at=[]) == [
        "no task is declared as 'digets'; did you mean 'digest'?"
    ]
    assert refusal("x", between=WEEK, at=[], tasks=[]) == [
        "no task is declared as 'x'; there are none"
    ]


@pytest.mark.parametrize(
    ("between", "at", "words"),
    [
        (("2027-03-22", "2027-03-22"), [], "before it begins"),
        (WEEK, ["2027-03-29 07:00"], "not in the span of time that is looked at: Mon 2027-03-29"),
        (("2027-03-22", "tomorrow"), [], "tomorrow"),
    ],
)
def test_wrong_use_is_no_failure_of_the_schedule(between: Any, at: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        assert_fires("digest", between=between, at=at)


def test_occurrences_are_given_in_the_zone_of_the_task() -> None:
    found = occurrences("nightly", between=("2027-03-27", "2027-03-30"))
    assert [each.isoformat() for each in found] == [
        "2027-03-27T02:30:00+01:00",
        "2027-03-29T02:30:00+02:00",
    ]


def test_nobody_waits_for_millions_of_occurrences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "MOST", 6)
    assert len(occurrences("nightly", between=("2027-03-22", "2027-03-28"))) == 6
    with pytest.raises(AssertionError, match="'nightly' is due more than 6 times"):
        occurrences("nightly", between=("2027-04-01", "2027-05-01"))


def test_what_is_refused_is_refused_here_too(settings: Any) -> None:
    settings.SCHEDULED_TASKS = [("a", "61 * * * *", CALLBACK, timedelta(minutes=5))]
    with pytest.raises(DeclarativeCronError):
        occurrences("a", between=WEEK)


def test_a_valid_schedule_is_valid(settings: Any) -> None:
    tasks = [("short", "0 7 * * *", CALLBACK, timedelta(minutes=5))]
    assert_schedule_valid(tasks=tasks)
    settings.SCHEDULED_TASKS = tasks
    assert_schedule_valid()


def test_errors_and_warnings_are_said_with_their_hints(settings: Any) -> None:
    tasks = [
        ("a", "0 0 13 * 5", CALLBACK, timedelta(minutes=5)),
        ("b", "61 * * * *", CALLBACK, timedelta(minutes=5)),
    ]
    with pytest.raises(AssertionError) as caught:
        assert_schedule_valid(tasks=tasks)
    said = str(caught.value)
    assert said.startswith("2 remarks on what is declared:\n")
    assert "declarative_cron.E010" in said
    assert "declarative_cron.W001" in said
    assert "HINT: Leave one of them `*`." in said
    assert_schedule_valid(tasks=tasks[:1], allow=["W001"])
    assert_schedule_valid(tasks=tasks[:1], allow=["declarative_cron.W001"])
    settings.SILENCED_SYSTEM_CHECKS = ["declarative_cron.W001"]
    assert_schedule_valid(tasks=tasks[:1])


def test_notes_are_no_remarks() -> None:
    assert_schedule_valid(tasks=[("a", "0 0 29 2 *", CALLBACK, timedelta(minutes=5))])


# --- a year of the schedule in a file: written when told to, compared otherwise ---

BILL = {"name": "bill", "cron": "0 3 1 1 *", "timezone": "UTC", "callback": CALLBACK}


def test_what_has_changed_is_shown_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "schedule.txt"
    assert_schedule_snapshot(path, rewrite=True, tasks=[BILL])
    with pytest.raises(AssertionError) as caught:
        assert_schedule_snapshot(path, tasks=[{**BILL, "cron": "0 3 2 1 *"}])
    assert str(caught.value).splitlines() == [
        "the schedule is not that of schedule.txt any more:",
        "--- schedule.txt",
        "+++ what is declared now",
        "-bill: 0 3 1 1 *  UTC  tests.callables.jobs.send_mail",
        "-bill: 2027-01  Fri 1  03:00",
        "+bill: 0 3 2 1 *  UTC  tests.callables.jobs.send_mail",
        "+bill: 2027-01  Sat 2  03:00",
        f"If that is meant: pytest --cron-snapshot-rewrite, or manage.py cron snapshot {path},"
        " and commit the file.",
    ]


def test_a_long_difference_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_SHOWN_LINES", 2)
    path = tmp_path / "schedule.txt"
    assert_schedule_snapshot(path, rewrite=True, tasks=[BILL])
    with pytest.raises(AssertionError, match="… and 4 more lines"):
        assert_schedule_snapshot(path, tasks=[{**BILL, "cron": "0 3 2 1 *"}])


@pytest.mark.parametrize(
    ("text", "words"), [(None, "is not there; write it with"), ("hello", "is not a snapshot")]
)
def test_a_file_that_is_none_is_a_failure_and_is_left_alone(
    tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "schedule.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AssertionError, match=words):
        assert_schedule_snapshot(path)
    assert (path.read_text() if path.exists() else None) == text


def test_the_fixture_compares_with_a_file_beside_the_test(
    cron_snapshot: Callable[..., None],
) -> None:
    cron_snapshot("schedule.txt", tasks=[BILL])
    with pytest.raises(AssertionError, match="is not there"):
        cron_snapshot("nowhere.txt")
