"""What is allowed, works, and is seldom meant: advice on entries in the dialect ojs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import CheckMessage, run_checks

from django_declarative_cron import checks, conf
from django_declarative_cron.core.declarations.problems import Problem
from django_declarative_cron.core.lint import CROWD, advise

from .callables.jobs import send_mail

pytestmark = pytest.mark.usefixtures("still_clock")

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def advice(cron: str, zone: str = "UTC") -> list[Problem]:
    entry = {"name": "a", "cron": cron, "callback": send_mail, "timezone": zone}
    declared, problems = conf.survey([entry])
    return [*problems, *advise(declared, NOW, ZoneInfo("UTC"))]


def said(cron: str, zone: str = "UTC") -> list[tuple[str, str]]:
    """Return the id of each problem of an entry without its prefix, and its words."""
    found = advice(cron, zone)
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
    (problem,) = advice("0 5 1-7 * 1")
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


# --- advice by the checks of Django ---


Check = Callable[..., list[CheckMessage]]


@pytest.fixture
def check(settings: Any) -> Check:
    def run(*crons: str, **keys: Any) -> list[CheckMessage]:
        shared = {"callback": "tests.callables.jobs.send_mail", "timezone": "UTC", **keys}
        settings.SCHEDULED_TASKS = [
            {"name": f"task-{number}", "cron": cron, "dialect": "ojs", **shared}
            for number, cron in enumerate(crons)
        ]
        return run_checks(tags=[checks.TAG])

    return run


def ids(messages: list[CheckMessage]) -> list[str]:
    return [str(message.id).removeprefix("declarative_cron.") for message in messages]


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("*/7 * * * *", "the last interval is 4 minutes long"),
        ("0 */5 * * *", "the last interval is 4 hours long"),
        ("*/50 * * * * *", "the last interval is 10 seconds long"),
    ],
)
def test_a_step_that_does_not_fit_is_told(check: Check, cron: str, said: str) -> None:
    [message] = [each for each in check(cron) if str(each.id).endswith("W071")]
    assert said in message.msg


@pytest.mark.parametrize("cron", ["*/15 * * * *", "0 */6 * * *", "10-40/7 * * * *", "@hourly"])
def test_a_step_that_fits_or_has_a_range_is_not(check: Check, cron: str) -> None:
    assert "W071" not in ids(check(cron))


def test_a_crowd_in_one_minute_is_told_once(check: Check) -> None:
    [message] = [each for each in check(*["0 3 * * *"] * CROWD) if str(each.id).endswith("W070")]
    assert "25 tasks begin in the minute" in message.msg
    assert "'task-0', 'task-1', 'task-2' and 22 more" in message.msg


def test_fewer_and_hourly_and_switched_off_tasks_are_no_crowd(check: Check) -> None:
    assert "W070" not in ids(check(*["0 3 * * *"] * (CROWD - 1)))
    assert "W070" not in ids(check(*["0 * * * *"] * CROWD))
    assert "W070" not in ids(check(*["0 3 * * *"] * CROWD, enabled=False))


def deployed(settings: Any, cron: str, **keys: Any) -> list[CheckMessage]:
    shared = {"callback": "tests.callables.jobs.send_mail", "timezone": "UTC", **keys}
    settings.SCHEDULED_TASKS = [{"name": "a", "cron": cron, **shared}]
    found = run_checks(tags=[checks.TAG], include_deployment_checks=True)
    return [each for each in found if str(each.id).endswith("W073")]


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("*/10 * * * * *", "runs every 10 s at its closest, 8,640 times within a day"),
        ("0,45 0 3 * * *", "runs every 45 s at its closest, 2 times within a day"),
        ("@every 30s", "runs every 30 s at its closest, 2,880 times within a day"),
    ],
)
def test_seconds_are_told_for_production_only(
    check: Check, settings: Any, cron: str, said: str
) -> None:
    [message] = deployed(settings, cron)
    assert said in message.msg
    assert "keeps 1,000 of these runs" in str(message.hint)
    assert "W073" not in ids(check(cron))


def test_minutes_and_what_is_off_are_not_told(settings: Any) -> None:
    assert deployed(settings, "* * * * *") == []
    assert deployed(settings, "0 * * * * *") == []
    assert deployed(settings, "*/10 * * * * *", enabled=False) == []


def test_a_hint_leads_to_its_page_and_silencing_silences(check: Check, settings: Any) -> None:
    [message] = [each for each in check("*/7 * * * *") if str(each.id).endswith("W071")]
    assert str(message.hint).endswith("More in docs/checks.md#w071.")
    settings.SILENCED_SYSTEM_CHECKS = ["declarative_cron.W071"]
    assert message.is_silenced()
