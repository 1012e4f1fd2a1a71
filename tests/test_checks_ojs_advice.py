"""What is said of dict entries that are accepted, in the dialect ojs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.lint import advise

from .callables.jobs import send_mail

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def said(cron: str, zone: str = "UTC", **keys: Any) -> list[tuple[str, str]]:
    """Give what is said of an entry: the id without its prefix, and the words."""
    entry = {"name": "a", "cron": cron, "callback": send_mail, "timezone": zone, **keys}
    declared, problems = conf.survey([entry])
    found = [*problems, *advise(declared, NOW, ZoneInfo("UTC"))]
    return [(str(problem.check).rpartition(".")[2], problem.message) for problem in found]


@pytest.mark.requirement("002 CRON-12")
@pytest.mark.parametrize(
    "cron",
    [
        "*/15 * * * *",
        "0 4 * * MON-FRI",
        "@daily",
        "@every 1h30m",
        "0 0 L * *",
        "30 0 4 * * *",
        "* * * * * *",
        "0 * * * * *",
        "0-59 4 * * *",
    ],
)
def test_nothing_is_said_of_what_is_usual(cron: str) -> None:
    assert said(cron) == []


@pytest.mark.parametrize(
    ("cron", "check", "words"),
    [
        ("* */2 * * *", "W002", "did you mean `0 */2 * * *`?"),
        ("30 * */2 * * *", "W002", "did you mean `30 0 */2 * * *`?"),
        ("* 30 4 * * *", "W002", "did you mean `0 30 4 * * *`?"),
        ("* * * * 1", "W002", "runs 1,440 times a day; did you mean `0 0 * * 1`?"),
        ("* * 1 * *", "W002", "did you mean `0 0 1 * *`?"),
        ("* * * 1 *", "W002", "did you mean `0 0 * 1 *`?"),
        ("0 * * * * 1", "W002", "did you mean `0 0 0 * * 1`?"),
        ("0 2 * * 2 *", "W002", "at minute 2 and second 0; did you mean `0 2 * * 2`?"),
        ("0 5 1-7 * 1", "W001", "it runs when either matches"),
        ("0 0 */2 * 1-5", "W001", "it runs when either matches"),
        ("0 0 31 2 0", "W013", "day 31 does not exist in February"),
        ("0 0 31 * *", "W013", "day 31 does not exist in February, April"),
        ("0 0 29 2 *", "I001", "runs only in some years, next 2028-02-29"),
        ("@every 500ms", "W013", "second"),
    ],
)
def test_what_is_surprising_is_said(cron: str, check: str, words: str) -> None:
    messages = dict(said(cron))
    assert words in messages[check]


def test_p72_what_people_mean_by_the_first_week_and_a_weekday_is_written_out() -> None:
    entry = {"name": "a", "cron": "0 5 1-7 * 1", "callback": send_mail, "timezone": "UTC"}
    declared, problems = conf.survey([entry])
    (problem,) = [*problems, *advise(declared, NOW, ZoneInfo("UTC"))]
    assert "The first Monday is `1#1` as the weekday." in problem.hint


@pytest.mark.parametrize(
    ("cron", "zone", "check", "words"),
    [
        ("30 2 * * SUN", "America/New_York", "W005", "02:30 does not exist on 2027-03-14"),
        ("0 0 * * SUN", "America/Santiago", "W005", "00:00 does not exist on 2027-09-05"),
        ("30 1 * * *", "America/New_York", "I002", "2027-11-07 01:30 comes twice"),
        ("*/10 * * * *", "America/New_York", "W006", "repeats itself on 2027-11-07"),
        ("*/10 * * * * *", "Europe/Berlin", "W006", "repeats itself on 2027-10-31"),
    ],
)
def test_the_next_lost_or_silent_occurrence_is_named(
    cron: str, zone: str, check: str, words: str
) -> None:
    messages = dict(said(cron, zone))
    assert words in messages[check]


def test_what_counts_from_its_registration_loses_nothing() -> None:
    assert said("@every 10m", "America/New_York") == []
