"""What entries are refused for."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.core.declarations.keys import KEYS
from django_declarative_cron.core.declarations.options import JOB_OPTIONS
from django_declarative_cron.core.retry import POLICY_KEYS as RETRY_KEYS
from django_declarative_cron.exceptions import (
    LONGEST_ECHO,
    CronExpressionInvalidError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    ScheduleDuplicateTaskError,
)

from ..callables import jobs
from .conftest import PATH, entry, problems_of, refused

LONG = "x" * 5000
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)

ONE_OF = "exactly one of `callback`, `type`, `command` says what runs"
UNSTORABLE = "must not contain characters that cannot be stored, found"
NO_DURATION = "must be a timedelta or a number of seconds, not"
BEYOND = "999999999 d 23 h 59 min 59 s"
FOUND_NEAR = "`tests.callables.jobs.send_mial` not found; `send_mail` exists"
NAMED = (
    "of a dict entry must be made of lower-case letters, digits, `-` and `.`, the first "
    "a letter or digit, found"
)


async def _asynchronous() -> None: ...


@pytest.mark.requirement("001 Error Taxonomy/4", "002 CRON-02", "002 CRON-05")
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"cron": ...}, "cron is missing"),
        ({"cron": 5}, "cron must be a text, not int"),
        ({"cron": None}, "cron must be a text, not NoneType"),
        ({"name": ...}, "name is missing"),
        ({"name": 5}, "name must be a text, not int"),
        *(
            ({"name": name}, f"name {NAMED} {name!r}")
            for name in ("Send Digests", "Task", "-a", ".a", "a b", "a_b", "é")
        ),
        (
            {"name": "a\n"},
            "name must not contain control characters, found U+000A at position 1",
        ),
        ({"description": 5}, "description must be a text, not int"),
        ({"description": "a\0"}, f"description {UNSTORABLE} U+0000 at position 1"),
        ({"timezone": None}, "timezone must be a text, not NoneType"),
        ({"timezone": "x" * 256}, "timezone must have at most 255 characters, found 256"),
        (
            {"timezone": "Africa/blantyre"},
            "timezone 'Africa/blantyre' is not an IANA time zone; did you mean `Africa/Blantyre`?",
        ),
        *(
            (
                {"timezone": name},
                f"timezone {name!r} is refused: only IANA names with a continent, "
                f"and UTC, are accepted; did you mean `{near}`?",
            )
            for name, near in (
                ("GMT", "Etc/GMT"),
                ("EST", "America/New_York"),
                ("Zulu", "Etc/Zulu"),
            )
        ),
        ({"enabled": 1}, "enabled must be True or False, not int"),
        ({"gap": "shfit"}, "gap must be `skip` or `shift`; did you mean `shift`?"),
        ({"fold": "zzz"}, "fold must be `first` or `both`"),
        ({"dialect": "quartz"}, "dialect must be `posix` or `ojs`"),
        (
            {"overlap_policy": "enque"},
            "overlap_policy must be `coalesce` or `skip` or `allow` or `cancel_previous` or "
            "`enqueue`; did you mean `enqueue`?",
        ),
        ({"retry_delay": 300}, "retry_delay must be a timedelta, not int"),
        (
            {"retry_delay": timedelta(microseconds=1)},
            "retry_delay must be zero or at least one millisecond, found 0.001 ms",
        ),
        ({"tags": "a"}, "tags must be a list of words, not str"),
        ({"tags": ["a"], "options": {"tags": ["b"]}}, "tags differs from `options.tags`"),
        ({"zzz": 1}, "zzz is not a known key"),
        ({5: 1}, "5 is not a known key"),
        # what runs
        ({"callback": ...}, f"callback is missing: {ONE_OF}"),
        ({"callback": None}, "callback must be a dotted path or a callable, not NoneType"),
        ({"callback": "tests.callables.jobs.send_mial"}, f"callback {FOUND_NEAR}"),
        ({"callback": ..., "type": "tests.callables.jobs.send_mial"}, f"type {FOUND_NEAR}"),
        ({"callback": ..., "type": jobs.send_mail}, "type must be a dotted path, not function"),
        ({"callback": "tests." + LONG}, "callback must have at most 200 characters, found 5006"),
        ({"command": ["check"]}, f"command cannot be combined with `callback`: {ONE_OF}"),
        (
            {"callback": ..., "command": ["clearsesions"]},
            "command `clearsesions` not found; `clearsessions` exists",
        ),
        (
            {"callback": ..., "command": "check -v 0"},
            "command must be a list when it has several words",
        ),
        ({"callback": ..., "command": []}, "command must not be empty"),
        ({"callback": ..., "command": ""}, "command must not be empty"),
        ({"callback": ..., "command": ["check", 5]}, "command must be a list of texts"),
        (
            {"callback": ..., "command": ["check", "\0"]},
            f"command {UNSTORABLE} U+0000 at position 0",
        ),
        (
            {"callback": ..., "command": ["check"], "args": []},
            "args cannot be combined with `command`",
        ),
        # arguments
        ({"args": "abc"}, "args must be a list, not str"),
        ({"args": {}}, "args must be a list, not dict"),
        ({"args": [object()]}, "args [0] is a object, which JSON lacks"),
        (
            {"args": [1, {"site": {"ids": {1, 2}}}]},
            'args [1]["site"]["ids"] is a set, which JSON lacks',
        ),
        ({"args": [(1, 2)]}, "args [0] is a tuple, which JSON lacks"),
        ({"args": [float("nan")]}, "args [0] is nan, which JSON lacks"),
        ({"args": [[float("inf")]]}, "args [0][0] is inf, which JSON lacks"),
        ({"args": [{5: 1}]}, "args [0] has the key 5; keys of JSON objects are strings"),
        ({"args": ["a\0"]}, f"args [0] {UNSTORABLE} U+0000 at position 1"),
        ({"args": [{"\ud800": 1}]}, f"args [0] has a key that {UNSTORABLE} U+D800 at position 0"),
        ({"args": ENDLESS}, "args is nested more than 64 deep, or contains itself"),
        # operating
        ({"spread": 0.5}, "spread must be from 1 s to 1 d, not 500 ms"),
        ({"spread": "P2D"}, "spread must be from 0 s to 1 d, not 2 d"),
        ({"spread": 86_401}, "spread must be from 0 s to 1 d, not 1 d 1 s"),
        ({"spread": True}, f"spread {NO_DURATION} True"),
        ({"catch_up_window": -1}, "catch_up_window must be from 0 s to 36500 d, not -1 s"),
        (
            {"catch_up_window": 10**400},
            f"catch_up_window must be from 0 s to 36500 d, not {BEYOND}",
        ),
        (
            {"catch_up_window": "soon"},
            "catch_up_window 'soon' is not a duration in ISO 8601: "
            "write for example PT30S, PT5M or PT1H30M",
        ),
        ({"catch_up_window": float("inf")}, f"catch_up_window {NO_DURATION} inf"),
        ({"exclude_calendars": [5]}, "exclude_calendars must be names of calendars, found 5"),
        *(
            (
                {"pause_after_failures": number},
                f"pause_after_failures must be a whole number from 1 to 10000, not {shown}",
            )
            for number, shown in (
                (0, "0"),
                (True, "True"),
                (10**400, "100000000000000000...0000000000000000000"),
            )
        ),
        # options
        ({"options": []}, "options must be a dict, not list"),
        ({"options": {"queue": 5}}, "options.queue must be a text, not int"),
        ({"options": {"queue": ""}}, "options.queue must have 1 to 255 characters, found 0"),
        ({"options": {"tags": [5]}}, "options.tags must be a list of texts"),
        ({"options": {"tags": ["a"] * 51}}, "options.tags must have at most 50 items, found 51"),
        (
            {"options": {"tags": ["a" * 256]}},
            "options.tags must have at most 255 characters, found 256",
        ),
        ({"options": {"meta": []}}, "options.meta must be a dict, not list"),
        ({"options": {"meta": {"a": b"x"}}}, 'options.meta ["a"] is a bytes, which JSON lacks'),
        (
            {"options": {"meta": {"a": "d" * 65_536}}},
            "options must have at most 65536 characters as JSON, found 65555",
        ),
        ({"options": {"timeout": 0}}, "options.timeout must be from 1 ms to 365 d, not 0 s"),
        (
            {"options": {"timeout": 10**400}},
            f"options.timeout must be from 1 ms to 365 d, not {BEYOND}",
        ),
        ({"options": {"timeout": True}}, f"options.timeout {NO_DURATION} True"),
        ({"options": {"timeout": "10"}}, f"options.timeout {NO_DURATION} str"),
        *(
            (
                {"options": {"memory_limit": number}},
                "options.memory_limit must be a whole number from 67108864 to 1125899906842624 "
                f"bytes, not {number}",
            )
            for number in (1000, 2**60)
        ),
        *(
            (
                {"options": {"cpu_limit": number}},
                "options.cpu_limit must be a whole number from 1 to 31536000 seconds, "
                f"not {number}",
            )
            for number in (0.5, 10**9)
        ),
        (
            {"runner": "django_tasks", "options": {"priority": 101}},
            "options.priority must be a whole number from -100 to 100, not 101",
        ),
        ({"options": {"retry": 3}}, "options.retry must be a dict, not int"),
        (
            {"options": {"retry": {"max_attempts": 5}}, "retry_delay": timedelta(minutes=1)},
            "options.retry cannot be combined with `retry_delay`: set one of them",
        ),
        *(
            (
                {"options": {"retry": {"max_attempts": number}}},
                f"options.retry.max_attempts must be a whole number from 0 to 10000, not {shown}",
            )
            for number, shown in (("3", "str"), (10_001, "10001"))
        ),
        (
            {"options": {"retry": {"backoff_coefficient": 1001}}},
            "options.retry.backoff_coefficient must be a number from 1 to 1000, not 1001",
        ),
        (
            {"options": {"retry": {"initial_interval": 30}}},
            "options.retry.initial_interval must be a text such as PT30S, not int",
        ),
        (
            {"options": {"retry": {"max_interval": "P36501D"}}},
            "options.retry.max_interval must be at most 36500 days, not 36501 days",
        ),
        # runners
        (
            {"runner": "process", "callback": lambda: None},
            "runner `process` needs a callback with a dotted path; nothing leads to "
            "`tests.conf.test_refused_entries.<lambda>`",
        ),
        (
            {"runner": "thread", "options": {"memory_limit": 2**30}},
            "options.memory_limit only a process keeps to it; this task has the runner `thread`",
        ),
        ({"options": {"priority": 5}}, "options.priority is for `django_tasks`"),
        (
            {"runner": "django_tasks", "atomic": True},
            "atomic cannot be combined with `django_tasks`",
        ),
        (
            {"atomic": True, "callback": _asynchronous},
            "atomic cannot be combined with an `async def`, "
            "whose queries are in no transaction of its run",
        ),
    ],
)
def test_what_is_refused_and_how(keys: dict[Any, Any], said: str) -> None:
    given = {**entry(), **keys}
    error = refused([{key: value for key, value in given.items() if value is not Ellipsis}])
    assert type(error) is InvalidRegistrationError
    assert f"{error.field} {error.reason}" == said
    task = ' "a"' if given["name"] == "a" else ""
    assert error.message == f"Invalid registration{task}: {said}"


# --- lengths ---


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
    runs = {"callback": ...} if key == "command" else {}
    assert problems_of(entry(**runs, **{key: value})) == []
    (problem,) = problems_of(entry(**runs, **{key: longer}))
    assert problem.check == "declarative_cron.E018"
    assert words in problem.message


def test_no_message_repeats_more_than_the_beginning_of_a_value() -> None:
    given: list[dict[Any, Any]] = [{key: LONG} for key in KEYS]
    given += [{key: [LONG]} for key in KEYS]
    given += [{LONG: 1}, {"args": [{LONG: object()}]}]
    given += [{"options": {key: LONG}} for key in (*JOB_OPTIONS, LONG)]
    given += [{"options": {key: [LONG]}} for key in (*JOB_OPTIONS, LONG)]
    given += [{"options": {"retry": {key: LONG}}} for key in (*RETRY_KEYS, LONG)]
    given += [{"monitor": {LONG: 1}}, {"command": f"{LONG} {LONG}"}]
    given += [{"cron": "x" * 255, "name": "X" * 255, "timezone": "x" * 255}]
    given += [{"cron": f"0 7 * * * Europe/{'x' * 400}", "overlap_policy": LONG}]
    for keys in given:
        for problem in problems_of({**entry(timezone="UTC"), **keys}):
            said = f"{problem.place} {problem.message} {problem.hint}".lower()
            longest = max(map(len, re.findall("x+", said)), default=0)
            assert longest <= LONGEST_ECHO, (longest, said[:200], problem)


# --- which error comes first ---


BROKEN: dict[str, Any] = {
    "unknown": 1,
    "enabled": 1,
    "name": "A",
    "callback": "no.such",
    "cron": "61 * * * *",
    "timezone": "EST",
    "retry_delay": timedelta(-1),
    "options": {"retry": {"jitter": 1}, "queue": 5},
    "overlap_policy": "skipp",
}
ORDER: list[tuple[str | type[Exception], dict[str, Any]]] = [
    ("unknown", {}),
    ("enabled", {"unknown": ...}),
    ("name", {"enabled": True}),
    ("callback", {"name": "twice"}),
    (ScheduleDuplicateTaskError, {"callback": PATH}),
    (CronExpressionInvalidError, {"name": "once"}),
    ("timezone", {"cron": "0 * * * *"}),
    (NegativeRetryDelayError, {"timezone": "UTC"}),
    ("options.retry", {"retry_delay": timedelta(0)}),
    ("options.retry.jitter", {"retry_delay": ...}),
    ("overlap_policy", {"options": {"queue": 5}}),
    ("options.queue", {"overlap_policy": "skip"}),
]


@pytest.mark.requirement("002 CRON-01")
@pytest.mark.parametrize("fixed", range(len(ORDER)))
def test_errors_come_in_the_specified_order(fixed: int) -> None:
    keys = dict(BROKEN)
    for _, change in ORDER[: fixed + 1]:
        keys.update(change)
    expected = ORDER[fixed][0]
    error = refused([entry(name="twice"), entry(**keys)])
    if isinstance(expected, str):
        assert (type(error), error.field) == (InvalidRegistrationError, expected)
    else:
        assert type(error) is expected
