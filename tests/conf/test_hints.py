"""The hint with each refusal: what to write instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.exceptions import CronExpressionInvalidError

from .conftest import entry, item, problems_of, refused

TIMEOUT = 'Write "options": {"timeout": …}.'
ATTEMPTS = 'Write "options": {"retry": {"max_attempts": …}}.'


class Crontab:
    """The attributes in which Celery keeps what was written."""

    _orig_minute, _orig_hour = "*/15", 7
    _orig_day_of_month = _orig_month_of_year = "*"
    _orig_day_of_week = "mon-fri"


@pytest.mark.parametrize(
    ("keys", "meant", "hint"),
    [
        ({"timeout": 60}, "options.timeout", 'Write "options": {"timeout": 60}.'),
        ({"timeout": timedelta(minutes=5)}, "options.timeout", TIMEOUT),
        ({"time_limit": 60}, "options.timeout", TIMEOUT),
        ({"time_out": 60}, "options.timeout", TIMEOUT),
        (
            {"max_attempts": 3},
            "options.retry.max_attempts",
            'Write "options": {"retry": {"max_attempts": 3}}.',
        ),
        # Three retries are four attempts.
        ({"max_retries": 3}, "options.retry.max_attempts", ATTEMPTS),
        ({"retries": 3}, "options.retry.max_attempts", ATTEMPTS),
        ({"function": "a.b"}, "callback", 'Write "callback".'),
        ({"task": "a.b"}, "callback", 'Write "callback": "app.module.function".'),
        ({"jitter": 30}, "spread", 'Write "spread".'),
        ({"comand": ["x"]}, "command", 'Write "command".'),
        ({"catch_up": 60}, "catch_up_window", 'Write "catch_up_window".'),
        ({"exclude": "holidays"}, "exclude_calendars", 'Write "exclude_calendars".'),
        ({"schedule": 30}, "cron", 'Write "cron": "0 7 * * *".'),
        ({"schedule": 30.0}, "cron", 'Write "cron": "0 7 * * *".'),
        ({"schedule": timedelta(minutes=2)}, "cron", 'Write "cron": "@every 120s".'),
        ({"schedule": Crontab()}, "cron", 'Write "cron": "*/15 7 * * mon-fri".'),
        ({"options": {"tgas": []}}, "tags", "Write `tags`."),
        ({"options": {"retry": {"max_atempts": 3}}}, "max_attempts", "Write `max_attempts`."),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_meant(
    keys: dict[str, Any], meant: str, hint: str
) -> None:
    (problem,) = problems_of(entry(**keys))
    assert problem.message.endswith(f" is not a known key; did you mean `{meant}`?")
    assert problem.hint == hint


@pytest.mark.parametrize(
    ("keys", "hint"),
    [
        ({"options": {"zzz": 1}}, "Known options: `queue`, "),
        ({"options": {"retry": {"zzz": 1}}}, "Known keys: `max_attempts`, "),
        ({"zzz": 1}, "Known keys: `name`, `cron`, "),
    ],
)
def test_all_keys_are_listed_only_where_none_is_near(keys: dict[str, Any], hint: str) -> None:
    (problem,) = problems_of(entry(**keys))
    assert problem.hint.startswith(hint)
    assert "did you mean" not in problem.message


AS_DICT = "or write the task as a dict, whose dialect `ojs` accepts it."
FIVE_FIELDS = "Write five fields, minute hour day month weekday"
ZERO = "Write timedelta(0) to retry after one second."


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (entry(name="Send Digests"), 'Write a name such as "send-digests".'),
        (entry(name="__A.b!"), 'Write a name such as "a.b".'),
        (entry(name="é"), 'Write a name such as "daily-report".'),
        (
            entry(options={"timeout": 0}),
            "Maximum duration of a run: a `timedelta` or a number of seconds.",
        ),
        (item(delay=timedelta(seconds=-5)), ZERO),
        (item(delay=timedelta(microseconds=5)), ZERO),
        (item(delay=timedelta(days=36_501)), "Write timedelta(days=365)."),
        (entry(cron=Crontab()), 'Write "cron": "*/15 7 * * mon-fri".'),
        # the dialect ojs
        (entry(cron="0 25 * * *"), "Write an hour from 0 to 23."),
        (entry(cron="60 0 0 * * *"), "Write a second from 0 to 59."),
        (entry(cron="0 0 * * 8"), "Write a weekday from 0 to 7."),
        (
            entry(cron="0 0 * * 5#6"),
            'Write *, numbers, ranges or steps in the weekday field, such as "1,3-5" or "*/2".',
        ),
        (
            entry(cron="0 0 * *"),
            f'{FIVE_FIELDS}, or six with seconds first, such as "*/15 9-17 * * MON-FRI".',
        ),
        # the dialect posix
        (
            entry(cron="*/30 * * * *", dialect="posix"),
            'Write "0,30 * * * *", or set "dialect": "ojs", which accepts it.',
        ),
        (item("0 7 * * *", "daily"), 'Swap them: the name is "daily", the expression "0 7 * * *".'),
        *(
            (item(cron=cron), hint)
            for cron, hint in (
                ("*/15 * * * *", f'Write "0,15,30,45 * * * *", {AS_DICT}'),
                ("0 4 * * MON-FRI", f'Write "0 4 * * 1-5", {AS_DICT}'),
                ("0 0 1 jan *", f'Write "0 0 1 1 *", {AS_DICT}'),
                ("@daily", f'Write "0 0 * * *", {AS_DICT}'),
                ("0 0 * * 7", f'Write "0 0 * * 0", {AS_DICT}'),
                ("0 0 30 2 *", "Name a day that at least one of the months has."),
                ("0 0 L * *", "Write the task as a dict, whose dialect `ojs` accepts it."),
                ("0 25 * * *", "Write an hour from 0 to 23."),
                ("0 25 * * 7", "Write an hour from 0 to 23."),
                ("60 * * * *", "Write a minute from 0 to 59."),
                ("0 0 0 * *", "Write a day from 1 to 31."),
                ("0 0 1-40 * *", "Write a day from 1 to 31."),
                ("0 0 1 13 *", "Write a month from 1 to 12."),
                ("0 0 * * 8", "Write a weekday from 0 to 6."),
                ("1" * 900 + " * * * *", "Write a minute from 0 to 59."),
                ("0 x * * *", 'Write * or numbers and ranges in the hour field, such as "1,3-5".'),
                ("0 0 * *", f'{FIVE_FIELDS}, such as "0 7 * * 1-5".'),
                ("1" * 10_000, f'{FIVE_FIELDS}, such as "0 7 * * 1-5".'),
            )
        ),
        *(
            (item(cron=cron), f'Write a dict with "cron": "0 9 * * *", "timezone": "{zone}".')
            for cron, zone in (
                ("0 9 * * * Europe/Berlin", "Europe/Berlin"),
                ("CRON_TZ=Europe/Berlin 0 9 * * *", "Europe/Berlin"),
                ("TZ=UTC 0 9 * * *", "UTC"),
            )
        ),
    ],
)
def test_the_hint_of_a_refusal_is_what_to_write(given: Any, hint: str) -> None:
    (problem,) = problems_of(given)
    assert problem.hint == hint


def test_an_entry_with_name_and_expression_swapped_says_so_beside_the_name() -> None:
    _, problem = problems_of(entry(name="0 7 * * *", cron="a"))
    assert problem.hint == 'Swap them: the name is "a", the expression "0 7 * * *".'


@pytest.mark.requirement("002 CRON-03", "002 CRON-11")
@pytest.mark.parametrize(
    ("cron", "field", "reason", "hint"),
    [
        (
            "0 4 * * FRY",
            "weekday",
            'must use names such as SUN, found "FRY" (character 9); write "FRI"',
            'Write "0 4 * * FRI".',
        ),
        (
            "0 4 * * FRI-MON",
            "weekday",
            'must not wrap around, "FRI-MON" runs backwards (character 9); write "FRI-SUN,MON"',
            'Write "0 4 * * FRI-SUN,MON".',
        ),
        (
            "@every 1d",
            "expression",
            'must be a duration in h, m, s and ms, found "1d" (character 8); write "24h"',
            'Write "@every 24h".',
        ),
        (
            "0 9 * * * Europe/Berlin",
            "weekday",
            'must have a whole number as its step, found "Berlin" (character 18); '
            'give the time zone by the key "timezone", not in the expression',
            'Write a dict with "cron": "0 9 * * *", "timezone": "Europe/Berlin".',
        ),
    ],
)
def test_a_refused_expression_is_told_where_and_what_to_write(
    cron: str, field: str, reason: str, hint: str
) -> None:
    error = refused([entry(cron=cron)])
    assert type(error) is CronExpressionInvalidError
    assert (error.field, error.reason) == (field, reason)
    assert error.message == f'Invalid cron expression "{cron}": {field} field {reason}'
    assert error.__notes__ == [f"registrations[0] 'a': {hint}"]


def test_an_entry_that_says_posix_is_held_to_it() -> None:
    assert refused([entry(cron="@daily", dialect="posix")]).reason == (
        'must not be a macro ("@daily"); write "0 0 * * *"'
    )
