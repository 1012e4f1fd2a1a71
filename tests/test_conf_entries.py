"""Dict entries: what each key holds, and that nothing in them is ignored silently."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration
from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.exceptions import (
    CronExpressionInvalidError,
    DeclarativeCronError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    ScheduleDuplicateTaskError,
)

from .callables import jobs

PATH = "tests.callables.jobs.send_mail"


async def _asynchronous() -> None: ...


def entry(**keys: Any) -> dict[str, Any]:
    given = {"name": "a", "cron": "0 * * * *", "callback": PATH, **keys}
    return {key: value for key, value in given.items() if value is not Ellipsis}


def declared(**keys: Any) -> Declaration:
    (declaration,) = conf.declarations([entry(**keys)])
    return declaration


def refused(*entries: dict[str, Any]) -> DeclarativeCronError:
    with pytest.raises(DeclarativeCronError) as caught:
        conf.declarations(list(entries))
    return caught.value


@pytest.mark.requirement("002 CRON-19")
def test_what_an_entry_has_when_it_says_no_more_than_it_must() -> None:
    declaration = declared()
    assert declaration.target.text == PATH
    assert declaration.target.args == ()
    assert declaration.timezone == "UTC"
    assert declaration.retry_delay is None
    assert declaration.retry == RetryPolicy()
    assert (declaration.schedule.gap, declaration.schedule.fold) == ("skip", "first")
    assert declaration.dialect == "ojs"
    assert declaration.overlap_policy == "skip"
    assert (declaration.timeout, declaration.queue) == (None, "default")
    assert (declaration.tags, declaration.meta) == ((), {})
    assert (declaration.enabled, declaration.description, declaration.options) == (True, "", {})


def test_every_key_reaches_the_declaration() -> None:
    declaration = declared(
        cron="30 2 * * *",
        timezone="America/New_York",
        args=[1, "two", None, {"three": [True, 0.5]}],
        enabled=False,
        description="Says\nwhy.",
        overlap_policy="coalesce",
        retry_delay=timedelta(seconds=7),
        dialect="posix",
        gap="shift",
        fold="both",
        options={"queue": "slow", "tags": ["a"], "meta": {"owner": "shop"}},
        runner="thread",
        atomic=False,
    )
    assert declaration.as_data() == {
        "name": "a",
        "cron": "30 2 * * *",
        "timezone": "America/New_York",
        "retry_delay_us": 7_000_000,
        "dialect": "posix",
        "gap": "shift",
        "fold": "both",
        "callback": PATH,
        "args": [1, "two", None, {"three": [True, 0.5]}],
        "command": False,
        "retry": None,
        "timeout": None,
        "runner": "thread",
        "atomic": False,
        "queue": "slow",
        "tags": ["a"],
        "meta": {"owner": "shop"},
        "enabled": False,
        "description": "Says\nwhy.",
        "overlap_policy": "coalesce",
        "options": {"queue": "slow", "tags": ["a"], "meta": {"owner": "shop"}},
    }


def test_tags_stand_beside_or_in_the_options() -> None:
    for keys in ({"tags": ["a", "b"]}, {"options": {"tags": ("a", "b")}}):
        declaration = declared(**keys)
        assert declaration.tags == ("a", "b")
        assert list(declaration.options["tags"]) == ["a", "b"]
    assert declared(tags=["a"], options={"tags": ["a"]}).tags == ("a",)
    error = refused(entry(tags=["a"], options={"tags": ["b"]}))
    assert (error.details["field"], error.details["reason"]) == (
        "tags",
        "differs from `options.tags`",
    )
    assert refused(entry(tags="a")).details["reason"] == "must be a list of words, not str"


@pytest.mark.requirement("002 CRON-15")
def test_the_zone_of_an_entry_is_utc_wherever_the_project_is(settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    assert declared().timezone == "UTC"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"type": PATH}, PATH),
        ({"command": ["clearsessions"]}, "clearsessions"),
        ({"command": "clearsessions"}, "clearsessions"),
        ({"command": ("clearsessions", "--verbosity", "0")}, "clearsessions --verbosity 0"),
        ({"callback": jobs.shop}, "tests.callables.jobs.Shop"),
    ],
)
def test_what_may_run(keys: dict[str, Any], text: str) -> None:
    target = declared(**{"callback": ..., **keys}).target
    assert target.text == text
    assert target.is_command is ("command" in keys)


@pytest.mark.requirement("002 CRON-02")
@pytest.mark.parametrize("name", ["a", "0", "nightly-stock", "shop.stock.count", "a" * 255, "1-.-"])
def test_names_that_are_accepted(name: str) -> None:
    assert declared(name=name).name == name


@pytest.mark.requirement("002 CRON-02")
@pytest.mark.parametrize("name", ["Task", "-a", ".a", "a b", "a_b", "é", "a\n"])
def test_names_that_are_refused(name: str) -> None:
    error = refused(entry(name=name))
    assert type(error) is InvalidRegistrationError
    assert (error.field, error.value) == ("name", name)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [("Send Digests", "send-digests"), ("__A.b!", "a.b"), ("é", "daily-report")],
)
def test_a_refused_name_is_told_one_that_is_taken(name: str, proposed: str) -> None:
    (problem,) = conf.problems([entry(name=name)])
    assert problem.hint == f'Write a name such as "{proposed}".'
    assert declared(name=proposed).name == proposed


@pytest.mark.requirement("001 Error Taxonomy/4", "002 CRON-05")
@pytest.mark.parametrize(
    ("keys", "field", "reason"),
    [
        ({"cron": ...}, "cron", "is missing"),
        ({"name": ...}, "name", "is missing"),
        ({"name": 5}, "name", "must be a text, not int"),
        ({"cron": 5}, "cron", "must be a text, not int"),
        ({"cron": None}, "cron", "must be a text, not NoneType"),
        ({"callback": None}, "callback", "must be a dotted path or a callable, not NoneType"),
        ({"callback": ..., "type": jobs.send_mail}, "type", "must be a dotted path, not function"),
        ({"enabled": 1}, "enabled", "must be True or False, not int"),
        ({"args": "abc"}, "args", "must be a list, not str"),
        ({"args": {}}, "args", "must be a list, not dict"),
        ({"retry_delay": 300}, "retry_delay", "must be a timedelta, not int"),
        (
            {"name": "Send Digests"},
            "name",
            "of a dict entry must be made of lower-case letters, digits, `-` and `.`, the first "
            "a letter or digit, found 'Send Digests'",
        ),
        ({"description": 5}, "description", "must be a text, not int"),
        (
            {"description": "a\0"},
            "description",
            "must not contain characters that cannot be stored, found U+0000 at position 1",
        ),
        ({"timezone": None}, "timezone", "must be a text, not NoneType"),
        ({"options": []}, "options", "must be a dict, not list"),
        ({"comand": ["x"]}, "comand", "is not a known key; did you mean `command`?"),
        ({"catch_up": 60}, "catch_up", "is not a known key; did you mean `catch_up_window`?"),
        (
            {"exclude": "holidays"},
            "exclude",
            "is not a known key; did you mean `exclude_calendars`?",
        ),
        ({"zzz": 1}, "zzz", "is not a known key"),
        ({5: 1}, "5", "is not a known key"),
        (
            {"callback": ...},
            "callback",
            "is missing: exactly one of `callback`, `type`, `command` says what runs",
        ),
        (
            {"command": ["clearsessions"]},
            "command",
            "cannot be combined with `callback`: "
            "exactly one of `callback`, `type`, `command` says what runs",
        ),
        (
            {"callback": "tests.callables.jobs.send_mial"},
            "callback",
            "`tests.callables.jobs.send_mial` not found; `send_mail` exists",
        ),
        (
            {"callback": ..., "type": "tests.callables.jobs.send_mial"},
            "type",
            "`tests.callables.jobs.send_mial` not found; `send_mail` exists",
        ),
        (
            {"callback": ..., "command": ["clearsesions"]},
            "command",
            "`clearsesions` not found; `clearsessions` exists",
        ),
        (
            {"callback": ..., "command": "clearsessions -v 0"},
            "command",
            "must be a list when it has several words",
        ),
        ({"callback": ..., "command": []}, "command", "must not be empty"),
        ({"callback": ..., "command": ""}, "command", "must not be empty"),
        ({"callback": ..., "command": ["clearsessions", 5]}, "command", "must be a list of texts"),
        (
            {"callback": ..., "command": ["clearsessions", "\0"]},
            "command",
            "must not contain characters that cannot be stored, found U+0000 at position 0",
        ),
        (
            {"callback": ..., "command": ["clearsessions"], "args": []},
            "args",
            "cannot be combined with `command`",
        ),
        (
            {"timezone": "Africa/blantyre"},
            "timezone",
            "'Africa/blantyre' is not an IANA time zone; did you mean `Africa/Blantyre`?",
        ),
        ({"timezone": "x" * 256}, "timezone", "must have at most 255 characters, found 256"),
        ({"gap": "shfit"}, "gap", "must be `skip` or `shift`; did you mean `shift`?"),
        ({"fold": "zzz"}, "fold", "must be `first` or `both`"),
        ({"dialect": "quartz"}, "dialect", "must be `posix` or `ojs`"),
        (
            {"overlap_policy": "enque"},
            "overlap_policy",
            "must be `coalesce` or `skip` or `allow` or `cancel_previous` or `enqueue`; "
            "did you mean `enqueue`?",
        ),
        ({"options": {"retry": 3}}, "options.retry", "must be a dict, not int"),
        (
            {"options": {"retry": {"max_attempts": 5}}, "retry_delay": timedelta(minutes=1)},
            "options.retry",
            "cannot be combined with `retry_delay`: set one of them",
        ),
        (
            {"options": {"retry": {"max_attempts": "3"}}},
            "options.retry.max_attempts",
            "must be a whole number from 0 to 10000, not str",
        ),
        (
            {"options": {"retry": {"max_atempts": 3}}},
            "options.retry.max_atempts",
            "is not a known key; did you mean `max_attempts`?",
        ),
        (
            {"options": {"retry": {"initial_interval": 30}}},
            "options.retry.initial_interval",
            "must be a text such as PT30S, not int",
        ),
        (
            {"options": {"timeout": 0}},
            "options.timeout",
            "must be from 1 ms to 365 d, not 0 s",
        ),
        (
            {"options": {"timeout": True}},
            "options.timeout",
            "must be a timedelta or a number of seconds, not True",
        ),
        (
            {"options": {"timeout": "10"}},
            "options.timeout",
            "must be a timedelta or a number of seconds, not str",
        ),
        (
            {"runner": "process", "callback": lambda: None},
            "runner",
            "`process` needs a callback with a dotted path; nothing leads to "
            "`tests.test_conf_entries.<lambda>`",
        ),
        (
            {"atomic": True, "callback": _asynchronous},
            "atomic",
            "cannot be combined with an `async def`, "
            "whose queries are in no transaction of its run",
        ),
        (
            {"runner": "thread", "options": {"memory_limit": 2**30}},
            "options.memory_limit",
            "only a process keeps to it; this task has the runner `thread`",
        ),
        (
            {"options": {"memory_limit": 1000}},
            "options.memory_limit",
            "must be a whole number from 67108864 to 1125899906842624 bytes, not 1000",
        ),
        (
            {"options": {"cpu_limit": 0.5}},
            "options.cpu_limit",
            "must be a whole number from 1 to 31536000 seconds, not 0.5",
        ),
        ({"options": {"queue": ""}}, "options.queue", "must have 1 to 255 characters, found 0"),
        ({"options": {"meta": []}}, "options.meta", "must be a dict, not list"),
        ({"options": {"tgas": []}}, "options.tgas", "is not a known key; did you mean `tags`?"),
        ({"options": {"queue": 5}}, "options.queue", "must be a text, not int"),
        ({"options": {"tags": [5]}}, "options.tags", "must be a list of texts"),
        ({"options": {"meta": {"a": b"x"}}}, "options.meta", '["a"] is a bytes, which JSON lacks'),
    ],
)
def test_what_is_refused_and_how(keys: dict[Any, Any], field: str, reason: str) -> None:
    given = {**entry(), **keys}
    error = refused({key: value for key, value in given.items() if value is not Ellipsis})
    assert type(error) is InvalidRegistrationError
    assert (error.field, error.reason) == (field, reason)
    task = ' "a"' if given["name"] == "a" else ""
    assert error.message == f"Invalid registration{task}: {field} {reason}"


@pytest.mark.parametrize(
    ("keys", "meant", "hint"),
    [
        ({"timeout": 60}, "options.timeout", 'Write "options": {"timeout": 60}.'),
        ({"time_limit": 60}, "options.timeout", 'Write "options": {"timeout": …}.'),
        ({"time_out": 60}, "options.timeout", 'Write "options": {"timeout": …}.'),
        ({"timeout": timedelta(minutes=5)}, "options.timeout", 'Write "options": {"timeout": …}.'),
        (
            {"max_attempts": 3},
            "options.retry.max_attempts",
            'Write "options": {"retry": {"max_attempts": 3}}.',
        ),
        # Three retries are four attempts.
        (
            {"max_retries": 3},
            "options.retry.max_attempts",
            'Write "options": {"retry": {"max_attempts": …}}.',
        ),
        (
            {"retries": 3},
            "options.retry.max_attempts",
            'Write "options": {"retry": {"max_attempts": …}}.',
        ),
        ({"function": "a.b"}, "callback", 'Write "callback".'),
        ({"jitter": 30}, "spread", 'Write "spread".'),
        ({"task": "a.b"}, "callback", 'Write "callback": "app.module.function".'),
        ({"schedule": 30}, "cron", 'Write "cron": "0 7 * * *".'),
        ({"comand": ["x"]}, "command", 'Write "command".'),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_meant(
    keys: dict[str, Any], meant: str, hint: str
) -> None:
    (problem,) = conf.problems([entry(**keys)])
    assert problem.message.endswith(f" is not a known key; did you mean `{meant}`?")
    assert problem.hint == hint


@pytest.mark.parametrize("options", [{"zzz": 1}, {"retry": {"zzz": 1}}])
def test_all_keys_are_listed_only_where_none_is_near(options: dict[str, Any]) -> None:
    (far,) = conf.problems([entry(options=options)])
    assert far.hint.startswith("Known ")
    assert "did you mean" not in far.message
    (near,) = conf.problems([entry(options={"tgas": []})])
    assert near.hint == "Write `tags`."
    (key,) = conf.problems([entry(zzz=1)])
    assert key.hint.startswith("Known keys: `name`, `cron`, ")


def test_the_hint_of_a_refused_option_describes_it() -> None:
    (problem,) = conf.problems([entry(options={"timeout": 0})])
    assert problem.hint == "Maximum duration of a run: a `timedelta` or a number of seconds."


def test_a_callback_that_may_have_to_be_ended_gets_a_process() -> None:
    assert declared().runner == "thread"
    assert declared(options={"timeout": 5}).runner == "process"
    assert declared(overlap_policy="cancel_previous").runner == "process"
    assert declared(options={"cpu_limit": 5}).runner == "process"
    assert declared(options={"timeout": 5}, runner="thread").runner == "thread"
    assert declared(options={"timeout": 5}, callback=lambda: None).runner == "thread"
    assert declared(options={"timeout": 5}, callback=_asynchronous).runner == "thread"


def test_what_engines_are_told_is_only_for_them() -> None:
    assert declared(runner="django_tasks", options={"priority": 5}).runner == "django_tasks"
    assert (
        "options.priority is for `django_tasks`" in refused(entry(options={"priority": 5})).message
    )
    wrong = refused(entry(runner="django_tasks", atomic=True)).message
    assert "atomic cannot be combined with `django_tasks`" in wrong


def test_a_thread_that_cannot_be_ended_is_warned_of() -> None:
    (problem,) = conf.problems([entry(runner="thread", options={"timeout": 5})])
    assert str(problem.check) == "declarative_cron.W060"
    assert conf.problems([entry(options={"timeout": 5})]) == []


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.requirement("002 CRON-05")
@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ([object()], "[0] is a object, which JSON lacks"),
        ([1, {"site": {"ids": {1, 2}}}], '[1]["site"]["ids"] is a set, which JSON lacks'),
        ([(1, 2)], "[0] is a tuple, which JSON lacks"),
        ([float("nan")], "[0] is nan, which JSON lacks"),
        ([[float("inf")]], "[0][0] is inf, which JSON lacks"),
        ([{5: 1}], "[0] has the key 5; keys of JSON objects are strings"),
        (
            ["a\0"],
            "[0] must not contain characters that cannot be stored, found U+0000 at position 1",
        ),
        (
            [{"\ud800": 1}],
            "[0] has a key that must not contain characters that cannot be stored, "
            "found U+D800 at position 0",
        ),
        (ENDLESS, "is nested more than 64 deep, or contains itself"),
    ],
)
def test_p93_arguments_are_json_native(args: list[Any], reason: str) -> None:
    error = refused(entry(args=args))
    assert type(error) is InvalidRegistrationError
    assert (error.field, error.reason) == ("args", reason)


def test_an_absent_description_may_be_none() -> None:
    assert declared(description=None).description == ""


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
    error = refused(entry(cron=cron))
    assert type(error) is CronExpressionInvalidError
    assert (error.field, error.reason) == (field, reason)
    assert error.message == f'Invalid cron expression "{cron}": {field} field {reason}'
    assert error.__notes__ == [f"registrations[0] 'a': {hint}"]


@pytest.mark.parametrize(
    ("cron", "hint"),
    [
        ("0 25 * * *", "Write an hour from 0 to 23."),
        ("60 0 0 * * *", "Write a second from 0 to 59."),
        ("0 0 * * 8", "Write a weekday from 0 to 7."),
        (
            "0 0 * * 5#6",
            'Write *, numbers, ranges or steps in the weekday field, such as "1,3-5" or "*/2".',
        ),
        (
            "0 0 * *",
            "Write five fields, minute hour day month weekday, or six with seconds first, "
            'such as "*/15 9-17 * * MON-FRI".',
        ),
    ],
)
def test_the_hint_of_a_refused_field_names_its_values(cron: str, hint: str) -> None:
    (problem,) = conf.problems([entry(cron=cron)])
    assert problem.hint == hint


def test_the_hint_for_posix_names_the_dialect_that_accepts_it() -> None:
    (problem,) = conf.problems([entry(cron="*/30 * * * *", dialect="posix")])
    assert problem.hint == 'Write "0,30 * * * *", or set "dialect": "ojs", which accepts it.'


def test_an_entry_that_says_posix_is_held_to_it() -> None:
    assert refused(entry(cron="@daily", dialect="posix")).reason == (
        'must not be a macro ("@daily"); write "0 0 * * *"'
    )


def test_a_retry_policy_is_merged_over_its_defaults() -> None:
    declaration = declared(options={"retry": {"max_attempts": 5, "initial_interval": "PT1M"}})
    assert declaration.retry == RetryPolicy(max_attempts=5, initial_interval=timedelta(minutes=1))


def test_a_time_limit_is_in_seconds() -> None:
    assert declared(options={"timeout": 600}).timeout == timedelta(minutes=10)
    assert declared(options={"timeout": 0.25}).timeout == timedelta(milliseconds=250)


def test_another_retry_policy_is_no_override() -> None:
    one = declared(options={"retry": {"max_attempts": 5}})
    other = declared(options={"retry": {"initial_interval": "PT9S"}})
    assert one.identity == other.identity
    assert one.digest != other.digest
    assert declared(retry_delay=timedelta(seconds=1)).identity != one.identity


def test_delays_are_judged_as_in_tuples() -> None:
    assert type(refused(entry(retry_delay=timedelta(-1)))) is NegativeRetryDelayError
    assert refused(entry(retry_delay=timedelta(microseconds=1))).field == "retry_delay"
    assert declared(retry_delay=timedelta(0)).retry_delay == timedelta(0)


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
ORDER = [
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
@pytest.mark.parametrize("mended", range(len(ORDER)))
def test_errors_come_in_the_specified_order(mended: int) -> None:
    keys = dict(BROKEN)
    for _, change in ORDER[: mended + 1]:
        keys.update(change)
    expected = ORDER[mended][0]
    error = refused(entry(name="twice"), entry(**keys))
    if isinstance(expected, str):
        assert (type(error), error.field) == (InvalidRegistrationError, expected)
    else:
        assert type(error) is expected


def test_keys_of_the_scheduler_are_ignored_and_said_so() -> None:
    given = entry(last_run_at=None, next_run_at="x", run_count=5, created_at="x")
    assert conf.declarations([given]) == conf.declarations([entry()])
    (one,) = conf.problems([entry(created_at="x")])
    assert one.message == "`created_at` is kept by the scheduler; what stands here is ignored."
    (found,) = conf.problems([given])
    assert str(found.check) == "declarative_cron.W008"
    assert found.message == (
        "`last_run_at`, `next_run_at`, `run_count`, `created_at` are kept by the scheduler; "
        "what stands here is ignored."
    )
