"""A task's state as plain data and back (PE-12 to PE-17)."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.core.state import StoredState, TaskState, deserialize, serialize
from django_declarative_cron.exceptions import (
    TaskInvalidStructureError,
    TaskInvalidTypeError,
    TaskInvalidValueError,
    TaskMissingFieldError,
    TaskTryDeserializeError,
)

REGISTRATIONS = [("a", "0 * * * *", print, timedelta(minutes=5))]

BARE: dict[str, Any] = {"name": "a", "cronExpression": "0 * * * *", "retryDelayMs": 300_000}


def _refused(**changed: Any) -> TaskTryDeserializeError:
    with pytest.raises(TaskTryDeserializeError) as caught:
        deserialize({**BARE, **changed}, REGISTRATIONS)
    return caught.value


@pytest.mark.requirement("001 Error Taxonomy/14")
@pytest.mark.parametrize("field", BARE)
def test_pe12_a_missing_field(field: str) -> None:
    with pytest.raises(TaskMissingFieldError) as caught:
        deserialize({key: BARE[key] for key in BARE if key != field}, REGISTRATIONS)
    assert caught.value.message == f"Missing required field: {field}"
    assert caught.value.details == {"field": field}


@pytest.mark.requirement("001 Error Taxonomy/15")
@pytest.mark.parametrize(
    ("value", "actual"),
    [
        (-100, "negative number"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "Infinity"),
        ("x", "string"),
        (5000.5, "fractional number"),
        (None, "null"),
        (True, "boolean"),
        ([5000], "array"),
        (timedelta(seconds=5), "timedelta"),
    ],
)
def test_pe13_a_delay_of_another_type(value: Any, actual: str) -> None:
    error = _refused(retryDelayMs=value)
    assert type(error) is TaskInvalidTypeError
    assert error.message == (
        "Invalid type for field 'retryDelayMs': "
        f"expected non-negative integer of milliseconds, got {actual}"
    )
    assert {**error.details, "value": None} == {
        "field": "retryDelayMs",
        "value": None,
        "expectedType": "non-negative integer of milliseconds",
        "actualType": actual,
    }
    assert error.details["value"] is value


@pytest.mark.parametrize("value", [0, 1, 5000, 5000.0, 10**9])
def test_a_delay_is_a_whole_number_of_milliseconds_however_it_is_spelled(value: float) -> None:
    state = deserialize({**BARE, "retryDelayMs": value}, REGISTRATIONS)
    assert state.retry_delay == timedelta(milliseconds=value)


@pytest.mark.parametrize("value", [10**30, 1e300])
def test_a_delay_beyond_every_calendar(value: float) -> None:
    assert type(_refused(retryDelayMs=value)) is TaskInvalidValueError


@pytest.mark.requirement("001 Error Taxonomy/15")
@pytest.mark.parametrize(
    ("field", "value", "expected", "actual"),
    [
        ("name", 123, "string", "number"),
        ("name", None, "string", "null"),
        ("cronExpression", ["0 * * * *"], "string", "array"),
        ("lastAttemptAt", 1704067200, "string in ISO 8601", "number"),
        ("lastSuccessAt", {}, "string in ISO 8601", "object"),
        ("pendingRetryUntil", False, "string in ISO 8601", "boolean"),
        ("schedulerIdentifier", 7, "string", "number"),
        ("attempt", "1", "non-negative integer", "string"),
        ("attempt", -1, "non-negative integer", "negative number"),
        ("running", 1, "boolean", "number"),
    ],
)
def test_pe13_a_field_of_another_type(field: str, value: Any, expected: str, actual: str) -> None:
    error = _refused(**{field: value})
    assert type(error) is TaskInvalidTypeError
    assert error.details == {
        "field": field,
        "value": value,
        "expectedType": expected,
        "actualType": actual,
    }


@pytest.mark.requirement("001 Error Taxonomy/16")
def test_pe14_a_name_that_is_not_registered() -> None:
    error = _refused(name="b")
    assert type(error) is TaskInvalidValueError
    assert error.message == ("Invalid value for field 'name': is not the name of a registered task")
    assert (error.details["field"], error.details["value"]) == ("name", "b")


@pytest.mark.requirement("001 Error Taxonomy/16")
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("name", "", "must not be empty"),
        ("cronExpression", "61 * * * *", "minute field "),
        ("cronExpression", "garbage", "expression field "),
        ("dialect", "quartz", "is unknown"),
        ("lastAttemptAt", "yesterday", "is not an instant in ISO 8601"),
        ("lastAttemptAt", "2024-01-01T10:00:00", "names no offset from UTC; append Z"),
        ("registeredAt", "2024-02-30T10:00:00Z", "is not an instant in ISO 8601"),
        ("lastSuccessAt", "0001-01-01T00:00:00+14:00", "is not an instant in ISO 8601"),
    ],
)
def test_a_value_that_means_nothing(field: str, value: str, reason: str) -> None:
    error = _refused(**{field: value})
    assert type(error) is TaskInvalidValueError
    assert (error.details["field"], error.details["value"]) == (field, value)
    assert error.details["reason"].startswith(reason)
    assert error.message == f"Invalid value for field '{field}': {error.details['reason']}"


@pytest.mark.requirement("001 Error Taxonomy/17")
@pytest.mark.parametrize(
    ("value", "actual"),
    [(None, "null"), ([BARE], "array"), ("text", "string"), (7, "number"), (b"", "bytes")],
)
def test_pe15_what_is_no_object(value: Any, actual: str) -> None:
    with pytest.raises(TaskInvalidStructureError) as caught:
        deserialize(value, REGISTRATIONS)
    assert caught.value.message == f"Invalid task state: expected object, got {actual}"
    assert caught.value.details == {"value": value}


@pytest.mark.parametrize(
    "fraction", ["", ".123", ".123456"], ids=["seconds", "milliseconds", "microseconds"]
)
def test_pe17_instants_come_back_as_they_were(fraction: str) -> None:
    texts = {
        key: f"2024-01-0{day}T10:00:00{fraction or '.000'}Z"
        for day, key in enumerate(["lastAttemptAt", "lastSuccessAt", "pendingRetryUntil"], 1)
    }
    state = deserialize({**BARE, **texts}, REGISTRATIONS)
    assert state.last_attempt_at == datetime.fromisoformat(texts["lastAttemptAt"])
    data = serialize(state)
    assert {key: data[key] for key in texts} == texts
    assert {key: data[key] for key in BARE} == BARE


@pytest.mark.parametrize(
    "registrations",
    [
        ["a"],
        REGISTRATIONS,
        [{"name": "a", "cron": "0 * * * *"}],
        {"a": REGISTRATIONS[0]},
        [deserialize(BARE, ["a"])],
    ],
    ids=["names", "tuples", "dicts", "mapping", "what has a name"],
)
def test_registrations_may_have_any_form(registrations: Any) -> None:
    assert deserialize(BARE, registrations).name == "a"


def test_a_record_may_say_no_more_than_it_must() -> None:
    state = deserialize(BARE, REGISTRATIONS)
    assert isinstance(state, TaskState)
    assert (state.cron, state.retry_delay) == ("0 * * * *", timedelta(minutes=5))
    assert (state.last_attempt_at, state.pending_retry_until, state.running) == (None, None, False)
    ran = deserialize({**BARE, "lastAttemptAt": "2024-01-01T12:00:00+02:00"}, REGISTRATIONS)
    assert ran.registered_at == ran.mark == datetime(2024, 1, 1, 10, tzinfo=UTC)


def test_a_record_may_hold_what_we_do_not_know() -> None:
    assert deserialize({**BARE, "lastFailureTime": 5}, REGISTRATIONS).name == "a"


instants = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))
optional = st.none() | instants
whole = st.integers(0, 10**6)
states = st.builds(
    StoredState,
    name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=255),
    cron=st.sampled_from(["0 * * * *", "0  7 * * 1-5"]),
    retry_delay=st.timedeltas(timedelta(0), timedelta(days=10**6)),
    timezone=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    scheduler_identifier=st.none() | st.uuids().map(str),
    registered_at=instants,
    last_attempt_at=optional,
    last_success_at=optional,
    pending_retry_until=optional,
    discharged_at=optional,
    occurrence_at=optional,
    freed_at=optional,
    boot_at=optional,
    paused_since=optional,
    paused_until=optional,
    run_requested_at=optional,
    attempt=whole,
    failures=whole,
    interruptions=whole,
    run_count=whole,
    orphaned=st.booleans(),
    running=st.booleans(),
)


@pytest.mark.requirement("001 Idempotency Guarantees/4")
@given(states)
def test_every_state_survives_the_way_through_json(state: StoredState) -> None:
    data = json.loads(json.dumps(serialize(state)))
    assert deserialize(data, [state.name]) == state
    assert serialize(deserialize(data, [state.name])) == data


@pytest.mark.requirement("001 Error Taxonomy/13")
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=3))
def test_any_value_anywhere_ends_in_a_state_or_in_the_error_for_it(value: Any) -> None:
    known = serialize(deserialize(BARE, ["a"]))
    for field in known:
        try:
            deserialize({**known, field: value}, ["a"])
        except TaskTryDeserializeError as error:
            assert error.details["field"] == field


# --- a state is a value ---


STATE = TaskState(name="a", registered_at=datetime(2026, 1, 1, tzinfo=UTC), attempt=1)


def test_a_state_with_other_values_is_another_state() -> None:
    changed = replace(STATE, attempt=3, orphaned=True)
    assert (STATE.attempt, STATE.orphaned) == (1, False)
    assert hash(changed) == hash(replace(STATE, attempt=3, orphaned=True))
    with pytest.raises(FrozenInstanceError):
        changed.attempt = 4  # type: ignore[misc]
