"""Habits from other schedulers and swapped values: the hint says what to write."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import conf

CALLBACK = "tests.callables.jobs.send_mail"
ENTRY = {"name": "a", "cron": "0 7 * * *", "timezone": "UTC", "callback": CALLBACK}


class Crontab:
    """The attributes in which Celery keeps what was written."""

    _orig_minute, _orig_hour = "*/15", 7
    _orig_day_of_month = _orig_month_of_year = "*"
    _orig_day_of_week = "mon-fri"


def hints(entry: object) -> list[str]:
    return [each.hint for each in conf.problems([entry]) if each.check.level == "E"]


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"schedule": Crontab()}, 'Write "cron": "*/15 7 * * mon-fri".'),
        ({"cron": Crontab()}, 'Write "cron": "*/15 7 * * mon-fri".'),
        ({"schedule": timedelta(minutes=2)}, 'Write "cron": "@every 120s".'),
        ({"schedule": 30.0}, 'Write "cron": "0 7 * * *".'),
        ({"task": "shop.tasks.send"}, 'Write "callback": "app.module.function".'),
        ({"name": "0 7 * * *", "cron": "a"}, 'the name is "a", the expression "0 7 * * *".'),
    ],
)
def test_an_entry_of_another_habit_says_what_to_write(change: dict[str, Any], hint: str) -> None:
    found = hints({**ENTRY, **change})
    assert any(each.endswith(hint) for each in found), found


def test_a_tuple_with_name_and_expression_swapped_says_so() -> None:
    (hint,) = hints(("0 7 * * *", "daily", CALLBACK, timedelta(0)))
    assert hint == 'Swap them: the name is "daily", the expression "0 7 * * *".'


def test_a_timeout_is_a_timedelta_too() -> None:
    (declaration,) = conf.declarations([{**ENTRY, "options": {"timeout": timedelta(minutes=5)}}])
    assert declaration.timeout == timedelta(minutes=5)
    (same,) = conf.declarations([{**ENTRY, "options": {"timeout": 300.0}}])
    assert declaration.digest == same.digest
    (problem,) = conf.problems([{**ENTRY, "options": {"timeout": timedelta(0)}}])
    assert "must be from 0.001 s to 365 days, not 0 s" in problem.message


@pytest.mark.parametrize("name", ["GMT", "EST", "Zulu"])
def test_a_zone_without_continent_is_refused_and_not_called_unknown(name: str) -> None:
    (problem,) = conf.problems([{**ENTRY, "timezone": name}])
    assert "is refused: only IANA names with a continent, and UTC, are accepted" in problem.message


def test_a_sink_without_address_says_what_to_write(settings: Any) -> None:
    settings.DECLARATIVE_CRON = {"EVENT_SINK": {"secret": "whsec_" + "a" * 32}}
    (problem,) = conf.option_problems()
    assert problem.hint.startswith('Write {"url": "https://')
