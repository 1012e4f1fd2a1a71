"""What is proposed in place of the extensions of other crons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.cron import parse, posix_equivalent
from django_declarative_cron.exceptions import InvalidCronExpressionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*/15 * * * *", "0,15,30,45 * * * *"),
        ("0-30/5 * * * *", "0,5,10,15,20,25,30 * * * *"),
        ("*/1 * * * *", "* * * * *"),
        ("0 */6 * * *", "0 0,6,12,18 * * *"),
        ("0 0 */10 * *", "0 0 1,11,21,31 * *"),
        ("0 0 * * mon", "0 0 * * 1"),
        ("0 0 * * Mon-Fri", "0 0 * * 1-5"),
        ("0 0 * * SUNDAY", "0 0 * * 0"),
        ("0 0 1 jan *", "0 0 1 1 *"),
        ("0 0 1 january,MAR-jun *", "0 0 1 1,3-6 *"),
        ("@daily", "0 0 * * *"),
        (" @HOURLY ", "0 * * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 0-7", "0 0 * * 0-6"),
        ("0 0 * * FRI-MON", "0 0 * * 0,1,5,6"),
        ("0 0 * * sat-sun", "0 0 * * 0,6"),
        ("0 0 * * mon-sun", "0 0 * * 0-6"),
        ("0 0 * * sun-tue", "0 0 * * 0-2"),
        ("0 0 * * sun-sun", "0 0 * * 0"),
        ("0 0 * * 7-7", "0 0 * * 0"),
        ("0 22-2 * * *", "0 0-2,22,23 * * *"),
        ("0 0 * * 1-7/2", "0 0 * * 0,1,3,5"),
        ("0 0 * * */3", "0 0 * * 0,3,6"),
        ("0 9 * * *\n", "0 9 * * *"),
        ("0\u00a09 * * 1-5", "0 9 * * 1-5"),
    ],
)
def test_extensions_are_spelled_out(text: str, expected: str) -> None:
    assert posix_equivalent(text) == expected
    assert parse(expected).text == expected
    with pytest.raises(InvalidCronExpressionError) as caught:
        parse(text)
    assert caught.value.reason.endswith(f'; write "{expected}"')


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
