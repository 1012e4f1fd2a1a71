"""What the posix dialect accepts, what it refuses, and how it says so (cases CP)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from django_declarative_cron.cron import CronExpression, parse
from django_declarative_cron.exceptions import FieldParseError, InvalidCronExpressionError


def refused(text: Any) -> InvalidCronExpressionError:
    with pytest.raises(InvalidCronExpressionError) as caught:
        parse(text)
    return caught.value


@pytest.mark.requirement("001 Cron Language Specification/1")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "0 * * * *",
            ({0}, range(24), range(1, 32), range(1, 13), range(7)),
            id="CP-01 stars name everything",
        ),
        pytest.param(
            "0-5 * * * *",
            (range(6), range(24), range(1, 32), range(1, 13), range(7)),
            id="CP-02 a range includes its end",
        ),
        pytest.param(
            "0,15,30,45 9-17 * * 1-5",
            ({0, 15, 30, 45}, range(9, 18), range(1, 32), range(1, 13), range(1, 6)),
            id="CP-03 lists and ranges",
        ),
        pytest.param(
            "0 0 1,15 * 1",
            ({0}, {0}, {1, 15}, range(1, 13), {1}),
            id="CP-05 both day fields",
        ),
        pytest.param(
            "59,0-2,58-59 23 31 12 6",
            ({0, 1, 2, 58, 59}, {23}, {31}, {12}, {6}),
            id="overlapping elements and highest values",
        ),
    ],
)
def test_fields_are_sets_of_values(text: str, expected: tuple[Any, ...]) -> None:
    cron = parse(text)
    fields = (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)
    assert fields == tuple(map(frozenset, expected))


@pytest.mark.requirement("001 Day-of-Month/Day-of-Week Semantics/1")
@pytest.mark.parametrize(
    ("text", "hour", "day", "weekday", "both"),
    [
        ("0 * * * *", False, False, False, False),
        ("0 0 1,15 * 1", True, True, True, True),
        ("0 0-23 1-31 * *", True, True, False, False),
        ("0 * * * 0-6", False, False, True, False),
        ("0-59 0-23 1-31 1-12 0-6", True, True, True, True),
    ],
)
def test_a_field_is_restricted_when_its_text_is_not_a_star(
    text: str, hour: bool, day: bool, weekday: bool, both: bool
) -> None:
    cron = parse(text)
    assert (cron.hour_restricted, cron.day_restricted, cron.weekday_restricted) == (
        hour,
        day,
        weekday,
    )
    assert cron.restricted_both is both


@pytest.mark.requirement("001 Cron Language Specification/1")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("0-59 * * * *", "* * * * *", id="CP-07 a full range is a star"),
        pytest.param("5,1,3,1,5 * * * *", "1,3,5 * * * *", id="CP-08 order and repetition"),
        pytest.param("5-5 * * * *", "5 * * * *", id="CP-09 a range of one"),
        pytest.param("00 00 01 01 00", "0 0 1 1 0", id="CP-10 leading zeros"),
        pytest.param("007 * * * *", "7 * * * *", id="CP-10 more leading zeros"),
        pytest.param("0" * 900 + "7 * * * *", "7 * * * *", id="CP-10 hundreds of zeros"),
        pytest.param("  0 * * * *  ", "0 * * * *", id="CP-11 outer spaces"),
        pytest.param("0\t*\t*\t*\t*", "0 * * * *", id="CP-11 tabs"),
        pytest.param("0  *   * *  *", "0 * * * *", id="CP-11 several spaces"),
    ],
)
def test_equal_meaning_is_equal_value(one: str, other: str) -> None:
    assert parse(one) == parse(other)
    assert hash(parse(one)) == hash(parse(other))
    assert parse(one).text == one


def test_cp_07_two_restricted_day_fields_are_another_value() -> None:
    assert parse("0-59 0-23 1-31 1-12 0-6") != parse("* * * * *")
    assert parse("* * * * *") != "* * * * *"


@pytest.mark.requirement(
    "001 Time Provider and Granularity/2",
    "001 Validation Rules/1",
    "001 Validation Rules/2",
    "001 Validation Rules/3",
    "001 Validation Rules/4",
    "001 Validation Rules/5",
    "001 Validation Rules/6",
    "001 Validation Rules/7",
    "001 Validation Rules/8",
    "001 Validation Rules/9",
)
@pytest.mark.parametrize(
    ("text", "field", "code"),
    [
        pytest.param("", "expression", "EMPTY", id="CP-13 nothing"),
        pytest.param("   ", "expression", "EMPTY", id="CP-13 spaces"),
        pytest.param("\t", "expression", "EMPTY", id="CP-13 a tab"),
        pytest.param("0 * * *", "expression", "COUNT", id="CP-14 four fields"),
        pytest.param("0 * * * * *", "expression", "COUNT", id="CP-14 six fields"),
        pytest.param(123, "expression", "TYPE", id="CP-15 a number"),
        pytest.param(None, "expression", "TYPE", id="CP-15 None"),
        pytest.param(["0 * * * *"], "expression", "TYPE", id="CP-15 a list"),
        pytest.param(b"0 * * * *", "expression", "TYPE", id="CP-15 bytes"),
        pytest.param("60 * * * *", "minute", "RANGE", id="CP-16"),
        pytest.param("* 24 * * *", "hour", "RANGE", id="CP-17 a number"),
        pytest.param("5 0-24 * * *", "hour", "RANGE", id="CP-17 the end of a range"),
        pytest.param("* * 0 * *", "day", "RANGE", id="CP-18 below"),
        pytest.param("* * 32 * *", "day", "RANGE", id="CP-18 above"),
        pytest.param("* * 0-5 * *", "day", "RANGE", id="CP-18 the start of a range"),
        pytest.param("* * * 0 *", "month", "RANGE", id="CP-19 below"),
        pytest.param("* * * 13 *", "month", "RANGE", id="CP-19 above"),
        pytest.param("* * * * 7", "weekday", "SUN7", id="CP-20"),
        pytest.param("* * * * 1-7", "weekday", "SUN7", id="CP-20 the end of a range"),
        pytest.param("* * * * 8", "weekday", "RANGE", id="CP-20 beyond 7"),
        pytest.param("*/15 * * * *", "minute", "STEP", id="CP-22 of a star"),
        pytest.param("0-30/5 * * * *", "minute", "STEP", id="CP-22 of a range"),
        pytest.param("* */6 * * *", "hour", "STEP", id="CP-22 in the hour"),
        pytest.param("*/0 * * * *", "minute", "STEP", id="VA-10 of zero"),
        pytest.param("0 0 * * mon", "weekday", "NAME", id="CP-24 a weekday"),
        pytest.param("0 0 * jan *", "month", "NAME", id="CP-24 a month"),
        pytest.param("0 0 1 january *", "month", "NAME", id="CP-24 a full name"),
        pytest.param("0 0 * * MON-FRI", "weekday", "NAME", id="CP-24 a range of names"),
        pytest.param("@daily", "expression", "MACRO", id="CP-26"),
        pytest.param(" @hourly", "expression", "MACRO", id="CP-26 behind a space"),
        pytest.param("@reboot", "expression", "MACRO", id="CP-26 reboot"),
        pytest.param("@every 5m", "expression", "MACRO", id="CP-26 before COUNT"),
        pytest.param("0 0 ? * *", "day", "QUARTZ", id="CP-28 ?"),
        pytest.param("0 0 L * *", "day", "QUARTZ", id="CP-28 L"),
        pytest.param("0 0 15W * *", "day", "QUARTZ", id="CP-28 W"),
        pytest.param("0 0 * * 5#3", "weekday", "QUARTZ", id="CP-28 #"),
        pytest.param("0 0 * * 5L", "weekday", "QUARTZ", id="CP-28 weekday L"),
        pytest.param("0 0 lw * *", "day", "QUARTZ", id="CP-28 in lower case"),
        pytest.param("5-3 * * * *", "minute", "WRAP", id="CP-29 minute"),
        pytest.param("0 0 * * 6-2", "weekday", "WRAP", id="CP-29 weekday"),
        pytest.param("60-5 * * * *", "minute", "RANGE", id="bounds before order"),
        pytest.param("1- * * * *", "minute", "FORMAT", id="CP-31 no end"),
        pytest.param("-5 * * * *", "minute", "FORMAT", id="CP-31 no start"),
        pytest.param("1--5 * * * *", "minute", "FORMAT", id="CP-31 two hyphens"),
        pytest.param("1-2-3 * * * *", "minute", "FORMAT", id="CP-31 three numbers"),
        pytest.param("-1-5 * * * *", "minute", "FORMAT", id="CP-31 negative start"),
        pytest.param("+5 * * * *", "minute", "FORMAT", id="CP-32 a sign"),
        pytest.param("1e1 * * * *", "minute", "FORMAT", id="CP-32 an exponent"),
        pytest.param("1E1 * * * *", "minute", "FORMAT", id="CP-32 an upper exponent"),
        pytest.param("0x10 * * * *", "minute", "FORMAT", id="hexadecimal"),
        pytest.param("1_0 * * * *", "minute", "FORMAT", id="an underscore"),
        pytest.param("٣ * * * *", "minute", "FORMAT", id="a digit of another script"),
        pytest.param("² * * * *", "minute", "FORMAT", id="a superscript"),
        pytest.param("* * * * \u200b1", "weekday", "FORMAT", id="a character without width"),
        pytest.param("** * * * *", "minute", "FORMAT", id="two stars"),
        pytest.param("*,5 * * * *", "minute", "FORMAT", id="a star in a list"),
        pytest.param("1.5 * * * *", "minute", "DECIMAL", id="CP-33"),
        pytest.param("1.0 * * * *", "minute", "DECIMAL", id="CP-33 a whole one"),
        pytest.param("1,,5 * * * *", "minute", "FORMAT", id="CP-36 two commas"),
        pytest.param("1, * * * *", "minute", "FORMAT", id="CP-36 a comma at the end"),
        pytest.param(",1 * * * *", "minute", "FORMAT", id="CP-36 a comma at the start"),
        pytest.param("1,60 * * * *", "minute", "RANGE", id="CP-37 second element"),
        pytest.param("1,abc * * * *", "minute", "NAME", id="CP-37 a word"),
        pytest.param("60,abc * * * *", "minute", "RANGE", id="leftmost element first"),
        pytest.param("1" * 900 + " * * * *", "minute", "RANGE", id="CP-39 hundreds of digits"),
        pytest.param("1" * 9999 + " * * * *", "expression", "LENGTH", id="CP-39 beyond int()"),
        pytest.param("60 25 * * *", "minute", "RANGE", id="CP-41 leftmost field first"),
        pytest.param("* 25 32 * *", "hour", "RANGE", id="CP-41 second field first"),
        pytest.param("0 0 30 2 *", "expression", "NEVER", id="CP-42 30 February"),
        pytest.param("0 0 31 4 *", "expression", "NEVER", id="CP-42 31 April"),
        pytest.param("0 0 31 2,4,6,9,11 *", "expression", "NEVER", id="CP-42 31st of short months"),
        pytest.param("0 0 30,31 2 *", "expression", "NEVER", id="CP-42 two days"),
        pytest.param("0\n* * * *", "expression", "FORMAT", id="a line break"),
        pytest.param("0 * * * *\r\n", "expression", "FORMAT", id="a line break at the end"),
        pytest.param("0\u00a0* * * *", "expression", "FORMAT", id="a space that does not break"),
        pytest.param("0 * * * *\x00", "expression", "FORMAT", id="a control character"),
        pytest.param("0 * * * * \x7f", "expression", "FORMAT", id="delete"),
        pytest.param("invalid-cron", "expression", "COUNT", id="VA-09"),
        pytest.param("1-0 * * * *", "minute", "WRAP", id="VA-10 backwards"),
    ],
)
def test_refusals_name_field_and_kind(text: Any, field: str, code: str) -> None:
    error = refused(text)
    assert (error.details["field"], error.code) == (field, code)
    assert error.details["expression"] is text or error.details["expression"] == text


@pytest.mark.requirement("001 Validation Rules/1")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("0 * * *", "found 4", id="CP-14 the number of fields"),
        pytest.param("0 * * * * *", "found 6", id="CP-14 no seconds"),
        pytest.param("invalid-cron", "found 1", id="VA-09 one word"),
        pytest.param("60 * * * *", "0-59", id="CP-16"),
        pytest.param("* 24 * * *", "0-23", id="CP-17"),
        pytest.param("* * 32 * *", "1-31", id="CP-18"),
        pytest.param("* * * 13 *", "1-12", id="CP-19"),
        pytest.param("* * * * 7", "0-6, found 7: Sunday is 0", id="CP-20"),
        pytest.param("0 0 ? * *", '"?"', id="CP-28 ?"),
        pytest.param("0 0 L * *", '"L"', id="CP-28 L"),
        pytest.param("0 0 15W * *", '"W"', id="CP-28 W"),
        pytest.param("0 0 * * 5#3", '"#"', id="CP-28 #"),
        pytest.param("0\u00a0* * * *", "U+00A0", id="a character one cannot see"),
        pytest.param("*/15 * * * *", 'write "0,15,30,45 * * * *"', id="steps spelled out"),
        pytest.param("* * * * * *", "no field for seconds", id="six stars"),
        pytest.param("0 9 * * * Europe/Berlin", 'the key "timezone"', id="P91 zone behind"),
        pytest.param("CRON_TZ=Europe/Berlin 0 9 * * *", 'the key "timezone"', id="P91 zone ahead"),
        pytest.param("TZ=UTC 0 9 * * *", 'the key "timezone"', id="P91 TZ"),
        pytest.param("0 9 * * Europe/Berlin", 'the key "timezone"', id="P91 zone as weekday"),
        pytest.param("0 9 * * * Etc/GMT+5", 'the key "timezone"', id="P91 zone with a digit"),
    ],
)
def test_reasons_point_at_the_place_and_the_way_out(text: str, told: str) -> None:
    assert told in refused(text).details["reason"]


@pytest.mark.requirement("001 Error Taxonomy/10", "001 Error Taxonomy/11")
def test_cp_45_the_message_is_the_specified_frame() -> None:
    error = refused("60 * * * *")
    reason = error.details["reason"]
    assert error.message == f'Invalid cron expression "60 * * * *": minute field {reason}'
    assert str(error) == error.message
    assert (error.expression, error.field, error.reason) == ("60 * * * *", "minute", reason)
    assert set(error.details) == {"expression", "field", "reason"}
    assert isinstance(error.__cause__, FieldParseError)
    assert (error.__cause__.fieldName, error.__cause__.fieldValue) == ("minute", "60")


@pytest.mark.requirement("003 Input Validation/2")
def test_a_long_text_is_shortened_in_the_message_and_whole_in_the_details() -> None:
    text = "1" * 900 + " * * * *"
    error = refused(text)
    assert error.details["expression"] == text
    assert error.message.startswith(f'Invalid cron expression "{"1" * 200}…": minute field')
    assert len(error.message) < 500


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2 0", "0 0 31 2,3 *", "0 0 30 2 0-6"])
def test_cp_43_a_date_that_comes_in_some_way_is_accepted(text: str) -> None:
    assert parse(text).text == text


def test_a_parsed_expression_cannot_be_changed() -> None:
    cron = parse("0 * * * *")
    with pytest.raises(AttributeError):
        cron.text = "1 * * * *"
    with pytest.raises(AttributeError):
        del cron.text
    with pytest.raises(AttributeError):
        cron.other = 1


def test_a_parsed_expression_survives_copy_and_pickle() -> None:
    cron = parse("0 9 * * 1-5")
    assert copy.deepcopy(cron) == cron
    assert pickle.loads(pickle.dumps(cron)).text == cron.text


def test_a_parsed_expression_shows_its_text() -> None:
    assert str(parse("0  9 * * 1-5")) == "0  9 * * 1-5"
    assert repr(parse("0 9 * * 1-5")) == "<CronExpression '0 9 * * 1-5' posix>"


def test_equal_texts_are_parsed_once() -> None:
    assert parse("3 1 4 1 5") is parse("3 1 4 1 5")


def test_a_subclass_of_str_is_taken_by_its_characters() -> None:
    class Sly(str):
        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            return "not what it holds"

        def split(self, *arguments: Any) -> list[str]:
            raise RuntimeError

    cron = parse(Sly("0 * * * *"))
    assert type(cron.text) is str
    assert cron == parse("0 * * * *")


def test_a_value_whose_text_fails_is_refused_like_any_other() -> None:
    class Mute:
        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            raise RuntimeError

    assert "<Mute>" in refused(Mute()).message
    assert refused(10**5000).details["field"] == "expression"


@pytest.mark.parametrize("dialect", ["vixie", "", None, ["posix"]])
def test_an_unknown_dialect_is_the_caller_s_mistake(dialect: Any) -> None:
    with pytest.raises(ValueError, match="unknown cron dialect"):
        parse("0 * * * *", dialect)


ANYTHING = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789*,-/ \t@LW#?amonju\n٣", max_size=30),
    st.binary(max_size=20),
    st.integers(),
    st.floats(),
    st.none(),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@pytest.mark.requirement("001 Cron Language Specification/1", "003 Input Validation/2")
@given(ANYTHING)
@settings(max_examples=25)
def test_whatever_comes_in_a_result_or_the_one_error_comes_out(value: Any) -> None:
    _result_or_error(value)


@pytest.mark.slow
@given(ANYTHING)
@settings(max_examples=1000)
def test_whatever_comes_much_of_it(value: Any) -> None:
    _result_or_error(value)


def _result_or_error(value: Any) -> None:
    try:
        result = parse(value)
    except InvalidCronExpressionError as error:
        assert error.message.startswith("Invalid cron expression")
        assert error.code
    else:
        assert isinstance(result, CronExpression)
