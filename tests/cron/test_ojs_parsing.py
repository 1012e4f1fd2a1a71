"""What the ojs dialect accepts, what it refuses, at which character, and with what proposal."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from django_declarative_cron.cron import DIALECTS, CronExpression, parse
from django_declarative_cron.exceptions import FieldParseError, InvalidCronExpressionError

from .ojs_oracle import ojs_texts
from .strategies import texts as posix_texts


def ojs(text: Any) -> CronExpression:
    return parse(text, "ojs")


def refused(text: Any) -> InvalidCronExpressionError:
    with pytest.raises(InvalidCronExpressionError) as caught:
        ojs(text)
    return caught.value


@pytest.mark.requirement("002 CRON-09", "002 CRON-10", "002 CRON-12")
@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param("*/15 * * * *", "0,15,30,45 * * * *", id="CRON-09 a step"),
        pytest.param("0-30/10 * * * *", "0,10,20,30 * * * *", id="CRON-09 a step of a range"),
        pytest.param("*/20,7 * * * *", "0,7,20,40 * * * *", id="a step in a list"),
        pytest.param("*/1 * * * *", "* * * * *", id="a step of one"),
        pytest.param("*/7 * * * *", "0,7,14,21,28,35,42,49,56 * * * *", id="a step that is uneven"),
        pytest.param("0 */5 * * *", "0 0,5,10,15,20 * * *", id="hours that are uneven"),
        pytest.param("0 0 */10 * *", "0 0 1,11,21,31 * *", id="days count from 1"),
        pytest.param("0 0 1 */5 *", "0 0 1 1,6,11 *", id="months count from 1"),
        pytest.param("*/90 * * * *", "0 * * * *", id="a step beyond the field"),
        pytest.param("*/99999999999999999999 * * * *", "0 * * * *", id="a step without end"),
        pytest.param("*/015 * * * *", "*/15 * * * *", id="leading zeros in a step"),
        pytest.param("0 0 * * MON-FRI", "0 0 * * 1-5", id="CRON-10 weekday names"),
        pytest.param("0 0 * * mOn,wEd", "0 0 * * 1,3", id="CRON-10 in any case"),
        pytest.param("0 0 1 JAN,jul-SEP *", "0 0 1 1,7-9 *", id="CRON-10 month names"),
        pytest.param("0 0 * * MON-5", "0 0 * * 1-5", id="a name and a number"),
        pytest.param("0 0 * * MON-FRI/2", "0 0 * * 1,3,5", id="a step of names"),
        pytest.param("0 0 * * 7", "0 0 * * 0", id="Sunday as 7"),
        pytest.param("0 0 * * 6-7", "0 0 * * 0,6", id="P87 a range that ends in Sunday"),
        pytest.param("0 0 * * 6,7", "0 0 * * 0,6", id="P87 the weekend"),
        pytest.param("0 0 * * MON-SUN", "0 0 * * 0-6", id="P87 MON-SUN is every day"),
        pytest.param("0 0 * * 1-7", "0 0 * * 0-6", id="P87 1-7 is every day"),
        pytest.param("0 0 * * 0-7", "0 0 * * 0-6", id="0-7 is every day"),
        pytest.param("0 0 * * SUN-SAT", "0 0 * * 0-6", id="P87 SUN-SAT is every day"),
        pytest.param("0 0 * * 1-7/2", "0 0 * * 0,1,3,5", id="7 is Sunday before steps apply"),
        pytest.param("0 0 * * */3", "0 0 * * 0,3,6", id="P88 steps of a week"),
        pytest.param("0 0 * * 0-7/2", "0 0 * * 0,2,4,6", id="a step of eight weekdays"),
        pytest.param("0 0 * * SUN-SUN", "0 0 * * 0", id="one Sunday by name"),
        pytest.param("0 0 * * 7-7", "0 0 * * 0", id="one Sunday by 7"),
        pytest.param("0 0 * * 7-0", "0 0 * * 0", id="one Sunday by 7 and 0"),
        pytest.param("0 0 * * 7-2", "0 0 * * 0-2", id="Sunday opens a range"),
        pytest.param("0 0 * * SUN-TUE", "0 0 * * 0-2", id="Sunday opens a range by name"),
        pytest.param("0 0 * * FRI-SUN", "0 0 * * 0,5,6", id="Sunday closes a range by name"),
        pytest.param("0 0 * * 5-0", "0 0 * * 0,5,6", id="Sunday closes a range as 0"),
        pytest.param("0 9 * * * *", "9 * * * *", id="CRON-08 six fields at second 0"),
        pytest.param("00 0 9 * * *", "0 9 * * *", id="CRON-08 second 0 with a zero before"),
        pytest.param("@yearly", "0 0 1 1 *", id="CRON-12"),
        pytest.param("@annually", "0 0 1 1 *", id="CRON-12 annually"),
        pytest.param("@monthly", "0 0 1 * *", id="CRON-12 monthly"),
        pytest.param("@weekly", "0 0 * * 0", id="CRON-12 weekly"),
        pytest.param("@daily", "0 0 * * *", id="CRON-12 daily"),
        pytest.param("@midnight", "0 0 * * *", id="CRON-12 midnight"),
        pytest.param("@hourly", "0 * * * *", id="CRON-12 hourly"),
        pytest.param(" @Daily\t", "0 0 * * *", id="a macro in any case, between blanks"),
        pytest.param("0 0 l * *", "0 0 L * *", id="rules in any case"),
        pytest.param("0 0 lw,15w * *", "0 0 15W,LW * *", id="rules in any order"),
        pytest.param("0 0 L,L * *", "0 0 L * *", id="a rule twice"),
        pytest.param("0 0 * * friL", "0 0 * * 5L", id="the last one by name"),
        pytest.param("0 0 * * fri#3", "0 0 * * 5#3", id="the third one by name"),
        pytest.param("0 0 * * 7L", "0 0 * * 0L", id="the last Sunday"),
        pytest.param("0 0 * * 7#1", "0 0 * * SUN#1", id="the first Sunday"),
        pytest.param("0 0 * * 5#03", "0 0 * * 5#3", id="leading zeros behind #"),
        pytest.param("@every 90m", "@every 1h30m", id="CRON-S02 a length is a length"),
        pytest.param("@EVERY 1H30M", "@every 1h30m", id="CRON-S02 in any case"),
        pytest.param("  @every   60s ", "@every 1m", id="CRON-S02 between blanks"),
        pytest.param("@every 500ms", "@every 1s", id="an interval below a second"),
        pytest.param("@every 0s", "@every 1s", id="no interval at all"),
    ],
)
def test_equal_meaning_is_equal_value(text: str, same: str) -> None:
    assert ojs(text) == ojs(same)
    assert hash(ojs(text)) == hash(ojs(same))
    assert ojs(text).text == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 0 L * *", "0 0 LW * *"),
        ("0 0 31 * *", "0 0 31W * *"),
        ("0 0 * * 5L", "0 0 * * 5#5"),
        ("0 0 * * *", "0 0 */1 * 1"),
        ("5 0 * * * *", "0 0 * * * *"),
        ("@every 1h", "@hourly"),
        ("@every 1h", "@every 2h"),
    ],
)
def test_other_meanings_are_other_values(one: str, other: str) -> None:
    assert ojs(one) != ojs(other)
    assert ojs(other) != ojs(one)


@given(posix_texts)
def test_what_posix_accepts_means_the_same(text: str) -> None:
    ours, plain = ojs(text), parse(text)
    assert ours == plain
    assert (ours.hour_restricted, ours.day_restricted, ours.weekday_restricted) == (
        plain.hour_restricted,
        plain.day_restricted,
        plain.weekday_restricted,
    )


@pytest.mark.parametrize(
    ("text", "hour", "day", "weekday"),
    [
        ("0 */1 */1 * *", True, True, False),
        ("30 * * * * *", False, False, False),
        ("30 0 2 L * MON", True, True, True),
        ("@daily", True, False, False),
        ("@weekly", True, False, True),
        ("@hourly", False, False, False),
        ("@every 1h", False, False, False),
    ],
)
def test_a_field_is_restricted_when_its_text_is_not_a_star(
    text: str, hour: bool, day: bool, weekday: bool
) -> None:
    cron = ojs(text)
    found = (cron.hour_restricted, cron.day_restricted, cron.weekday_restricted)
    assert found == (hour, day, weekday)
    assert cron.restricted_both is (day and weekday)


@pytest.mark.requirement("002 CRON-08")
def test_seconds_are_the_first_of_six_fields() -> None:
    cron = ojs("*/20 30 9 1 2 1")
    assert (cron.seconds, cron.minutes, cron.hours) == ({0, 20, 40}, {30}, {9})
    assert (cron.days, cron.months, cron.weekdays) == ({1}, {2}, {1})
    assert ojs("30 9 1 2 1").seconds == parse("30 9 1 2 1").seconds == {0}


@pytest.mark.requirement("002 CRON-S02")
@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("@every 30m", timedelta(minutes=30)),
        ("@every 2h", timedelta(hours=2)),
        ("@every 1h30m", timedelta(hours=1, minutes=30)),
        ("@every 2h45m30s", timedelta(hours=2, minutes=45, seconds=30)),
        ("@every 45s", timedelta(seconds=45)),
        ("@every 1500ms", timedelta(seconds=1.5)),
        ("@every 1s1ms", timedelta(seconds=1, milliseconds=1)),
        ("@every 1m1ms", timedelta(minutes=1, milliseconds=1)),
        ("@every 01h", timedelta(hours=1)),
        ("@every 0h5m", timedelta(minutes=5)),
        ("@every 438312h", timedelta(days=18_263)),
    ],
)
def test_the_units_of_an_interval(text: str, length: timedelta) -> None:
    assert ojs(text).every == length


REFUSALS = [
    # text, field, code, position, fix
    ("", "expression", "EMPTY", 0, None),
    (" \t", "expression", "EMPTY", 0, None),
    ("0 * * *", "expression", "COUNT", 6, None),
    ("0 0 * * * * 2024", "expression", "COUNT", 12, None),
    ("daily", "expression", "COUNT", 0, "@daily"),
    ("invalid-cron", "expression", "COUNT", 0, None),
    ("0 * * * *\n", "expression", "FORMAT", 9, None),
    ("0\u00a0* * * *", "expression", "FORMAT", 1, None),
    ("0 * * * *\x00", "expression", "FORMAT", 9, None),
    ("60 * * * *", "minute", "RANGE", 0, None),
    ("0 24 * * *", "hour", "RANGE", 2, None),
    ("0 0-24 * * *", "hour", "RANGE", 4, None),
    ("0 0 32 * *", "day", "RANGE", 4, None),
    ("0 0 0 * *", "day", "RANGE", 4, None),
    ("0 0 1,5,32 * *", "day", "RANGE", 8, None),
    ("0 0 * 13 *", "month", "RANGE", 6, None),
    ("0 0 * * 8", "weekday", "RANGE", 8, None),
    ("60 0 0 * * *", "second", "RANGE", 0, None),
    ("0 60 0 * * *", "minute", "RANGE", 2, None),
    ("1" * 900 + " * * * *", "minute", "RANGE", 0, None),
    ("0 0 0W * *", "day", "RANGE", 4, None),
    ("0 0 32W * *", "day", "RANGE", 4, None),
    ("0 0 * * 8L", "weekday", "RANGE", 8, None),
    ("0 0 * * 5#6", "weekday", "RANGE", 10, None),
    ("0 0 * * 5#0", "weekday", "RANGE", 10, None),
    ("0 0 * * 1#1,5#6", "weekday", "RANGE", 14, None),
    ("*/0 * * * *", "minute", "STEP", 0, "*"),
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
    ("0 0 * NOV-FEB *", "month", "WRAP", 6, "NOV-DEC,JAN-FEB"),
    ("0 0 * 12-1 *", "month", "WRAP", 6, "12,1"),
    ("0 0 * * FRI-MON", "weekday", "WRAP", 8, "FRI-SUN,MON"),
    ("0 0 * * 5-1", "weekday", "WRAP", 8, "5-7,1"),
    ("0 0 * * 6-2", "weekday", "WRAP", 8, "6-7,1-2"),
    ("0 0 * * FRI-TUE", "weekday", "WRAP", 8, "FRI-SUN,MON-TUE"),
    ("50-10/5 * * * *", "minute", "WRAP", 0, None),
    ("0 0 * * MONDAY", "weekday", "NAME", 8, "MON"),
    ("0 0 * * Monday-friday", "weekday", "NAME", 8, "MON-FRI"),
    ("0 0 1 january *", "month", "NAME", 6, "JAN"),
    ("0 0 * * mno", "weekday", "NAME", 8, "MON"),
    ("0 0 * jan-xyz *", "month", "NAME", 10, None),
    ("abc * * * *", "minute", "NAME", 0, None),
    ("0 0 mon * *", "day", "NAME", 4, None),
    ("0 0 ? * *", "day", "QUARTZ", 4, "*"),
    ("0 0 * * ?", "weekday", "QUARTZ", 8, "*"),
    ("0 0 L-3 * *", "day", "QUARTZ", 4, None),
    ("0 0 L/2 * *", "day", "QUARTZ", 4, None),
    ("0 0 1-5W * *", "day", "QUARTZ", 4, None),
    ("0 0 WL * *", "day", "FORMAT", 4, None),
    ("0 0 5#3 * *", "day", "QUARTZ", 4, None),
    ("0 0 * * L", "weekday", "QUARTZ", 8, None),
    ("0 0 * * 5W", "weekday", "QUARTZ", 8, None),
    ("0 0 * * 6#", "weekday", "QUARTZ", 8, None),
    ("L * * * *", "minute", "QUARTZ", 0, None),
    ("0 0 1 L *", "month", "QUARTZ", 6, None),
    ("*,5 * * * *", "minute", "FORMAT", 0, None),
    ("5,* * * * *", "minute", "FORMAT", 2, None),
    ("1,,5 * * * *", "minute", "FORMAT", 2, None),
    ("1, * * * *", "minute", "FORMAT", 2, None),
    ("1-2-3 * * * *", "minute", "FORMAT", 0, None),
    ("-5 * * * *", "minute", "FORMAT", 0, None),
    ("/5 * * * *", "minute", "FORMAT", 0, None),
    ("** * * * *", "minute", "FORMAT", 0, None),
    ("٣ * * * *", "minute", "FORMAT", 0, None),
    ("0 0 * * ſun", "weekday", "FORMAT", 8, None),
    ("1.5 * * * *", "minute", "DECIMAL", 0, None),
    ("0 0 31 2 *", "expression", "NEVER", 4, None),
    ("0 0 30 FEB *", "expression", "NEVER", 4, None),
    ("0 0 31 4,6,9,11 *", "expression", "NEVER", 4, None),
    ("0 0 31W 2-2 *", "expression", "NEVER", 4, None),
    ("@dayly", "expression", "MACRO", 0, "@daily"),
    ("@reboot", "expression", "MACRO", 0, None),
    ("@wee\u212aly", "expression", "MACRO", 0, "@weekly"),
    ("@daily 5", "expression", "MACRO", 7, None),
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


@pytest.mark.requirement("002 CRON-11")
@pytest.mark.parametrize(
    ("text", "field", "code", "position", "fix"), REFUSALS, ids=[repr(e[0])[:40] for e in REFUSALS]
)
def test_refusals_point_at_the_character_and_propose_the_fix(
    text: str, field: str, code: str, position: int, fix: str | None
) -> None:
    error = refused(text)
    assert (error.field, error.code, error.position, error.fix) == (field, code, position, fix)
    assert f"(character {position + 1})" in error.reason
    assert error.details["expression"] == text
    if fix is not None:
        assert error.reason.endswith(f'; write "{fix}"')
        cause = error.__cause__
        assert isinstance(cause, FieldParseError)
        ojs(text[:position] + fix + text[position + len(cause.fieldValue) :])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 9 * * * Europe/Berlin", 'the key "timezone"'),
        ("CRON_TZ=Europe/Berlin 0 9 * * *", 'the key "timezone"'),
        ("", 'write for example "0 7 * * *"'),
        ("0 * * *", "5 parts, or 6 with seconds first, found 4"),
        ("0 0 * * * * 2024", "no field for years"),
        ("60 * * * *", "within 0-59, found 60"),
        ("0 0 * * L", 'write for example "FRIL"'),
        ("@every 5", 'write for example "1h30m"'),
    ],
)
def test_reasons_show_the_way_out(text: str, told: str) -> None:
    assert told in refused(text).reason


@pytest.mark.parametrize("value", [123, None, ["0 * * * *"], b"0 * * * *"])
def test_a_value_that_is_no_text_is_refused(value: Any) -> None:
    error = refused(value)
    assert (error.field, error.code, error.position) == ("expression", "TYPE", None)


@pytest.mark.parametrize(
    "text",
    ["0 0 31 2 0", "0 0 29 2 *", "0 0 29W 2 *", "0 0 * 2 5#5", "0 0 31W,L 2 *", "0 0 30,L 2 *"],
)
def test_a_date_that_comes_in_some_year_is_accepted(text: str) -> None:
    assert ojs(text).text == text


@pytest.mark.parametrize("text", ["0 9 15W,L * 5#3", "*/5 0 9 * * MON", "@every 1h", "@daily"])
def test_a_parsed_expression_survives_copy_and_pickle(text: str) -> None:
    cron = ojs(text)
    assert copy.deepcopy(cron) == cron
    again = pickle.loads(pickle.dumps(cron))
    assert (again, again.text, again.dialect) == (cron, text, "ojs")
    assert repr(cron) == f"<CronExpression {text!r} ojs>"


def test_an_interval_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ojs("@every 1h")._every = None  # type: ignore[attr-defined]


def test_dialects_are_told() -> None:
    assert DIALECTS == ("posix", "ojs")


ANYTHING = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789*,-/ \t@LW#?amonjufrieveyh\n٣ſ\u212a", max_size=30),
    st.builds(" ".join, st.lists(st.text(alphabet="0123456789*,-/LW#?SUNMONJ", max_size=8))),
    st.builds("@every {}".format, st.text(alphabet="0123456789hms d.", max_size=12)),
    st.binary(max_size=20),
    st.integers(),
    st.none(),
)


@pytest.mark.requirement("002 CRON-03")
@given(ANYTHING)
@example("0 0 L/ * *")
@example("0 0 * * #")
@example("0 0 * * LW")
@example("\ud800 * * * *")
def test_whatever_comes_in_a_result_or_the_one_error_comes_out(value: Any) -> None:
    try:
        result = parse(value, "ojs")
    except InvalidCronExpressionError as error:
        assert error.message.startswith("Invalid cron expression")
        assert error.code
        if isinstance(value, str):
            assert 0 <= error.position <= len(value)
    else:
        assert isinstance(result, CronExpression)


def test_no_proposal_keeps_what_is_wrong() -> None:
    with pytest.raises(InvalidCronExpressionError) as caught:
        ojs("* */10 * * SUNL-")
    assert caught.value.fix is None


@given(st.data(), ojs_texts)
def test_a_proposal_leads_on(data: st.DataObject, text: str) -> None:
    place = data.draw(st.integers(0, len(text)))
    broken = text[:place] + data.draw(st.sampled_from("/-9?W,LFa#")) + text[place:]
    try:
        ojs(broken)
    except InvalidCronExpressionError as error:
        if error.fix is None:
            return
        cause = error.__cause__
        assert isinstance(cause, FieldParseError)
        end = error.position + len(cause.fieldValue)
        mended = broken[: error.position] + error.fix + broken[end:]
        try:
            ojs(mended)
        except InvalidCronExpressionError as other:
            # A second mistake may stand further on, or a date that never comes come out.
            assert other.code == "NEVER" or other.position >= error.position + len(error.fix)
