"""What is allowed, works, and is seldom meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks

from django_declarative_cron import checks
from django_declarative_cron.core.lint import CROWD

pytestmark = pytest.mark.usefixtures("still_clock")

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
