"""What each dialect refuses: the field, the kind, the character, and the way out (cases CP)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from django_declarative_cron.cron import DIALECTS, CronExpression, parse
from django_declarative_cron.exceptions import FieldParseError, InvalidCronExpressionError

from .strategies import ojs_texts


def refused(text: Any, dialect: str = "posix") -> InvalidCronExpressionError:
    with pytest.raises(InvalidCronExpressionError) as caught:
        parse(text, dialect)
    return caught.value


BOTH = [
    # text, field, code; in ojs also position and fix
    pytest.param("", "expression", "EMPTY", 0, None, id="CP-13 nothing"),
    pytest.param("   ", "expression", "EMPTY", 0, None, id="CP-13 spaces"),
    pytest.param("\t", "expression", "EMPTY", 0, None, id="CP-13 a tab"),
    pytest.param("0 * * *", "expression", "COUNT", 6, None, id="CP-14 four fields"),
    pytest.param(123, "expression", "TYPE", None, None, id="CP-15 a number"),
    pytest.param(None, "expression", "TYPE", None, None, id="CP-15 None"),
    pytest.param(["0 * * * *"], "expression", "TYPE", None, None, id="CP-15 a list"),
    pytest.param(b"0 * * * *", "expression", "TYPE", None, None, id="CP-15 bytes"),
    pytest.param("60 * * * *", "minute", "RANGE", 0, None, id="CP-16"),
    pytest.param("* 24 * * *", "hour", "RANGE", 2, None, id="CP-17 a number"),
    pytest.param("5 0-24 * * *", "hour", "RANGE", 4, None, id="CP-17 the end of a range"),
    pytest.param("* * 0 * *", "day", "RANGE", 4, None, id="CP-18 below"),
    pytest.param("* * 32 * *", "day", "RANGE", 4, None, id="CP-18 above"),
    pytest.param("* * 0-5 * *", "day", "RANGE", 4, None, id="CP-18 the start of a range"),
    pytest.param("* * * 0 *", "month", "RANGE", 6, None, id="CP-19 below"),
    pytest.param("* * * 13 *", "month", "RANGE", 6, None, id="CP-19 above"),
    pytest.param("* * * * 8", "weekday", "RANGE", 8, None, id="CP-20 beyond 7"),
    pytest.param("*/0 * * * *", "minute", "STEP", 0, "*", id="VA-10 of zero"),
    pytest.param("0 0 1 january *", "month", "NAME", 6, "JAN", id="CP-24 a full name"),
    pytest.param("@reboot", "expression", "MACRO", 0, None, id="CP-26 reboot"),
    pytest.param("0 0 ? * *", "day", "QUARTZ", 4, "*", id="CP-28 ?"),
    pytest.param("5-3 * * * *", "minute", "WRAP", 0, "5-59,0-3", id="CP-29 minute"),
    pytest.param("0 0 * * 6-2", "weekday", "WRAP", 8, "6-7,1-2", id="CP-29 weekday"),
    pytest.param("60-5 * * * *", "minute", "RANGE", 0, None, id="bounds before order"),
    pytest.param("1- * * * *", "minute", "FORMAT", 0, None, id="CP-31 no end"),
    pytest.param("-5 * * * *", "minute", "FORMAT", 0, None, id="CP-31 no start"),
    pytest.param("1--5 * * * *", "minute", "FORMAT", 0, None, id="CP-31 two hyphens"),
    pytest.param("1-2-3 * * * *", "minute", "FORMAT", 0, None, id="CP-31 three numbers"),
    pytest.param("-1-5 * * * *", "minute", "FORMAT", 0, None, id="CP-31 negative start"),
    pytest.param("+5 * * * *", "minute", "FORMAT", 0, None, id="CP-32 a sign"),
    pytest.param("1e1 * * * *", "minute", "FORMAT", 0, None, id="CP-32 an exponent"),
    pytest.param("1E1 * * * *", "minute", "FORMAT", 0, None, id="CP-32 an upper exponent"),
    pytest.param("0x10 * * * *", "minute", "FORMAT", 0, None, id="hexadecimal"),
    pytest.param("1_0 * * * *", "minute", "FORMAT", 0, None, id="an underscore"),
    pytest.param("٣ * * * *", "minute", "FORMAT", 0, None, id="a digit of another script"),
    pytest.param("² * * * *", "minute", "FORMAT", 0, None, id="a superscript"),
    pytest.param("* * * * \u200b1", "weekday", "FORMAT", 8, None, id="a character without width"),
    pytest.param("** * * * *", "minute", "FORMAT", 0, None, id="two stars"),
    pytest.param("*,5 * * * *", "minute", "FORMAT", 0, None, id="a star in a list"),
    pytest.param("1.5 * * * *", "minute", "DECIMAL", 0, None, id="CP-33"),
    pytest.param("1.0 * * * *", "minute", "DECIMAL", 0, None, id="CP-33 a whole one"),
    pytest.param("1,,5 * * * *", "minute", "FORMAT", 2, None, id="CP-36 two commas"),
    pytest.param("1, * * * *", "minute", "FORMAT", 2, None, id="CP-36 a comma at the end"),
    pytest.param(",1 * * * *", "minute", "FORMAT", 0, None, id="CP-36 a comma at the start"),
    pytest.param("1,60 * * * *", "minute", "RANGE", 2, None, id="CP-37 second element"),
    pytest.param("1,abc * * * *", "minute", "NAME", 2, None, id="CP-37 a word"),
    pytest.param("60,abc * * * *", "minute", "RANGE", 0, None, id="leftmost element first"),
    pytest.param("1" * 900 + " * * * *", "minute", "RANGE", 0, None, id="CP-39 hundreds of digits"),
    pytest.param("1" * 9999 + " * * * *", "expression", "LENGTH", None, None, id="CP-39 beyond"),
    pytest.param("60 25 * * *", "minute", "RANGE", 0, None, id="CP-41 leftmost field first"),
    pytest.param("* 25 32 * *", "hour", "RANGE", 2, None, id="CP-41 second field first"),
    pytest.param("0 0 30 2 *", "expression", "NEVER", 4, None, id="CP-42 30 February"),
    pytest.param("0 0 31 4 *", "expression", "NEVER", 4, None, id="CP-42 31 April"),
    pytest.param("0 0 31 2,4,6,9,11 *", "expression", "NEVER", 4, None, id="CP-42 short months"),
    pytest.param("0 0 30,31 2 *", "expression", "NEVER", 4, None, id="CP-42 two days"),
    pytest.param("0\n* * * *", "expression", "FORMAT", 1, None, id="a line break"),
    pytest.param("0 * * * *\r\n", "expression", "FORMAT", 9, None, id="a line break at the end"),
    pytest.param(
        "0\u00a0* * * *", "expression", "FORMAT", 1, None, id="a space that does not break"
    ),
    pytest.param("0 * * * *\x00", "expression", "FORMAT", 9, None, id="a control character"),
    pytest.param("0 * * * * \x7f", "expression", "FORMAT", 10, None, id="delete"),
    pytest.param("invalid-cron", "expression", "COUNT", 0, None, id="VA-09"),
    pytest.param("1-0 * * * *", "minute", "WRAP", 0, "1-59,0", id="VA-10 backwards"),
    ("0 0 * * * * 2024", "expression", "COUNT", 12, None),
    ("daily", "expression", "COUNT", 0, "@daily"),
    ("0 0 1,5,32 * *", "day", "RANGE", 8, None),
    ("0-30/00 * * * *", "minute", "STEP", 0, "0-30"),
    ("*/x * * * *", "minute", "STEP", 2, None),
    ("*/ * * * *", "minute", "STEP", 2, None),
    ("*/-5 * * * *", "minute", "STEP", 2, None),
    ("*/1.5 * * * *", "minute", "STEP", 2, None),
    ("*/5/2 * * * *", "minute", "STEP", 2, None),
    ("5/15 * * * *", "minute", "STEP", 0, "5-59/15"),
    ("59/15 * * * *", "minute", "STEP", 0, "59-59/15"),
    ("0 0 * * MON/2", "weekday", "STEP", 8, "MON-6/2"),
    ("0 0 * JAN/3 *", "month", "STEP", 6, "JAN-12/3"),
    ("0 22-2 * * *", "hour", "WRAP", 2, "22-23,0-2"),
    ("0 22-0 * * *", "hour", "WRAP", 2, "22-23,0"),
    ("0 0 * 12-1 *", "month", "WRAP", 6, "12,1"),
    ("0 0 * * 5-1", "weekday", "WRAP", 8, "5-7,1"),
    ("0 0 * * MONDAY", "weekday", "NAME", 8, "MON"),
    ("0 0 * * Monday-friday", "weekday", "NAME", 8, "MON-FRI"),
    ("0 0 * * mno", "weekday", "NAME", 8, "MON"),
    ("0 0 * jan-xyz *", "month", "NAME", 10, None),
    ("abc * * * *", "minute", "NAME", 0, None),
    ("0 0 mon * *", "day", "NAME", 4, None),
    ("0 0 * * ?", "weekday", "QUARTZ", 8, "*"),
    ("0 0 L-3 * *", "day", "QUARTZ", 4, None),
    ("0 0 1-5W * *", "day", "QUARTZ", 4, None),
    ("0 0 5#3 * *", "day", "QUARTZ", 4, None),
    ("0 0 * * L", "weekday", "QUARTZ", 8, None),
    ("0 0 * * 5W", "weekday", "QUARTZ", 8, None),
    ("0 0 * * 6#", "weekday", "QUARTZ", 8, None),
    ("L * * * *", "minute", "QUARTZ", 0, None),
    ("0 0 1 L *", "month", "QUARTZ", 6, None),
    ("5,* * * * *", "minute", "FORMAT", 2, None),
    ("0 0 * * ſun", "weekday", "FORMAT", 8, None),
    ("@dayly", "expression", "MACRO", 0, "@daily"),
    ("@wee\u212aly", "expression", "MACRO", 0, "@weekly"),
    ("@daily 5", "expression", "MACRO", 7, None),
]
ONLY_POSIX = [
    # text, field, code
    pytest.param("0 * * * * *", "expression", "COUNT", id="CP-14 six fields"),
    pytest.param("* * * * 7", "weekday", "SUN7", id="CP-20"),
    pytest.param("* * * * 1-7", "weekday", "SUN7", id="CP-20 the end of a range"),
    pytest.param("*/15 * * * *", "minute", "STEP", id="CP-22 of a star"),
    pytest.param("0-30/5 * * * *", "minute", "STEP", id="CP-22 of a range"),
    pytest.param("* */6 * * *", "hour", "STEP", id="CP-22 in the hour"),
    pytest.param("0 0 * * mon", "weekday", "NAME", id="CP-24 a weekday"),
    pytest.param("0 0 * jan *", "month", "NAME", id="CP-24 a month"),
    pytest.param("0 0 * * MON-FRI", "weekday", "NAME", id="CP-24 a range of names"),
    pytest.param("@daily", "expression", "MACRO", id="CP-26"),
    pytest.param(" @hourly", "expression", "MACRO", id="CP-26 behind a space"),
    pytest.param("@every 5m", "expression", "MACRO", id="CP-26 before COUNT"),
    pytest.param("0 0 L * *", "day", "QUARTZ", id="CP-28 L"),
    pytest.param("0 0 15W * *", "day", "QUARTZ", id="CP-28 W"),
    pytest.param("0 0 * * 5#3", "weekday", "QUARTZ", id="CP-28 #"),
    pytest.param("0 0 * * 5L", "weekday", "QUARTZ", id="CP-28 weekday L"),
    pytest.param("0 0 lw * *", "day", "QUARTZ", id="CP-28 in lower case"),
]
ONLY_OJS = [
    # text, field, code, position, fix
    ("60 0 0 * * *", "second", "RANGE", 0, None),
    ("0 60 0 * * *", "minute", "RANGE", 2, None),
    ("0 0 0W * *", "day", "RANGE", 4, None),
    ("0 0 32W * *", "day", "RANGE", 4, None),
    ("0 0 * * 8L", "weekday", "RANGE", 8, None),
    ("0 0 * * 5#6", "weekday", "RANGE", 10, None),
    ("0 0 * * 5#0", "weekday", "RANGE", 10, None),
    ("0 0 * * 1#1,5#6", "weekday", "RANGE", 14, None),
    ("0 0 * NOV-FEB *", "month", "WRAP", 6, "NOV-DEC,JAN-FEB"),
    ("0 0 * * FRI-MON", "weekday", "WRAP", 8, "FRI-SUN,MON"),
    ("0 0 * * FRI-TUE", "weekday", "WRAP", 8, "FRI-SUN,MON-TUE"),
    ("50-10/5 * * * *", "minute", "WRAP", 0, None),
    ("0 0 L/2 * *", "day", "QUARTZ", 4, None),
    ("0 0 WL * *", "day", "FORMAT", 4, None),
    ("/5 * * * *", "minute", "FORMAT", 0, None),
    ("0 0 30 FEB *", "expression", "NEVER", 4, None),
    ("0 0 31W 2-2 *", "expression", "NEVER", 4, None),
    ("@every", "expression", "FORMAT", 0, None),
    ("@every 5", "expression", "FORMAT", 7, None),
    ("@every h", "expression", "FORMAT", 7, None),
    ("@every -5m", "expression", "FORMAT", 7, None),
    ("@every 1.5h", "expression", "FORMAT", 7, None),
    ("@every 5\u00b5s", "expression", "FORMAT", 7, None),
    ("@every 1d", "expression", "FORMAT", 7, "24h"),
    ("@every 2 days", "expression", "FORMAT", 7, "48h"),
    ("@every 1h 30m", "expression", "FORMAT", 7, "1h30m"),
    ("@every 30m1h", "expression", "FORMAT", 7, "1h30m"),
    ("@every  5 minutes", "expression", "FORMAT", 8, "5m"),
    ("@every 1000000h", "expression", "RANGE", 7, None),
    ("@every " + "9" * 900 + "h", "expression", "RANGE", 7, None),
]


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
    "002 CRON-11",
)
@pytest.mark.parametrize(("text", "field", "code", "position", "fix"), BOTH)
def test_what_both_dialects_refuse(
    text: Any, field: str, code: str, position: int | None, fix: str | None
) -> None:
    _is_refused_by_posix(text, field, code)
    _is_refused_by_ojs(text, field, code, position, fix)


@pytest.mark.parametrize(("text", "field", "code"), ONLY_POSIX)
def test_what_posix_alone_refuses(text: str, field: str, code: str) -> None:
    _is_refused_by_posix(text, field, code)
    assert parse(text, "ojs").text == text


@pytest.mark.parametrize(("text", "field", "code", "position", "fix"), ONLY_OJS)
def test_what_ojs_refuses_in_its_own_way(
    text: str, field: str, code: str, position: int, fix: str | None
) -> None:
    _is_refused_by_ojs(text, field, code, position, fix)


def _is_refused_by_posix(text: Any, field: str, code: str) -> None:
    error = refused(text)
    assert (error.field, error.code) == (field, code)
    assert error.details["expression"] is text or error.details["expression"] == text


def _is_refused_by_ojs(
    text: Any, field: str, code: str, position: int | None, fix: str | None
) -> None:
    """Check that the reason points at the character, and that the proposal is accepted."""
    error = refused(text, "ojs")
    assert (error.field, error.code, error.position, error.fix) == (field, code, position, fix)
    assert error.details["expression"] is text or error.details["expression"] == text
    if position is None:
        return
    assert f"(character {position + 1})" in error.reason
    if fix is not None:
        assert error.reason.endswith(f'; write "{fix}"')
        cause = error.__cause__
        assert isinstance(cause, FieldParseError)
        parse(text[:position] + fix + text[position + len(cause.fieldValue) :], "ojs")


@pytest.mark.requirement("001 Validation Rules/1")
@pytest.mark.parametrize(
    ("dialect", "text", "told"),
    [
        pytest.param("posix", "0 * * *", "found 4", id="CP-14 the number of fields"),
        pytest.param("posix", "0 * * * * *", "found 6", id="CP-14 no seconds"),
        pytest.param("posix", "invalid-cron", "found 1", id="VA-09 one word"),
        pytest.param("posix", "60 * * * *", "0-59", id="CP-16"),
        pytest.param("posix", "* 24 * * *", "0-23", id="CP-17"),
        pytest.param("posix", "* * 32 * *", "1-31", id="CP-18"),
        pytest.param("posix", "* * * 13 *", "1-12", id="CP-19"),
        pytest.param("posix", "* * * * 7", "0-6, found 7: Sunday is 0", id="CP-20"),
        pytest.param("posix", "0 0 ? * *", '"?"', id="CP-28 ?"),
        pytest.param("posix", "0 0 L * *", '"L"', id="CP-28 L"),
        pytest.param("posix", "0 0 15W * *", '"W"', id="CP-28 W"),
        pytest.param("posix", "0 0 * * 5#3", '"#"', id="CP-28 #"),
        pytest.param("posix", "0\u00a0* * * *", "U+00A0", id="a character one cannot see"),
        pytest.param("posix", "*/15 * * * *", 'write "0,15,30,45 * * * *"', id="steps spelled out"),
        pytest.param("posix", "* * * * * *", "no field for seconds", id="six stars"),
        pytest.param(
            "posix", "0 9 * * * Europe/Berlin", 'the key "timezone"', id="P91 zone behind"
        ),
        pytest.param(
            "posix", "CRON_TZ=Europe/Berlin 0 9 * * *", 'the key "timezone"', id="P91 zone ahead"
        ),
        pytest.param("posix", "TZ=UTC 0 9 * * *", 'the key "timezone"', id="P91 TZ"),
        pytest.param(
            "posix", "0 9 * * Europe/Berlin", 'the key "timezone"', id="P91 zone as weekday"
        ),
        pytest.param(
            "posix", "0 9 * * * Etc/GMT+5", 'the key "timezone"', id="P91 zone with a digit"
        ),
        # the dialect ojs
        ("ojs", "0 9 * * * Europe/Berlin", 'the key "timezone"'),
        ("ojs", "CRON_TZ=Europe/Berlin 0 9 * * *", 'the key "timezone"'),
        ("ojs", "", 'write for example "0 7 * * *"'),
        ("ojs", "0 * * *", "5 parts, or 6 with seconds first, found 4"),
        ("ojs", "0 0 * * * * 2024", "no field for years"),
        ("ojs", "60 * * * *", "within 0-59, found 60"),
        ("ojs", "0 0 * * L", 'write for example "FRIL"'),
        ("ojs", "@every 5", 'write for example "1h30m"'),
    ],
)
def test_reasons_point_at_the_place_and_the_way_out(dialect: str, text: str, told: str) -> None:
    assert told in refused(text, dialect).details["reason"]


def test_a_value_whose_text_fails_is_refused_like_any_other() -> None:
    class Mute:
        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            raise RuntimeError

    assert "<Mute>" in refused(Mute()).message
    assert refused(10**5000).details["field"] == "expression"


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


# --- any value, any proposal ---


ANYTHING = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789*,-/ \t@LW#?amonjufrieveyh\n٣ſ\u212a", max_size=30),
    st.builds(" ".join, st.lists(st.text(alphabet="0123456789*,-/LW#?SUNMONJ", max_size=8))),
    st.builds("@every {}".format, st.text(alphabet="0123456789hms d.", max_size=12)),
    st.binary(max_size=20),
    st.integers(),
    st.floats(),
    st.none(),
    st.lists(st.text(max_size=5), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
)


@pytest.mark.requirement(
    "001 Cron Language Specification/1", "002 CRON-03", "003 Input Validation/2"
)
@given(ANYTHING)
@example("0 0 L/ * *")
@example("0 0 * * #")
@example("0 0 * * LW")
@example("\ud800 * * * *")
def test_whatever_comes_in_a_result_or_the_one_error_comes_out(value: Any) -> None:
    _result_or_error(value)


@pytest.mark.slow
@given(ANYTHING)
@settings(max_examples=1000)
def test_whatever_comes_much_of_it(value: Any) -> None:
    _result_or_error(value)


def _result_or_error(value: Any) -> None:
    for dialect in DIALECTS:
        try:
            result = parse(value, dialect)
        except InvalidCronExpressionError as error:
            assert error.message.startswith("Invalid cron expression")
            assert error.code
            if dialect == "ojs" and isinstance(value, str):
                assert 0 <= error.position <= len(value)
        else:
            assert isinstance(result, CronExpression)


def test_no_proposal_keeps_what_is_wrong() -> None:
    assert refused("* */10 * * SUNL-", "ojs").fix is None


@given(st.data(), ojs_texts)
def test_a_proposal_leads_on(data: st.DataObject, text: str) -> None:
    place = data.draw(st.integers(0, len(text)))
    broken = text[:place] + data.draw(st.sampled_from("/-9?W,LFa#")) + text[place:]
    try:
        parse(broken, "ojs")
    except InvalidCronExpressionError as error:
        if error.fix is None:
            return
        cause = error.__cause__
        assert isinstance(cause, FieldParseError)
        end = error.position + len(cause.fieldValue)
        fixed = broken[: error.position] + error.fix + broken[end:]
        try:
            parse(fixed, "ojs")
        except InvalidCronExpressionError as other:
            # A second mistake may stand further on, or a date that never comes come out.
            assert other.code == "NEVER" or other.position >= error.position + len(error.fix)
