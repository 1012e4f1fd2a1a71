"""The retry policy of 002: its defaults, its intervals, its end, and how it is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.core.declarations.values import read_duration, write_duration
from django_declarative_cron.core.retry import Retried, RetryPolicy, names_of, read_policy

END = datetime(2024, 1, 1, 10, tzinfo=UTC)
STEADY = RetryPolicy(jitter=False)


def seconds(*numbers: float) -> list[timedelta]:
    return [timedelta(seconds=number) for number in numbers]


def test_the_defaults_are_those_of_the_specification() -> None:
    assert read_policy({}) == (RetryPolicy(), [])
    assert RetryPolicy().as_data() == {
        "max_attempts": 3,
        "initial_interval": "PT1S",
        "backoff_coefficient": 2.0,
        "max_interval": "PT5M",
        "jitter": True,
        "non_retryable_errors": [],
        "on_exhaustion": "discard",
    }


def test_what_is_given_goes_before_the_defaults() -> None:
    policy, flaws = read_policy({"max_attempts": 10, "on_exhaustion": "dead_letter"})
    assert flaws == []
    assert policy == RetryPolicy(max_attempts=10, on_exhaustion="dead_letter")
    assert read_policy(json.loads(json.dumps(policy.as_data()))) == (policy, [])


def test_intervals_double_up_to_the_longest() -> None:
    found = [STEADY.delay(attempt, 0.9) for attempt in range(1, 12)]
    assert found == seconds(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300)


@pytest.mark.parametrize(
    ("attempt", "chance", "expected"),
    [(1, 0.0, 0.5), (1, 0.5, 1.0), (1, 0.75, 1.25), (3, 0.0, 2.0), (11, 0.0, 150), (11, 0.9, 300)],
)
def test_jitter_goes_from_half_to_one_and_a_half_and_is_capped_again(
    attempt: int, chance: float, expected: float
) -> None:
    assert RetryPolicy().delay(attempt, chance) == timedelta(seconds=expected)


@given(
    attempt=st.integers(1, 10**6),
    chance=st.floats(0, 1, exclude_max=True),
    initial=st.timedeltas(timedelta(0), timedelta(days=10**8)),
    longest=st.timedeltas(timedelta(0), timedelta.max),
    coefficient=st.floats(1, 1e300),
)
def test_no_interval_is_negative_or_longer_than_the_longest(
    attempt: int, chance: float, initial: timedelta, longest: timedelta, coefficient: float
) -> None:
    policy = RetryPolicy(
        max_attempts=10**9,
        initial_interval=initial,
        max_interval=longest,
        backoff_coefficient=coefficient,
    )
    assert timedelta(0) <= policy.delay(attempt, chance) <= longest
    retried = policy.after(END, attempt, (), chance)
    assert retried.at is not None
    assert END < retried.at <= policy.latest_retry_at(END)


@pytest.mark.parametrize(
    ("attempts", "attempt", "expected"),
    [
        (3, 1, Retried(END + timedelta(seconds=1), None, "retry")),
        (3, 2, Retried(END + timedelta(seconds=2), None, "retry")),
        (3, 3, Retried(None, "discard", "attempts")),
        (3, 4, Retried(None, "discard", "attempts")),
        (1, 1, Retried(None, "discard", "attempts")),
        (0, 1, Retried(None, "discard", "attempts")),
    ],
)
def test_the_first_run_counts(attempts: int, attempt: int, expected: Retried) -> None:
    assert RetryPolicy(max_attempts=attempts, jitter=False).after(END, attempt, (), 0) == expected


def test_an_interval_of_zero_is_no_hot_loop() -> None:
    policy = RetryPolicy(initial_interval=timedelta(0))
    assert policy.after(END, 1, (), 0.9).at == END + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ("validation.payload_invalid", True),
        ("validation.schema_error", False),
        ("auth.token_expired", True),
        ("auth.", True),
        ("auth", False),
        ("authority.lost", False),
        ("external.auth.failure", False),
        ("AUTH.token_expired", False),
    ],
)
def test_errors_that_are_not_tried_again(error: str, refused: bool) -> None:
    policy = RetryPolicy(
        non_retryable_errors=("validation.payload_invalid", "auth.*"), on_exhaustion="dead_letter"
    )
    assert policy.refuses(error) is refused
    after = policy.after(END, 1, ("other", error), 0)
    assert (after == Retried(None, "dead_letter", "non_retryable")) is refused


def test_an_error_goes_by_the_names_of_its_bases_too() -> None:
    assert names_of(UnicodeDecodeError)[:4] == (
        "builtins.UnicodeDecodeError",
        "UnicodeDecodeError",
        "builtins.UnicodeError",
        "UnicodeError",
    )
    policy = RetryPolicy(non_retryable_errors=("ValueError",))
    assert policy.after(END, 1, names_of(UnicodeDecodeError), 0).reason == "non_retryable"
    assert names_of(json.JSONDecodeError)[0] == "json.decoder.JSONDecodeError"
    assert "object" not in names_of(KeyError)


@pytest.mark.parametrize(
    ("given_", "key", "told"),
    [
        ({"max_attempt": 3}, "max_attempt", "did you mean `max_attempts`?"),
        ({"backoff": 3}, "backoff", "is not a known key"),
        ({7: 3}, "7", "is not a known key"),
        ({"max_attempts": -1}, "max_attempts", "from 0 to 10000, not -1"),
        ({"max_attempts": True}, "max_attempts", "whole number"),
        ({"max_attempts": 2.0}, "max_attempts", "whole number"),
        ({"max_attempts": "3"}, "max_attempts", "not str"),
        ({"max_attempts": -(10**9999)}, "max_attempts", "not int"),
        ({"backoff_coefficient": 0.9}, "backoff_coefficient", "from 1 to 1000, not 0.9"),
        ({"backoff_coefficient": float("nan")}, "backoff_coefficient", "from 1 to 1000"),
        ({"backoff_coefficient": float("inf")}, "backoff_coefficient", "from 1 to 1000"),
        ({"backoff_coefficient": False}, "backoff_coefficient", "from 1 to 1000"),
        ({"initial_interval": 5}, "initial_interval", "a text such as PT30S"),
        ({"max_interval": "5m"}, "max_interval", "not a duration in ISO 8601"),
        ({"jitter": 1}, "jitter", "True or False"),
        ({"non_retryable_errors": "auth.*"}, "non_retryable_errors", "list of texts"),
        ({"non_retryable_errors": [5]}, "non_retryable_errors", "list of texts"),
        ({"non_retryable_errors": ["*"]}, "non_retryable_errors", "not '*'"),
        ({"non_retryable_errors": [".*"]}, "non_retryable_errors", "not '.*'"),
        ({"non_retryable_errors": ["a*"]}, "non_retryable_errors", "not 'a*'"),
        ({"non_retryable_errors": [""]}, "non_retryable_errors", "not ''"),
        ({"on_exhaustion": "dead-letter"}, "on_exhaustion", "did you mean `dead_letter`?"),
        ({"on_exhaustion": None}, "on_exhaustion", "`discard` or `dead_letter`"),
    ],
)
def test_what_is_wrong_is_told_and_keeps_its_default(
    given_: dict[Any, Any], key: str, told: str
) -> None:
    policy, flaws = read_policy(given_)
    assert policy == RetryPolicy()
    assert [flaw.key for flaw in flaws] == [key]
    assert told in flaws[0].reason


@pytest.mark.parametrize("coefficient", [1, 1000])
def test_a_coefficient_may_be_a_whole_number(coefficient: int) -> None:
    policy, flaws = read_policy({"backoff_coefficient": coefficient, "jitter": False})
    assert flaws == []
    expected = 1 if coefficient == 1 else 300
    assert policy.delay(2, 0) == timedelta(seconds=expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1S", timedelta(seconds=1)),
        ("PT0.5S", timedelta(seconds=0.5)),
        ("PT0,25S", timedelta(seconds=0.25)),
        ("PT5M", timedelta(minutes=5)),
        ("PT90M", timedelta(minutes=90)),
        ("PT1H30M", timedelta(minutes=90)),
        ("PT24H", timedelta(days=1)),
        ("P1D", timedelta(days=1)),
        ("P1DT1S", timedelta(days=1, seconds=1)),
        ("P2W", timedelta(weeks=2)),
        ("PT0S", timedelta(0)),
        ("PT0.0000019S", timedelta(microseconds=1)),
        ("PT" + "0" * 5000 + "1S", timedelta(seconds=1)),
        ("PT1." + "0" * 5000 + "S", timedelta(seconds=1)),
    ],
)
def test_durations(text: str, expected: timedelta) -> None:
    assert read_duration(text) == expected


NO_DURATIONS = (
    *("", "P", "PT", "P1DT", "1S", "PT1", "pt1s", "PT1S ", "-PT1S", "PT-1S", "PT1M1H", "PT1.5M"),
    *("P1S", "PT1D", "PT1S\n", "PT١S", "PT1.S", "PT.5S", "5m", "PT1e3S"),
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, "not a duration") for text in NO_DURATIONS),
        *((text, "whose length varies") for text in ("P1Y", "P1M", "P1Y2M3DT4H")),
        *((text, "too long") for text in ("PT" + "9" * 5000 + "H", "P999999999999999D")),
    ],
)
def test_what_is_no_duration_is_refused_with_the_form(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_duration(text)


@given(st.timedeltas(timedelta(0), timedelta.max))
def test_a_written_duration_is_read_as_it_was(duration: timedelta) -> None:
    assert read_duration(write_duration(duration)) == duration


@given(st.text(max_size=20) | st.text("PTWDHMS0123456789.,", max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert read_duration(text) >= timedelta(0)
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "PT0S"),
        (timedelta(days=2), "PT48H"),
        (timedelta(minutes=90), "PT1H30M"),
        (timedelta(seconds=0.5), "PT0.5S"),
        (timedelta(minutes=1, microseconds=10), "PT1M0.00001S"),
    ],
)
def test_durations_are_written_shortly(duration: timedelta, text: str) -> None:
    assert write_duration(duration) == text
