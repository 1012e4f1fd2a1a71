"""Advice on entries that are accepted, work, and are seldom meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import run_checks

from django_declarative_cron import checks, conf
from django_declarative_cron.core.declarations.problems import Problem
from django_declarative_cron.core.lint import CROWD, advise, sub_minute

PATH = "tests.callables.jobs.send_mail"
FIVE = timedelta(minutes=5)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NEW_YORK = "America/New_York"


def entry(cron: str, timezone: str = "UTC", **keys: Any) -> dict[str, Any]:
    return {"name": "a", "cron": cron, "callback": PATH, "timezone": timezone, **keys}


def posix(cron: str) -> tuple[Any, ...]:
    return ("a", cron, PATH, FIVE)


def advice(*given: Any, project: str = "UTC", now: datetime = NOW) -> list[Problem]:
    declared, problems = conf.survey(list(given))
    assert problems == []
    return list(advise(declared, now, ZoneInfo(project)))


def said(*given: Any, **how: Any) -> list[tuple[str, str]]:
    """Return the code and the words of each advice."""
    return [(problem.check.code, problem.message) for problem in advice(*given, **how)]


@pytest.mark.requirement("002 CRON-12")
@pytest.mark.parametrize(
    "given",
    [
        *map(posix, ("0 7 * * 1-5", "0-59 2 * * *", "0 2 * * *", "* * * * *")),
        *map(entry, ("*/15 * * * *", "0 4 * * MON-FRI", "@daily", "@every 1h30m", "0 0 L * *")),
        *map(entry, ("30 0 4 * * *", "* * * * * *", "0 * * * * *", "0-59 4 * * *")),
        # Their step fits, or has a range.
        *map(entry, ("0 */6 * * *", "10-40/7 * * * *", "@hourly")),
        # No gap takes them.
        entry("30 2 * * *", NEW_YORK, gap="shift"),
        entry("30 3 * * *", NEW_YORK),
        entry("0 2,3 * * *", NEW_YORK),
        entry("30 2 1 6 *", NEW_YORK),
        entry("30 2 * * *"),
        # They do not fall silent where the clock repeats itself.
        entry("@every 10m", NEW_YORK),
        entry("0-59 * 1 6 *", NEW_YORK),
        entry("30 1 * * *", NEW_YORK, fold="both"),
    ],
)
def test_nothing_is_said_of_what_is_usual(given: Any) -> None:
    assert said(given) == []


HOURLY = "runs 60 times in each matching hour; did you mean"
DAILY = "runs 1,440 times a day; did you mean"
EITHER = "restricts both day fields: it runs when either matches"
SHORT_MONTHS = "February, April, June, September, November"


@pytest.mark.parametrize(
    ("given", "check", "words"),
    [
        (posix("* 2 * * *"), "W002", f"{HOURLY} `0 2 * * *`?"),
        (posix("*  2 * * *"), "W002", f"{HOURLY} `0 2 * * *`?"),
        (posix("* 0,2,4 * * *"), "W002", f"{HOURLY} `0 0,2,4 * * *`?"),
        (posix("* 9-17 * * 1-5"), "W002", f"{HOURLY} `0 9-17 * * 1-5`?"),
        (entry("* */2 * * *"), "W002", f"{HOURLY} `0 */2 * * *`?"),
        (entry("30 * */2 * * *"), "W002", f"{HOURLY} `30 0 */2 * * *`?"),
        (
            entry("* 30 4 * * *"),
            "W002",
            "runs 60 times in each matching minute; did you mean `0 30 4 * * *`?",
        ),
        (entry("* * * * 1"), "W002", f"{DAILY} `0 0 * * 1`?"),
        (entry("* * 1 * *"), "W002", f"{DAILY} `0 0 1 * *`?"),
        (entry("* * * 1 *"), "W002", f"{DAILY} `0 0 * 1 *`?"),
        (entry("0 * * * * 1"), "W002", f"{DAILY} `0 0 0 * * 1`?"),
        (
            entry("0 2 * * 2 *"),
            "W002",
            "has the seconds first: it runs in every hour, at minute 2 and second 0; "
            "did you mean `0 2 * * 2`?",
        ),
        (posix("0 5 1-7 * 1"), "W001", EITHER),
        (entry("0 5 1-7 * 1"), "W001", EITHER),
        (entry("0 0 */2 * 1-5"), "W001", EITHER),
        (entry("0 0 31 2 0"), "W013", "day 31 does not exist in February"),
        (entry("0 0 31 * *"), "W013", f"day 31 does not exist in {SHORT_MONTHS}"),
        (entry("@every 500ms"), "W013", "`@every 500ms` counts as one second"),
        (posix("0 0 29 2 *"), "I001", "runs only in some years, next 2028-02-29"),
        (entry("0 0 29 2 *"), "I001", "runs only in some years, next 2028-02-29"),
        (
            entry("*/7 * * * *"),
            "W071",
            "`*/7` does not go into 60 minutes, so the last interval is 4 minutes long",
        ),
        (
            entry("0 */5 * * *"),
            "W071",
            "`*/5` does not go into 24 hours, so the last interval is 4 hours long",
        ),
        (
            entry("*/50 * * * * *"),
            "W071",
            "`*/50` does not go into 60 seconds, so the last interval is 10 seconds long",
        ),
    ],
)
def test_what_is_surprising_is_said(given: Any, check: str, words: str) -> None:
    cron = given["cron"] if isinstance(given, dict) else given[1]
    joint = ": " if check in ("W013", "W071") else " "
    assert (check, f"`{cron}`{joint}{words}") in said(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (posix("0 5 1-7 * 1"), "No posix expression says “the first Monday”"),
        (entry("0 5 1-7 * 1"), "The first Monday is `1#1` as the weekday."),
    ],
)
def test_p72_what_people_mean_by_the_first_week_and_a_weekday_is_written_out(
    given: Any, words: str
) -> None:
    (problem,) = advice(given)
    assert words in problem.hint


def test_no_occurrence_ahead() -> None:
    end = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    words = "`0 7 * * *` has no occurrence within 50 years"
    assert said(posix("0 7 * * *"), now=end) == [("W007", words)]


# --- zones and changes of the clock ---


def test_p14_an_assumed_zone_names_the_local_time() -> None:
    given = {"name": "a", "cron": "30 9 * * *", "callback": PATH}
    (problem,) = advice(given, project="Europe/Moscow")
    assert (problem.check.code, problem.message) == (
        "W003",
        "names no time zone, so `30 9 * * *` is read in UTC: "
        "the next run is at 12:30 Europe/Moscow",
    )
    assert problem.hint == (
        'Write "timezone": "Europe/Moscow", or "timezone": "UTC" if that is meant.'
    )


@pytest.mark.parametrize(
    ("zone", "keys", "expected"),
    [
        ("Europe/Moscow", {"timezone": "UTC"}, []),
        ("Europe/Moscow", {"cron": "0 * * * *"}, []),
        ("UTC", {}, []),
        ("Etc/UTC", {}, []),
        ("Africa/Abidjan", {}, []),
        ("Europe/London", {}, ["W003"]),
    ],
    ids=["said", "no fixed hour", "the same", "another name", "same all year", "same in winter"],
)
def test_p14_only_where_it_makes_a_difference(
    zone: str, keys: dict[str, Any], expected: list[str]
) -> None:
    given = {"name": "a", "cron": "30 9 * * *", "callback": PATH, **keys}
    assert [code for code, _ in said(given, project=zone)] == expected


@pytest.mark.parametrize(
    ("cron", "zone", "check", "message"),
    [
        (
            "30 2 * * *",
            NEW_YORK,
            "W005",
            "the local time 02:30 does not exist on 2027-03-14 in America/New_York: "
            "no run then, the next one is 2027-03-15 02:30",
        ),
        (
            "0 0 * * SUN",
            "America/Santiago",
            "W005",
            "the local time 00:00 does not exist on 2026-09-06 in America/Santiago: "
            "no run then, the next one is 2026-09-13 00:00",
        ),
        (
            "30 1 * * *",
            NEW_YORK,
            "I002",
            "the local time 2026-11-01 01:30 comes twice in America/New_York: "
            "it runs the first time only",
        ),
        (
            "*/10 * * * * *",
            "Europe/Berlin",
            "W006",
            "the local time in Europe/Berlin repeats itself on 2026-10-25: "
            "no runs from 01:00 to 02:00 UTC of 'a'",
        ),
        (
            "0-59 * 7 * *",
            NEW_YORK,
            "W006",
            "the local time in America/New_York repeats itself on 2027-11-07: "
            "no runs from 06:00 to 07:00 UTC of 'a'",
        ),
    ],
)
def test_the_next_lost_or_silent_occurrence_is_named(
    cron: str, zone: str, check: str, message: str
) -> None:
    assert said(entry(cron, zone)) == [(check, message)]


def test_p02_tasks_that_fall_silent_are_told_together() -> None:
    tasks = [entry("* * * * *", NEW_YORK, name=f"t{n}") for n in range(5)]
    both = entry("* * * * *", NEW_YORK, name="both", fold="both")
    (problem,) = advice(*tasks, both, entry("* * * * *", name="utc"))
    assert (problem.check.code, problem.place) == ("W006", NEW_YORK)
    assert problem.message == (
        "the local time in America/New_York repeats itself on 2026-11-01: "
        "no runs from 06:00 to 07:00 UTC of 't0', 't1', 't2' and 2 more"
    )


# --- several tasks, and production ---


def crowd(cron: str, number: int, **keys: Any) -> list[str]:
    tasks = [entry(cron, name=f"task-{each}", **keys) for each in range(number)]
    return [words for code, words in said(*tasks) if code == "W070"]


def test_a_crowd_in_one_minute_is_told_once() -> None:
    (message,) = crowd("0 3 * * *", CROWD)
    assert "25 tasks begin in the minute" in message
    assert "'task-0', 'task-1', 'task-2' and 22 more" in message


def test_fewer_and_hourly_and_switched_off_tasks_are_no_crowd() -> None:
    assert crowd("0 3 * * *", CROWD - 1) == []
    assert crowd("0 * * * *", CROWD) == []
    assert crowd("0 3 * * *", CROWD, enabled=False) == []


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("*/10 * * * * *", "runs every 10 s at its closest, 8,640 times within a day"),
        ("0,45 0 3 * * *", "runs every 45 s at its closest, 2 times within a day"),
        ("@every 30s", "runs every 30 s at its closest, 2,880 times within a day"),
    ],
)
def test_seconds_are_told_for_production(cron: str, words: str) -> None:
    declared, _ = conf.survey([entry(cron)])
    (problem,) = sub_minute(declared, NOW, 1000)
    assert problem.check.code == "W073"
    assert words in problem.message
    assert "keeps 1,000 of these runs" in problem.hint


def test_minutes_and_what_is_off_are_not_told() -> None:
    given = [entry("* * * * *"), entry("0 * * * * *"), entry("*/10 * * * * *", enabled=False)]
    for each in given:
        assert list(sub_minute(conf.survey([each])[0], NOW, 1000)) == []


@pytest.mark.usefixtures("still_clock")
def test_production_has_a_check_of_its_own(settings: Any) -> None:
    settings.SCHEDULED_TASKS = [entry("*/10 * * * * *")]
    for is_deployed, ids in ((False, []), (True, ["declarative_cron.W073"])):
        found = run_checks(tags=[checks.TAG], include_deployment_checks=is_deployed)
        assert [each.id for each in found] == ids
