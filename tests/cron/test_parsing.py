"""What both dialects accept, and the values that texts are read as (cases CP)."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given

from django_declarative_cron.cron import DIALECTS, CronExpression, parse

from .strategies import texts as posix_texts


def ojs(text: str) -> CronExpression:
    return parse(text, "ojs")


def restrictions(cron: CronExpression) -> tuple[bool, bool, bool]:
    return cron.hour_restricted, cron.day_restricted, cron.weekday_restricted


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
    ("dialect", "text", "hour", "day", "weekday"),
    [
        ("posix", "0 * * * *", False, False, False),
        ("posix", "0 0 1,15 * 1", True, True, True),
        ("posix", "0 0-23 1-31 * *", True, True, False),
        ("posix", "0 * * * 0-6", False, False, True),
        ("posix", "0-59 0-23 1-31 1-12 0-6", True, True, True),
        ("ojs", "0 */1 */1 * *", True, True, False),
        ("ojs", "30 * * * * *", False, False, False),
        ("ojs", "30 0 2 L * MON", True, True, True),
        ("ojs", "@daily", True, False, False),
        ("ojs", "@weekly", True, False, True),
        ("ojs", "@hourly", False, False, False),
        ("ojs", "@every 1h", False, False, False),
    ],
)
def test_a_field_is_restricted_when_its_text_is_not_a_star(
    dialect: str, text: str, hour: bool, day: bool, weekday: bool
) -> None:
    cron = parse(text, dialect)
    assert restrictions(cron) == (hour, day, weekday)
    assert cron.restricted_both is (day and weekday)


@pytest.mark.requirement("001 Cron Language Specification/1")
@pytest.mark.parametrize(
    ("text", "same"),
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
def test_equal_meaning_is_equal_value_in_posix(text: str, same: str) -> None:
    _have_one_value(text, same, "posix")


@pytest.mark.requirement("002 CRON-09")
@pytest.mark.parametrize(
    ("text", "same"),
    [
        pytest.param("*/90 * * * *", "0 * * * *", id="a step beyond the field"),
        pytest.param("*/99999999999999999999 * * * *", "0 * * * *", id="a step without end"),
        pytest.param("*/015 * * * *", "*/15 * * * *", id="leading zeros in a step"),
        pytest.param("0 9 * * * *", "9 * * * *", id="CRON-08 six fields at second 0"),
        pytest.param("00 0 9 * * *", "0 9 * * *", id="CRON-08 second 0 with a zero before"),
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
def test_equal_meaning_is_equal_value_in_ojs(text: str, same: str) -> None:
    _have_one_value(text, same, "ojs")


def _have_one_value(text: str, same: str, dialect: str) -> None:
    one, other = parse(text, dialect), parse(same, dialect)
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("0-59 0-23 1-31 1-12 0-6", "* * * * *", id="CP-07 two restricted day fields"),
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
    assert ojs(one) != one


@given(posix_texts)
def test_what_posix_accepts_means_the_same_in_ojs(text: str) -> None:
    assert ojs(text) == parse(text)
    assert restrictions(ojs(text)) == restrictions(parse(text))


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


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        *(("posix", text) for text in ("0 0 29 2 *", "0 0 31 2 0", "0 0 31 2,3 *", "0 0 30 2 0-6")),
        *(("ojs", text) for text in ("0 0 29 2 *", "0 0 31 2 0", "0 0 29W 2 *", "0 0 * 2 5#5")),
        *(("ojs", text) for text in ("0 0 31W,L 2 *", "0 0 30,L 2 *")),
    ],
)
def test_cp_43_a_date_that_comes_in_some_year_is_accepted(dialect: str, text: str) -> None:
    assert parse(text, dialect).text == text


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("posix", "0  9 * * 1-5"),
        *(("ojs", text) for text in ("0 9 15W,L * 5#3", "*/5 0 9 * * MON", "@every 1h", "@daily")),
    ],
)
def test_a_parsed_expression_survives_copy_and_pickle_and_shows_its_text(
    dialect: str, text: str
) -> None:
    cron = parse(text, dialect)
    assert copy.deepcopy(cron) == cron
    again = pickle.loads(pickle.dumps(cron))
    assert (again, again.text, again.dialect) == (cron, text, dialect)
    assert str(cron) == text
    assert repr(cron) == f"<CronExpression {text!r} {dialect}>"


def test_a_parsed_expression_cannot_be_changed() -> None:
    cron = parse("0 * * * *")
    with pytest.raises(AttributeError):
        cron.text = "1 * * * *"
    with pytest.raises(AttributeError):
        del cron.text
    with pytest.raises(AttributeError):
        cron.other = 1
    with pytest.raises(AttributeError):
        ojs("@every 1h")._every = None  # type: ignore[attr-defined]


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


def test_dialects_are_told() -> None:
    assert DIALECTS == ("posix", "ojs")


@pytest.mark.parametrize("dialect", ["vixie", "", None, ["posix"]])
def test_an_unknown_dialect_is_the_caller_s_mistake(dialect: Any) -> None:
    with pytest.raises(ValueError, match="unknown cron dialect"):
        parse("0 * * * *", dialect)
