"""Names of runs: legal UUIDs of version 7, sorted by time, read back."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.core.job_id import job_id, run_of

NOON = datetime(2026, 2, 12, 12, tzinfo=UTC)
RUNS = st.integers(1, 2**62 - 1)
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))


def test_it_is_what_it_was() -> None:
    assert str(job_id(42, NOON)) == "019c51b8-ee00-787b-8000-00000000002a"


@given(RUNS, INSTANTS)
def test_it_is_a_legal_name_that_can_be_read_back(run: int, scheduled_for: datetime) -> None:
    name = job_id(run, scheduled_for)
    assert (name.version, name.variant) == (7, uuid.RFC_4122)
    milliseconds = (scheduled_for - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert name.int >> 80 == milliseconds
    assert run_of(name) == run_of(str(name)) == run_of(str(name).upper()) == run


@given(RUNS, INSTANTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=365)))
def test_later_occurrences_sort_later(run: int, first: datetime, later: timedelta) -> None:
    assert str(job_id(run, first)) < str(job_id(1, first + later))


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "42",
        "not-a-uuid",
        "019c5209-9c00-7000-8000-00000000002b",
        str(uuid.UUID(int=0)),
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    ],
)
def test_what_is_no_name_of_ours_means_no_run(foreign: str) -> None:
    assert run_of(foreign) is None


@given(RUNS, st.integers(0, 127))
def test_a_name_with_a_wrong_bit_is_hardly_ever_taken_for_ours(run: int, bit: int) -> None:
    spoilt = uuid.UUID(int=job_id(run, NOON).int ^ 1 << bit)
    assert run_of(spoilt) != run


@pytest.mark.parametrize(
    ("run", "at"), [(0, NOON), (2**62, NOON), (1, datetime(1969, 12, 31, tzinfo=UTC))]
)
def test_what_has_no_name_is_refused(run: int, at: datetime) -> None:
    with pytest.raises(ValueError):
        job_id(run, at)
