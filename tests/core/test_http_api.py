"""Job ids: valid UUIDs of version 7, sorted by time, and converted back."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.core.http_api import job_id, run_of

NOON = datetime(2026, 2, 12, 12, tzinfo=UTC)
KEY, OTHER = b"k" * 32, b"o" * 32
HIDDEN = 0xFFF << 64 | (1 << 62) - 1
RUNS = st.integers(1, 2**62 - 1)
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))


def test_a_job_id_is_converted_back() -> None:
    assert str(job_id(42, NOON, KEY)) == "019c51b8-ee00-73f2-ac65-fcb0a2dd51e1"


@given(RUNS, INSTANTS)
def test_it_is_a_legal_name_that_can_be_read_back(run: int, scheduled_for: datetime) -> None:
    name = job_id(run, scheduled_for, KEY)
    assert (name.version, name.variant) == (7, uuid.RFC_4122)
    milliseconds = (scheduled_for - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert name.int >> 80 == milliseconds
    assert run_of(name, KEY) == run_of(str(name).upper(), KEY) == run


@given(RUNS, INSTANTS, st.timedeltas(timedelta(milliseconds=1), timedelta(days=365)))
def test_later_occurrences_sort_later(run: int, first: datetime, later: timedelta) -> None:
    assert str(job_id(run, first, KEY)) < str(job_id(1, first + later, KEY))


@pytest.mark.parametrize(
    "foreign",
    ["", "42", "not-a-uuid"],
)
def test_a_foreign_id_is_no_run(foreign: str) -> None:
    assert run_of(foreign, KEY) is None


@given(RUNS, st.integers(0, 127))
def test_a_job_id_with_a_wrong_bit_is_another_run(run: int, bit: int) -> None:
    spoilt = uuid.UUID(int=job_id(run, NOON, KEY).int ^ 1 << bit)
    assert run_of(spoilt, KEY) != run


@given(RUNS, RUNS)
def test_job_ids_of_one_occurrence_share_the_time_only(run: int, other: int) -> None:
    first, second = job_id(run, NOON, KEY).int, job_id(other, NOON, KEY).int
    assert (first == second) == (run == other)
    assert first & HIDDEN != second & HIDDEN or run == other


@given(RUNS)
def test_a_job_id_of_another_key_is_another_run(run: int) -> None:
    assert run_of(job_id(run, NOON, OTHER), KEY) != run


def test_half_of_the_hidden_bits_differ_between_neighbours() -> None:
    names = [job_id(run, NOON, KEY).int & HIDDEN for run in range(1, 201)]
    changed = [(one ^ two).bit_count() for one, two in pairwise(names)]
    assert 33 < sum(changed) / len(changed) < 41


@pytest.mark.parametrize(
    ("run", "at"), [(0, NOON), (2**62, NOON), (1, datetime(1969, 12, 31, tzinfo=UTC))]
)
def test_an_id_out_of_range_is_refused(run: int, at: datetime) -> None:
    with pytest.raises(ValueError):
        job_id(run, at, KEY)
