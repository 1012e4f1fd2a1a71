"""Definitions of monitors: the same minutes as the schedule, or a heartbeat."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from django_declarative_cron.core.monitor import (
    Monitor,
    Monitoring,
    define,
    five_fields,
    longest_rest,
    read_monitor,
    read_monitoring,
    slug_of,
)
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse

NOW = datetime(2024, 1, 1, 10, 0, 30, tzinfo=UTC)
UTC_ZONE = ZoneInfo("UTC")


@pytest.mark.parametrize(
    ("text", "dialect", "said"),
    [
        ("*/15 9-17 * * MON-FRI", "ojs", "0,15,30,45 9-17 * * 1-5"),
        ("0 0 13 * 5", "posix", "0 0 13 * 5"),
        ("0,30 * * * 0", "posix", "0,30 * * * 0"),
        ("0 4 1-7 JAN,JUL *", "ojs", "0 4 1-7 1,7 *"),
        ("@daily", "ojs", "0 0 * * *"),
        ("0 0 L * *", "ojs", None),
        ("0 0 * * FRI#3", "ojs", None),
        ("30 0 4 * * *", "ojs", None),
        ("@every 90s", "ojs", None),
    ],
)
def test_steps_names_and_macros_become_numbers(text: str, dialect: Any, said: str | None) -> None:
    assert five_fields(parse(text, dialect)) == said


@pytest.mark.parametrize(
    "text", ["*/15 9-17 * * MON-FRI", "0 0 13 * 5", "7 3 1-7 * *", "0 0 1-31 * 1", "@weekly"]
)
def test_a_monitor_expects_each_occurrence(text: str) -> None:
    """P101."""
    expression = parse(text, "ojs")
    theirs = CronSim(five_fields(expression) or "", NOW)
    ours = Schedule(expression, UTC_ZONE).upcoming(NOW)
    assert [next(ours) for _ in range(30)] == [next(theirs) for _ in range(30)]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("0 0 L * *", timedelta(days=31)),
        ("@every 90s", timedelta(minutes=2)),
        ("30 0 4 * * *", timedelta(days=1)),
        ("*/20 * * * * *", timedelta(minutes=1)),
    ],
)
def test_a_heartbeat_is_the_longest_time_between_occurrences(text: str, rest: timedelta) -> None:
    assert longest_rest(Schedule(parse(text, "ojs"), UTC_ZONE), NOW) == rest


def test_a_task_is_named_as_it_is_or_so_that_no_other_is() -> None:
    assert slug_of("send-digests") == "send-digests"
    assert slug_of("a.b") != slug_of("a-b") == "a-b"
    assert slug_of("Straße: 1").startswith("stra-e-1-")
    assert slug_of("…").isalnum()
    assert len(slug_of("x" * 200)) <= 50


def declaration(**more: Any) -> Any:
    schedule = Schedule(parse("0 4 * * *", "posix"), UTC_ZONE)
    given = {"name": "water", "timezone": "UTC", "timeout": None, "monitor": None, **more}
    return SimpleNamespace(schedule=schedule, **given)


class Holidays:
    """Three days of a month that is far away."""

    def calendar_of(self, day: date) -> str:
        return "holidays" if day.month == 8 and day.day in (5, 6, 7) else ""


def test_a_task_without_the_key_is_not_monitored() -> None:
    common = Monitoring(sentry=True)
    assert define(declaration(), common, NOW) is None
    assert define(declaration(monitor=Monitor(is_wanted=False)), common, NOW) is None
    assert define(declaration(monitor=Monitor()), None, NOW) is None


def test_the_key_overrides_the_option() -> None:
    common = Monitoring(ping="https://hc.example/key/{slug}", margin=timedelta(minutes=7))
    found = define(declaration(monitor=Monitor()), common, NOW)
    assert found is not None
    said = (found.slug, found.cron, found.ping)
    assert said == ("water", "0 4 * * *", "https://hc.example/key/water")
    assert (found.margin, found.max_runtime) == (timedelta(minutes=7), timedelta(hours=1))
    minute = timedelta(minutes=1)
    own = Monitor(slug="w", margin=minute, max_runtime=2 * minute)
    found = define(declaration(monitor=own), common, NOW)
    assert found is not None
    assert (found.slug, found.margin, found.max_runtime) == ("w", minute, 2 * minute)


@pytest.mark.parametrize(
    ("manner", "rest"),
    [
        ({"offset": timedelta(minutes=20)}, timedelta(days=1)),
        ({"exclusion": Holidays()}, timedelta(days=4)),
    ],
)
def test_a_schedule_beyond_five_fields_is_a_heartbeat(
    manner: dict[str, Any], rest: timedelta
) -> None:
    common = Monitoring(sentry=True, every_task=True)
    task = declaration()
    task.schedule = replace(task.schedule, **manner)
    found = define(task, common, NOW)
    assert found is not None
    assert (found.cron, found.every, found.is_heartbeat) == ("", rest, True)


def test_a_run_may_take_as_long_as_its_timeout_lets_it() -> None:
    common = Monitoring(sentry=True, every_task=True)
    found = define(declaration(timeout=timedelta(minutes=30)), common, NOW)
    assert found is not None
    assert found.max_runtime == timedelta(minutes=35)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (1, "must be a dict or None, not int"),
        ({}, "must have `sentry` or `ping`"),
        ({"ping": "https://hc.example/secret"}, "has a `ping` that must contain {slug}"),
        ({"ping": 5}, "has a `ping` that must be a text"),
        ({"sentry": 1}, "has a `sentry` that must be True or False"),
        ({"sentry": True, "api": "https://hc.example/api"}, "must have both of"),
        ({"sentrry": True}, "did you mean `sentry`"),
        ({"sentry": True, "margin": 1}, "has a `margin` that must be from 1 min"),
    ],
)
def test_an_invalid_value_is_explained_without_secrets(given: Any, words: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_monitoring(given)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_key_of_a_task_has_four_forms() -> None:
    assert read_monitor(True) == Monitor()
    assert read_monitor(False) == Monitor(is_wanted=False)
    assert read_monitor("https://hc.example/a") == Monitor(ping="https://hc.example/a")
    assert read_monitor({"slug": "a", "failures": 3}) == Monitor(slug="a", failures=3)
    for wrong in ("no url", {"slug": "A"}, {"failures": 0}, {"margin": "5"}):
        with pytest.raises(ValueError):
            read_monitor(wrong)
    assert "https" not in repr(read_monitor("https://hc.example/a"))
