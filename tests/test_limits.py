"""The limits of a declaration: the same for settings and HTTP, and short in every message."""

from __future__ import annotations

import re
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations import values
from django_declarative_cron.core.declarations.keys import KEYS
from django_declarative_cron.core.declarations.options import JOB_OPTIONS
from django_declarative_cron.core.declarations.problems import Problem
from django_declarative_cron.core.retry import POLICY_KEYS as RETRY_KEYS
from django_declarative_cron.exceptions import LONGEST_ECHO

CALLBACK = "tests.callables.jobs.send_mail"
ENTRY = {"name": "a", "cron": "0 7 * * *", "timezone": "UTC", "callback": CALLBACK}
LONG = "x" * 5000


def refused(*entries: Any) -> list[Problem]:
    return [each for each in conf.problems(list(entries)) if each.check.level == "E"]


def cron_of(length: int) -> str:
    minutes = "0," * length
    return f"{minutes[: length - 10]}0 7 * * *".rjust(length)


@pytest.mark.parametrize(
    ("key", "value", "longer", "words"),
    [
        ("cron", cron_of(1000), cron_of(1001), "must have at most 1000 characters, found 1001"),
        ("description", "d" * 2000, "d" * 2001, "must have at most 2000 characters, found 2001"),
        ("args", ["d" * 65532], ["d" * 65533], "must have at most 65536 characters as JSON"),
        ("command", ["check"] * 200, ["check"] * 201, "must have at most 200 items, found 201"),
    ],
)
def test_a_limit_is_kept_to_the_letter(key: str, value: Any, longer: Any, words: str) -> None:
    entry = {k: v for k, v in ENTRY.items() if key != "command" or k != "callback"}
    assert refused({**entry, key: value}) == []
    (problem,) = refused({**entry, key: longer})
    assert problem.check == "declarative_cron.E018"
    assert words in problem.message


def test_options_have_limits_too() -> None:
    meta = {"meta": {"a": "d" * values.LONGEST_DATA}}
    (problem,) = refused({**ENTRY, "options": meta})
    assert "must have at most 65536 characters as JSON" in problem.message
    (problem,) = refused({**ENTRY, "options": {"tags": ["a"] * 51}})
    assert "must have at most 50 items, found 51" in problem.message
    (problem,) = refused({**ENTRY, "options": {"tags": ["a" * 256]}})
    assert "must have at most 255 characters, found 256" in problem.message


def test_an_import_path_is_not_followed_when_it_is_too_long() -> None:
    (problem,) = refused({**ENTRY, "callback": "tests." + LONG})
    assert problem.check == "declarative_cron.E018"


def test_no_message_repeats_more_than_the_beginning_of_a_value() -> None:
    entries: list[dict[Any, Any]] = [{**ENTRY, key: LONG} for key in KEYS]
    entries += [{**ENTRY, key: [LONG]} for key in KEYS]
    entries += [{**ENTRY, LONG: 1}, {**ENTRY, "args": [{LONG: object()}]}]
    entries += [{**ENTRY, "options": {key: LONG}} for key in (*JOB_OPTIONS, LONG)]
    entries += [{**ENTRY, "options": {key: [LONG]}} for key in (*JOB_OPTIONS, LONG)]
    entries += [{**ENTRY, "options": {"retry": {key: LONG}}} for key in (*RETRY_KEYS, LONG)]
    entries += [{**ENTRY, "monitor": {LONG: 1}}, {**ENTRY, "command": f"{LONG} {LONG}"}]
    entries += [{**ENTRY, "cron": "x" * 255, "name": "X" * 255, "timezone": "x" * 255}]
    entries += [{**ENTRY, "cron": f"0 7 * * * Europe/{'x' * 400}", "overlap_policy": LONG}]
    for entry in entries:
        for problem in refused(entry):
            said = f"{problem.place} {problem.message} {problem.hint}".lower()
            longest = max(map(len, re.findall("x+", said)), default=0)
            assert longest <= LONGEST_ECHO, (longest, said[:200], problem)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retry": {"max_attempts": 10_001}}, "from 0 to 10000"),
        ({"retry": {"backoff_coefficient": 1001}}, "from 1 to 1000"),
        ({"retry": {"max_interval": "P36501D"}}, "at most 36500 days, not 36501 days"),
        ({"memory_limit": 2**60}, "from 67108864 to 1125899906842624 bytes"),
        ({"cpu_limit": 10**9}, "from 1 to 31536000 seconds"),
        ({"timeout": 10**400}, "from 1 ms to 365 d"),
        ({"priority": 101}, "from -100 to 100"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_its_bounds(
    options: dict[str, Any], words: str
) -> None:
    (problem, *_) = refused({**ENTRY, "options": options})
    assert words in problem.message


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("spread", 86_401, "from 0 s to 1 d, not 1 d 1 s"),
        ("catch_up_window", 10**400, "from 0 s to 36500 d"),
        ("pause_after_failures", 10**400, "from 1 to 10000"),
    ],
)
def test_a_number_beside_the_options_has_bounds_too(key: str, value: int, words: str) -> None:
    (problem,) = refused({**ENTRY, key: value})
    assert words in problem.message
