"""The error taxonomy (001 Error Model): names, messages, details, causes."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from django_declarative_cron import exceptions, signals
from django_declarative_cron.core.declarations.problems import Check, Problem
from django_declarative_cron.cron import parse
from django_declarative_cron.exceptions import DeclarativeCronError, TaskListMismatchError, words_of

CAUSE = OperationalError("disk full")

SPECIFIED: dict[str, tuple[Callable[[], DeclarativeCronError], str, dict[str, Any]]] = {
    "RegistrationsNotArrayError": (
        exceptions.RegistrationsNotArrayError,
        "Registrations must be an array",
        {},
    ),
    "RegistrationShapeError": (
        lambda: exceptions.RegistrationShapeError(2, None),
        "Invalid registration shape: expected [string, string, function, Duration]",
        {"registrationIndex": 2, "received": None},
    ),
    "InvalidRegistrationError": (
        lambda: exceptions.InvalidRegistrationError("name", "", "must not be empty"),
        "Invalid registration: name must not be empty",
        {"field": "name", "value": "", "reason": "must not be empty"},
    ),
    "ScheduleDuplicateTaskError": (
        lambda: exceptions.ScheduleDuplicateTaskError("x"),
        'Task with name "x" is already scheduled',
        {"taskName": "x"},
    ),
    "CronExpressionInvalidError": (
        lambda: exceptions.CronExpressionInvalidError("60 * * * *", "minute", "is bad"),
        'Invalid cron expression "60 * * * *": minute field is bad',
        {"expression": "60 * * * *", "field": "minute", "reason": "is bad"},
    ),
    "NegativeRetryDelayError": (
        lambda: exceptions.NegativeRetryDelayError(-1000),
        "Retry delay must be non-negative",
        {"retryDelayMs": -1000},
    ),
    "ScheduleTaskError": (
        lambda: exceptions.ScheduleTaskError("t", "0 * * * *", CAUSE),
        "Failed to schedule task 't': disk full",
        {"name": "t", "cronExpression": "0 * * * *", "cause": CAUSE},
    ),
    "StopSchedulerError": (
        lambda: exceptions.StopSchedulerError(CAUSE),
        "Failed to stop scheduler: disk full",
        {"cause": CAUSE},
    ),
    "InvalidCronExpressionError": (
        lambda: exceptions.InvalidCronExpressionError("x", "expression", "is bad"),
        'Invalid cron expression "x": expression field is bad',
        {"expression": "x", "field": "expression", "reason": "is bad"},
    ),
    "FieldParseError": (
        lambda: exceptions.FieldParseError("is bad", "60", "minute"),
        "is bad",
        {"fieldValue": "60", "fieldName": "minute"},
    ),
    "CalendarError": (
        lambda: exceptions.CalendarError("holidays", "gives no answer"),
        "calendar 'holidays' gives no answer",
        {"calendar": "holidays", "reason": "gives no answer"},
    ),
    "CronCalculationError": (
        lambda: exceptions.CronCalculationError("0 * * * *", "2024-01-01T00:00:00Z", CAUSE),
        "Failed to calculate next occurrence: disk full",
        {"expression": "0 * * * *", "currentTime": "2024-01-01T00:00:00Z", "cause": CAUSE},
    ),
    "TaskTryDeserializeError": (
        lambda: exceptions.TaskTryDeserializeError("odd", field="f", value=1, expectedType="text"),
        "odd",
        {"field": "f", "value": 1, "expectedType": "text"},
    ),
    "TaskMissingFieldError": (
        lambda: exceptions.TaskMissingFieldError("name"),
        "Missing required field: name",
        {"field": "name"},
    ),
    "TaskInvalidTypeError": (
        lambda: exceptions.TaskInvalidTypeError("name", 123, "string"),
        "Invalid type for field 'name': expected string, got int",
        {"field": "name", "value": 123, "expectedType": "string", "actualType": "int"},
    ),
    "TaskInvalidValueError": (
        lambda: exceptions.TaskInvalidValueError("name", "x", "is not registered"),
        "Invalid value for field 'name': is not registered",
        {"field": "name", "value": "x", "reason": "is not registered"},
    ),
    "TaskInvalidStructureError": (
        lambda: exceptions.TaskInvalidStructureError(None, "null"),
        "Invalid task state: expected object, got null",
        {"value": None},
    ),
    "TaskListMismatchError": (
        lambda: TaskListMismatchError(["b", "a"], ["c", "b"]),
        "Persisted tasks do not match the declared ones: missing 'a'; unexpected 'c'",
        {"expected": ["a", "b"], "actual": ["b", "c"]},
    ),
}

CHILDREN = [
    "TaskMissingFieldError",
    "TaskInvalidTypeError",
    "TaskInvalidValueError",
    "TaskInvalidStructureError",
]


@pytest.mark.requirement("001 Error Taxonomy/1", "003 Test Methodology/1")
def test_every_error_of_the_package_is_shown_here() -> None:
    public = {
        name
        for name, found in vars(exceptions).items()
        if inspect.isclass(found) and issubclass(found, DeclarativeCronError) and name[0] != "_"
    }
    assert public == {*SPECIFIED, "DeclarativeCronError"}


@pytest.mark.requirement(
    "001 Error Taxonomy/1", "001 Error Throwing Guarantees/4", "003 Testable Invariants/11"
)
@pytest.mark.parametrize("name", SPECIFIED)
def test_an_error_has_its_name_message_and_details(name: str) -> None:
    make, message, details = SPECIFIED[name]
    error = make()
    assert type(error).__name__ == name
    assert isinstance(error, DeclarativeCronError)
    assert error.message == str(error) == message
    assert error.details == details
    for key, value in details.items():
        assert getattr(error, key) == value


@pytest.mark.parametrize("name", SPECIFIED)
def test_an_error_tells_its_name_unless_it_has_a_detail_of_that_name(name: str) -> None:
    error = SPECIFIED[name][0]()
    assert error.name == error.details.get("name", name)


@pytest.mark.parametrize("name", SPECIFIED)
def test_an_error_survives_pickling(name: str) -> None:
    error = SPECIFIED[name][0]()
    error.add_note("where it was")
    error.__dict__["code"] = "RANGE"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.message, str(copy)) == (type(error), error.message, str(error))
    assert repr(copy.details) == repr(error.details)
    assert (copy.__notes__, copy.code) == (["where it was"], "RANGE")


@pytest.mark.requirement("001 Error Taxonomy/13")
@pytest.mark.parametrize("name", CHILDREN)
def test_the_four_damages_have_one_base(name: str) -> None:
    assert issubclass(getattr(exceptions, name), exceptions.TaskTryDeserializeError)


def test_an_unknown_attribute_is_none_of_the_details() -> None:
    with pytest.raises(AttributeError, match="colour"):
        _ = exceptions.RegistrationsNotArrayError().colour


@pytest.mark.requirement("001 Error Throwing Guarantees/3")
@pytest.mark.parametrize(
    "name", ["ScheduleTaskError", "StopSchedulerError", "CronCalculationError"]
)
def test_the_cause_is_kept_as_it_is(name: str) -> None:
    assert SPECIFIED[name][0]().details["cause"] is CAUSE


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.requirement("001 Error Throwing Guarantees/5", "003 Error Handling/1")
@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ValueError("plain"), "plain"),
        (ValueError(""), "ValueError"),
        (_Unspeakable(), "_Unspeakable"),
        (ValueError("first\nDETAIL: Key (name)=(x) already exists."), "first"),
        (ValueError("\n\n  second  \nthird"), "second"),
        (ValueError("at postgres://me:hush@db:5432/shop"), "at postgres://***@db:5432/shop"),
        (ValueError("host=db password=hush user=me"), "host=db password=*** user=me"),
        (ValueError("password='hush hush' user=me"), "password=*** user=me"),
        (ValueError("{'PASSWORD': 'hush', 'HOST': 'db'}"), "{'PASSWORD': ***, 'HOST': 'db'}"),
        (ValueError("PGPASSWORD=hush"), "PGPASSWORD=***"),
        (ValueError("api_key: hush; left"), "api_key: ***; left"),
        (ValueError("auth_token=hush&x=1"), "auth_token=***&x=1"),
        (ValueError("the secret garden"), "the secret garden"),
        (ValueError('password authentication failed for "me"'),) * 2,
        (ValueError("\x1b[31mred"), r"\x1b[31mred"),
        (ValueError("x" * 600), "x" * 500 + "…"),
    ],
)
def test_a_cause_is_worded_in_one_line_without_secrets(cause: Exception, words: Any) -> None:
    assert words_of(cause) == (str(cause) if words is cause else words)


@pytest.mark.requirement("001 Error Throwing Guarantees/5")
@pytest.mark.parametrize("make", [exceptions.StopSchedulerError])
def test_a_message_has_no_password_and_its_details_have_the_cause(make: Any) -> None:
    cause = OperationalError("connection to host=db password=hush failed")
    error = make(cause)
    assert "hush" not in error.message
    assert "hush" not in str(error)
    assert "hush" in str(error.details["cause"])


@pytest.mark.parametrize(
    ("expected", "actual", "end"),
    [
        (["a"], [], "missing 'a'"),
        ([], ["a"], "unexpected 'a'"),
        ([f"t{n}" for n in range(9)], [], "missing 't0', 't1', 't2', 't3', 't4' and 4 more"),
    ],
)
def test_a_mismatch_names_what_differs_and_not_all_there_is(
    expected: list[str], actual: list[str], end: str
) -> None:
    error = TaskListMismatchError(expected, actual)
    assert error.message == f"Persisted tasks do not match the declared ones: {end}"
    assert (error.details["expected"], error.details["actual"]) == (expected, actual)


HOSTILE = "a\x1b[31m\u202eb\x9bc\nd"
ESCAPED = r"a\x1b[31m\u202eb\x9bc\nd"


def test_messages_escape_what_would_change_a_terminal() -> None:
    with pytest.raises(exceptions.InvalidCronExpressionError) as caught:
        parse(HOSTILE)
    assert ESCAPED in str(caught.value)
    assert str(caught.value).isprintable()
    assert caught.value.details["expression"] == HOSTILE
    refused = exceptions.InvalidRegistrationError(HOSTILE, None, HOSTILE, task=HOSTILE)
    assert refused.message.isprintable()


def test_a_problem_escapes_its_hint_too() -> None:
    problem = Problem(check=Check.NAME, place=HOSTILE, message=HOSTILE, hint=HOSTILE)
    for text in (problem.place, problem.message, problem.hint):
        assert text.replace("\n", "").isprintable()


def test_a_log_line_escapes_its_arguments_and_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    signals.report(HOSTILE, ValueError(HOSTILE))
    assert ESCAPED in caplog.messages[0]
    assert caplog.text.replace("\n", "").isprintable()
    assert "ValueError: a\\x1b[31m" in caplog.text
