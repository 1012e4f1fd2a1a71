"""What is proposed in place of the extensions of other crons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.cron import parse, posix_equivalent
from django_declarative_cron.exceptions import InvalidCronExpressionError


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
        pytest.param("@yearly", "0 0 1 1 *", id="CRON-12"),
        pytest.param("@annually", "0 0 1 1 *", id="CRON-12 annually"),
        pytest.param("@monthly", "0 0 1 * *", id="CRON-12 monthly"),
        pytest.param("@weekly", "0 0 * * 0", id="CRON-12 weekly"),
        pytest.param("@daily", "0 0 * * *", id="CRON-12 daily"),
        pytest.param("@midnight", "0 0 * * *", id="CRON-12 midnight"),
        pytest.param("@hourly", "0 * * * *", id="CRON-12 hourly"),
        pytest.param(" @Daily\t", "0 0 * * *", id="a macro in any case, between blanks"),
        pytest.param("0 0 * * mon", "0 0 * * 1", id="a weekday"),
        pytest.param("0 0 1 jan *", "0 0 1 1 *", id="a month"),
        pytest.param("0 0 * * 5-7", "0 0 * * 0,5,6", id="7 closes a range"),
    ],
)
def test_an_extension_means_what_is_proposed_for_posix(text: str, same: str) -> None:
    extended, plain = parse(text, "ojs"), parse(same)
    assert extended == plain
    assert hash(extended) == hash(plain)
    assert extended.text == text
    _is_proposed(text, same)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("0 0 * * SUNDAY", "0 0 * * 0"),
        ("0 0 1 january,MAR-jun *", "0 0 1 1,3-6 *"),
        ("0 0 * * FRI-MON", "0 0 * * 0,1,5,6"),
        ("0 22-2 * * *", "0 0-2,22,23 * * *"),
        ("0 9 * * *\n", "0 9 * * *"),
        ("0\u00a09 * * 1-5", "0 9 * * 1-5"),
    ],
)
def test_what_no_dialect_accepts_is_spelled_out(text: str, same: str) -> None:
    with pytest.raises(InvalidCronExpressionError):
        parse(text, "ojs")
    _is_proposed(text, same)


def _is_proposed(text: str, same: str) -> None:
    assert posix_equivalent(text) == same
    assert parse(same).text == same
    with pytest.raises(InvalidCronExpressionError) as caught:
        parse(text)
    assert caught.value.reason.endswith(f'; write "{same}"')


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0 9 * * *", id="fine as it is"),
        pytest.param("5/15 * * * *", id="a lone number with a step means two things"),
        pytest.param("50-10/5 * * * *", id="a stepped wrap means two things"),
        pytest.param("*/0 * * * *", id="a step of zero"),
        pytest.param("*/90 * * * *", id="a step beyond the field"),
        pytest.param("0 0 */2 * 1-5", id="crons join a stepped day and a weekday differently"),
        pytest.param("0 0 1 * */2", id="crons join a day and a stepped weekday differently"),
        pytest.param("0 0 * mon *", id="a weekday in the month field"),
        pytest.param("0 0 * * foo", id="no weekday"),
        pytest.param("0 0 L * *", id="a Quartz token"),
        pytest.param("0 0 30 feb *", id="never"),
        pytest.param("60 */2 * * *", id="out of range besides"),
        pytest.param("*,5 * * * *", id="a star in a list"),
        pytest.param("@reboot", id="no schedule"),
        pytest.param("@every 5m", id="no civil schedule"),
        pytest.param("", id="nothing"),
        pytest.param("*/15 * * *", id="too few fields"),
    ],
)
def test_nothing_is_proposed_where_the_meaning_is_not_certain(text: str) -> None:
    assert posix_equivalent(text) is None


@given(st.text(alphabet="0123456789*,-/ @monjasufri\t", max_size=30))
def test_a_proposal_is_always_accepted(text: str) -> None:
    proposal = posix_equivalent(text)
    if proposal is not None:
        assert parse(proposal).text == proposal
