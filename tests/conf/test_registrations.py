"""Registration validation (VA): what each bad list is refused with, to the letter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Operating
from django_declarative_cron.core.retry import RetryPolicy
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.cron import parse
from django_declarative_cron.exceptions import (
    CronExpressionInvalidError,
    DeclarativeCronError,
    InvalidCronExpressionError,
    InvalidRegistrationError,
    NegativeRetryDelayError,
    RegistrationShapeError,
    RegistrationsNotArrayError,
    ScheduleDuplicateTaskError,
)

from ..callables import jobs
from .conftest import FIVE, PATH, declaration_of, entry, item, refused

NO_CALLBACKS: list[Any] = [None, 5, {}, True, PATH.encode()]
SHAPE = "Invalid registration shape: expected [string, string, function, Duration]"


@pytest.mark.requirement("001 Error Taxonomy/2")
@pytest.mark.parametrize("whole", ["x", None, 123, {}, (), (item(),), iter([])])
def test_va_01_what_is_no_list_is_refused_as_a_whole(whole: object) -> None:
    error = refused(whole)
    assert type(error) is RegistrationsNotArrayError
    assert error.message == str(error) == "Registrations must be an array"
    assert error.details == {}


@pytest.mark.requirement(
    "001 Registration Format/1",
    "001 Registration Format/2",
    "001 Registration Format/4",
    "001 Error Taxonomy/3",
)
@pytest.mark.parametrize(
    "given",
    [
        *(None, 123, "text", b"bytes", {1, 2, 3, 4}, object()),
        *((*item(), "more")[:length] for length in (0, 1, 2, 3, 5)),
        *map(item, (None, 123, {}, [], True, b"a")),
        *(item(cron=cron) for cron in (None, 123, ["0 * * * *"], b"0 * * * *")),
        *(item(callback=each) for each in NO_CALLBACKS),
    ],
)
def test_va_02_to_07_an_item_of_another_shape_is_named_by_its_index(given: object) -> None:
    error = refused([item(), item("b"), given, None])
    assert type(error) is RegistrationShapeError
    assert error.message == SHAPE
    assert error.details == {"registrationIndex": 2, "received": given}


@pytest.mark.requirement("001 Registration Format/5")
@pytest.mark.parametrize(
    ("delay", "proposal"),
    [
        (300, "write timedelta(seconds=300)."),
        (0.5, "write timedelta(seconds=0.5)."),
        ("PT5M", "write timedelta(minutes=5)."),
        (True, "write timedelta(minutes=5)."),
        (None, "write timedelta(minutes=5)."),
    ],
)
def test_a_delay_that_is_no_timedelta_is_told_how_to_write_one(delay: Any, proposal: str) -> None:
    error = refused([item(delay=delay)])
    assert type(error) is RegistrationShapeError
    kind = type(delay).__name__
    assert error.__notes__ == [f"registrations[0]: The retry delay is of type {kind}; {proposal}"]


@pytest.mark.requirement("001 Registration Format/3", "001 Error Taxonomy/6")
def test_va_09_a_cron_expression_that_is_none() -> None:
    error = refused([item(cron="invalid-cron")])
    assert type(error) is CronExpressionInvalidError
    assert (
        error.message == f'Invalid cron expression "invalid-cron": expression field {error.reason}'
    )
    assert (error.expression, error.field) == ("invalid-cron", "expression")
    assert "found 1" in error.reason
    assert error.code == "COUNT"
    assert type(error.__cause__) is InvalidCronExpressionError
    assert error.__cause__.message == error.message
    assert error.__cause__.details == error.details


def test_an_endless_cron_expression_is_shortened_in_the_message_only() -> None:
    endless = "1" * 100_000
    error = refused([item(cron=endless)])
    assert error.expression == endless
    assert len(error.message) < 1000


@pytest.mark.requirement("001 Registration Format/5", "001 Error Taxonomy/7")
@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [(timedelta(seconds=-1), -1000), (timedelta(microseconds=-500), -0.5), (timedelta(-1), -864e5)],
)
def test_va_12_a_negative_delay(delay: timedelta, milliseconds: float) -> None:
    for given in (item(delay=delay), entry(retry_delay=delay)):
        error = refused([given])
        assert type(error) is NegativeRetryDelayError
        assert error.message == "Retry delay must be non-negative"
        assert error.details == {"retryDelayMs": milliseconds}


@pytest.mark.requirement("001 Registration Format/5")
@pytest.mark.parametrize(
    "delay",
    [timedelta(0), timedelta(milliseconds=1), timedelta(microseconds=1500), timedelta(36_500)],
    ids=["VA-13 zero", "shortest", "with a fraction", "longest"],
)
def test_va_13_delays_that_are_accepted_as_they_are(delay: timedelta) -> None:
    assert declaration_of(item(delay=delay)).retry_delay == delay


TOO_SHORT = "must be zero or at least one millisecond, found"


@pytest.mark.parametrize(
    ("delay", "reason"),
    [
        (timedelta(microseconds=1), f"{TOO_SHORT} 0.001 ms"),
        (timedelta(microseconds=999), f"{TOO_SHORT} 0.999 ms"),
        (timedelta(days=36_500, microseconds=1), "must be at most 36500 days"),
        (timedelta.max, "must be at most 36500 days"),
    ],
)
def test_a_delay_out_of_bounds_is_refused(delay: timedelta, reason: str) -> None:
    error = refused([item(delay=delay)])
    assert type(error) is InvalidRegistrationError
    assert (error.field, error.value, error.reason) == ("retryDelay", delay, reason)
    assert error.message == f'Invalid registration "a": retryDelay {reason}'


@pytest.mark.requirement(
    "001 Registration Format/2",
    "001 Error Taxonomy/5",
    "004 Domains & Data Types/2",
    "004 Domains & Data Types/3",
)
@pytest.mark.parametrize(
    "second",
    [item("x", "5 * * * *"), item("x"), ["x", *item()[1:]]],
    ids=["VA-15 another schedule", "VA-16 identical", "as a list"],
)
def test_va_15_and_16_a_name_that_stands_twice(second: Any) -> None:
    error = refused([item("x"), second])
    assert type(error) is ScheduleDuplicateTaskError
    assert error.message == 'Task with name "x" is already scheduled'
    assert error.details == {"taskName": "x"}


@pytest.mark.requirement("001 Error Taxonomy/5", "004 Domains & Data Types/3")
def test_va_17_of_two_names_that_stand_twice_the_first_is_named() -> None:
    assert refused([item("a"), item("b"), item("a"), item("b")]).taskName == "a"


def test_a_tuple_and_a_dict_may_not_share_a_name() -> None:
    for both in ([item("a"), entry()], [entry(), item("a")]):
        assert type(refused(both)) is ScheduleDuplicateTaskError


@pytest.mark.requirement("001 Registration Format/2", "004 Domains & Data Types/1")
def test_va_18_names_are_taken_letter_for_letter() -> None:
    names = ["Task", "task", " task", "task ", "mañana", "мой", "a/b", "'", "x" * 255]
    declared = conf.declarations([item(name) for name in names])
    assert [each.name for each in declared] == names


@pytest.mark.requirement("001 Registration Format/2", "001 Error Taxonomy/4")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        ("x" * 256, "must have at most 255 characters, found 256"),
        ("a\nb", "must not contain control characters, found U+000A at position 1"),
        ("\0", "must not contain control characters, found U+0000 at position 0"),
        ("tab\t", "must not contain control characters, found U+0009 at position 3"),
        ("\x9b1m", "must not contain control characters, found U+009B at position 0"),
        ("\ud800", "must not contain control characters, found U+D800 at position 0"),
    ],
)
def test_names_that_are_refused(name: str, reason: str) -> None:
    error = refused([item(name)])
    assert type(error) is InvalidRegistrationError
    assert error.details == {"field": "name", "value": name, "reason": reason}
    assert error.message == f"Invalid registration: name {reason}"


class Words(str):
    def __str__(self) -> str:
        return "something else"


def test_a_subclass_of_str_is_taken_for_its_text() -> None:
    declared = declaration_of(item(Words("a"), Words("0 * * * *")))
    assert (type(declared.name), declared.name) == (str, "a")
    assert (type(declared.cron), declared.cron) == (str, "0 * * * *")


BAD_NAME, BAD_CRON, BAD_DELAY = "", "61 * * * *", timedelta(seconds=-1)


@pytest.mark.requirement(
    "001 Error Throwing Guarantees/1", "003 Testable Invariants/10", "004 Safety Axioms/4"
)
@pytest.mark.parametrize(
    ("registrations", "expected"),
    [
        ([item(BAD_NAME, BAD_CRON, "no.such", 5)], RegistrationShapeError),
        ([item(BAD_NAME, BAD_CRON, "no.such", BAD_DELAY)], InvalidRegistrationError),
        ([item(), item("a", BAD_CRON, "no.such", BAD_DELAY)], ScheduleDuplicateTaskError),
        ([item("b", BAD_CRON, "no.such", BAD_DELAY)], CronExpressionInvalidError),
        ([item("b", callback="no.such", delay=BAD_DELAY)], NegativeRetryDelayError),
        ([item("b", callback="no.such"), None], InvalidRegistrationError),
        ([item(cron=BAD_CRON), None], CronExpressionInvalidError),
    ],
    ids=["shape", "name", "duplicate", "cron", "delay", "callback", "item by item"],
)
def test_the_first_error_in_the_specified_order_is_raised(
    registrations: list[Any], expected: type[DeclarativeCronError]
) -> None:
    assert type(refused(registrations)) is expected


@pytest.mark.requirement("003 Input Validation/1")
def test_va_22_no_callback_is_called_by_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "calls", [])
    conf.declarations([item("a"), item("b", callback="tests.callables.jobs.Shop.close")])
    refused([item("a"), item("b", callback=jobs.half), item("a")])
    assert jobs.calls == []


def nested() -> Callable[[], None]:
    def inner() -> None:
        jobs.send_mail()

    return inner


@pytest.mark.requirement("001 Registration Format/4")
@pytest.mark.parametrize(
    ("callback", "text"),
    [
        (jobs.send_mail, "tests.callables.jobs.send_mail"),
        (jobs.send_later, "tests.callables.jobs.send_later"),
        ("tests.callables.jobs.send_mail", "tests.callables.jobs.send_mail"),
        ("tests.callables.jobs.Shop.close", "tests.callables.jobs.Shop.close"),
        ("tests.callables.jobs.shop.restock", "tests.callables.jobs.shop.restock"),
        (jobs.shop.restock, "tests.callables.jobs.Shop.restock"),
        (jobs.Shop.close, "tests.callables.jobs.Shop.close"),
        (jobs.Shop.open, "tests.callables.jobs.Shop.open"),
        (jobs.shop, "tests.callables.jobs.Shop"),
        (jobs.half, "functools.partial(tests.callables.jobs.send_mail)"),
        (partial(jobs.half, 1), "functools.partial(tests.callables.jobs.send_mail)"),
        (nested(), "tests.conf.test_registrations.nested.<locals>.inner"),
        (len, "builtins.len"),
    ],
)
def test_va_23_what_may_be_a_callback_and_the_text_it_is_known_by(callback: Any, text: str) -> None:
    declared = declaration_of(item(callback=callback))
    assert declared.target.text == text
    assert not declared.target.is_command
    if not isinstance(callback, str):
        assert declared.target.function == callback


def test_a_path_and_the_function_it_leads_to_are_one_declaration() -> None:
    by_path, by_function = declaration_of(item(callback=PATH)), declaration_of(item())
    assert by_path == by_function
    assert by_path.digest == by_function.digest


@pytest.mark.requirement("001 Error Taxonomy/6", "004 EA5")
def test_va_25_an_expression_that_can_never_fire() -> None:
    error = refused([item(cron="0 0 31 2 *")])
    assert type(error) is CronExpressionInvalidError
    assert (error.field, error.code) == ("expression", "NEVER")


def test_va_26_the_empty_list() -> None:
    assert conf.declarations([]) == []


@pytest.mark.requirement("001 Registration Format/1")
def test_an_item_may_be_a_list_of_four() -> None:
    assert conf.declarations([list(item())]) == conf.declarations([item()])


@pytest.mark.requirement("001 Error Throwing Guarantees/5")
def test_an_error_says_where_it_is_and_what_to_write() -> None:
    error = refused([item("a"), item("b", "*/15 * * * *")])
    hint = (
        'Write "0,15,30,45 * * * *", or write the task as a dict, whose dialect `ojs` accepts it.'
    )
    assert error.__notes__ == [f"registrations[1] 'b': {hint}"]


@pytest.mark.requirement("001 Timely Behavior/2")
@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "GMT", "Japan", "EST"])
def test_a_tuple_has_the_zone_of_the_project_whatever_django_accepts(
    settings: Any, name: str
) -> None:
    settings.TIME_ZONE = name
    declared = declaration_of(item())
    assert declared.timezone == declared.schedule.zone.key == name


def test_a_project_without_zone_is_read_in_utc(settings: Any) -> None:
    settings.TIME_ZONE = None
    assert declaration_of(item()).timezone == "UTC"


@pytest.mark.requirement("001 Timely Behavior/2")
def test_the_zone_of_tuples_may_be_given(settings: Any) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    (declared,) = conf.declarations([item()], time_zone="America/New_York")
    assert declared.timezone == "America/New_York"


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "/etc/passwd", "\0"])
def test_a_zone_of_the_project_that_is_not_installed(name: str) -> None:
    with pytest.raises(InvalidRegistrationError) as caught:
        conf.declarations([item()], time_zone=name)
    assert caught.value.field == "timezone"
    assert f"TIME_ZONE is {name!r}, which is not an IANA time zone" in caught.value.message


def test_settings_are_read_at_each_call(settings: Any) -> None:
    if hasattr(settings, "SCHEDULED_TASKS"):
        del settings.SCHEDULED_TASKS
    assert conf.registrations() == []
    settings.SCHEDULED_TASKS = [item("later")]
    assert [each.name for each in conf.declarations(conf.registrations())] == ["later"]
    settings.SCHEDULED_TASKS = None
    assert type(refused(conf.registrations())) is RegistrationsNotArrayError


def test_ten_thousand_tasks_are_read_in_well_under_a_second() -> None:
    # Counted, not timed: one reading resolves each path and parses each text once.
    many = [
        item(f"t{n}", f"{n % 60} * * * *", "tests.callables.jobs.send_mail") for n in range(10_000)
    ]
    declared = conf.declarations(many)
    assert len({id(each.target) for each in declared}) == 1
    assert len({id(each.schedule.expression) for each in declared}) == 60
    assert len({id(each.schedule.zone) for each in declared}) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": Schedule(parse("0  * * * *"), ZoneInfo("UTC"))},
        {"schedule": Schedule(parse("0 * * * *"), ZoneInfo("Asia/Tokyo"))},
        {"schedule": Schedule(parse("0 * * * *"), ZoneInfo("UTC"), gap="shift")},
        {"schedule": Schedule(parse("0 * * * *"), ZoneInfo("UTC"), fold="both")},
        {"schedule": Schedule(parse("0 * * * *", "ojs"), ZoneInfo("UTC"))},
        {"enabled": False},
        {"description": "words"},
        {"overlap_policy": "skip"},
        {"timeout": FIVE},
        {"runner": "process"},
        {"atomic": True},
        {"queue": "other"},
        {"tags": ("a",)},
        {"meta": {"a": 1}},
        {"options": {"a": 1}},
        {"entry": {"name": "t"}},
        {"retry": RetryPolicy()},
        {"operating": Operating(spread=FIVE)},
        {"operating": Operating(pause_after_failures=2)},
    ],
)
def test_the_digest_says_all_that_a_declaration_says(changes: dict[str, Any]) -> None:
    declaration = declaration_of(item())
    said = replace(declaration, **changes)
    assert said.as_data() != declaration.as_data()
    assert said.digest != declaration.digest
