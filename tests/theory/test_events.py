"""A bad record is refused with its index and the way to mend it; a good one is understood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from django_declarative_cron.theory import TraceError, check, judge

from .notation import at, said, trace

GOOD: dict[str, Any] = {"at": at(0), "event": "Tick"}

BAD: list[tuple[object, str]] = [
    ("RS", "must be a mapping, not str"),
    ({"event": "SS"}, '"at" must be an aware datetime, got None'),
    ({"at": "2024", "event": "SS"}, '"at" must be an aware datetime'),
    ({"at": datetime(2024, 1, 1), "event": "SS"}, "is naive: say its zone"),
    ({"at": at(1)}, "unknown event None, use one of IS, "),
    ({"at": at(1), "event": "ies"}, "unknown event 'ies'; did you mean \"IEs\"?"),
    ({"at": at(1), "event": ["RS"]}, "unknown event"),
    ({"at": at(1), "event": "RS"}, 'RS needs "task"'),
    ({"at": at(1), "event": "Due", "task": 7}, 'Due needs "task"'),
    ({"at": at(1), "event": "IS"}, 'IS needs "registrations", a list'),
    ({"at": at(1), "event": "IEs", "registrations": "ab"}, 'IEs needs "registrations", a list'),
    ({"at": at(1), "event": "Freeze"}, '"until" must be an aware datetime'),
    ({"at": at(1), "event": "Freeze", "until": at(0)}, "a Freeze ends after it starts"),
    ({"at": at(1), "event": "REf", "task": "a", "retry_at": 5}, '"retry_at" must be an aware'),
    ({"at": at(1), "event": "SS", "position": -1}, "position must be a whole number"),
    ({"at": at(1), "event": "SS", "position": "1"}, "position must be a whole number"),
    ({"at": at(-1), "event": "SS"}, "sort the records"),
]


@pytest.mark.parametrize(("record", "message"), BAD, ids=range(len(BAD)))
def test_a_bad_record_is_refused_with_its_index(record: Any, message: str) -> None:
    with pytest.raises(TraceError, match=r"^record 2: ") as caught:
        check([GOOD, GOOD, record])
    assert message in str(caught.value)
    assert caught.value.index == 2


def test_the_records_of_a_position_share_an_instant() -> None:
    records = trace("10 SS · 20 SE")
    records[1]["position"] = 0
    with pytest.raises(TraceError, match="record 1: position 0 has two instants"):
        check(records)


def test_the_records_of_a_position_stay_together() -> None:
    records = trace("10 SS · 10 SE · 10 Tick")
    records[2]["position"] = 0
    with pytest.raises(TraceError, match="record 2: position 0 is over"):
        check(records)


def test_positions_are_counted_where_records_do_not_group_them() -> None:
    records = trace("init 10 [a] · 20 RS a")
    for record in records:
        del record["position"]
    assert said(check(records)) == {"S1 2"}


def test_records_of_a_clock_that_was_set_back_can_be_held() -> None:
    records = trace("init 10 [a] · 120 Due a · 121 RS a · 60 REs a · 61 Due a")
    with pytest.raises(TraceError, match="set_back"):
        check(records)
    verdict = judge(records, set_back="hold")
    assert verdict.ok
    assert [v.at for v in verdict.open_obligations] == [at(121)]


def test_a_record_that_others_pushed_forwards_by_microseconds_is_in_order() -> None:
    records = trace("init 10 [a] · 60 Due a · 60.0009 RS a · 60 Tick")
    assert check(records) == []
    records[-1]["at"] -= timedelta(milliseconds=1)
    with pytest.raises(TraceError, match="record 4"):
        check(records)


def test_instants_of_any_zone_are_understood() -> None:
    records = trace("init 10 [a] · 20 RS a")
    records[-1]["at"] = records[-1]["at"].astimezone(timezone(timedelta(hours=5)))
    (violation,) = check(records)
    assert violation.at.tzinfo is UTC


def test_foreign_keys_are_left_alone() -> None:
    records = [record | {"instance": "x"} for record in trace("began")]
    assert check(records) == []


def test_a_trace_may_be_any_iterable() -> None:
    assert check(iter(trace("began"))) == []


@pytest.mark.requirement("004 S5", "004 Safety Axioms/4")
@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"name": ""}, "a name has 1 to 255 characters"),
        ({"name": "x" * 256}, "a name has 1 to 255 characters"),
        ({"name": "a\nb"}, "name 'a\\nb' has control characters"),
        ({"name": 7}, "name 7 is not a text"),
        ("a", "a str, not a mapping"),
        ({"name": "a", "cron": "61 * * * *"}, "a: "),
        ({"name": "a", "cron": 7}, "cron 7 is not a text"),
        ({"name": "a", "cron": "* * * * *", "timezone": "EST"}, "a: "),
        ({"name": "a", "retry_delay": -timedelta(seconds=1)}, "is below a millisecond"),
        ({"name": "a", "retry_delay": timedelta(microseconds=1)}, "is below a millisecond"),
        ({"name": "a", "retry_delay": 5}, "retry_delay 5 is not a timedelta"),
        ({"name": "a", "offset": 5}, "offset 5 is not a timedelta"),
    ],
)
def test_a_list_with_what_cannot_be_read_is_none_to_accept(entry: object, fault: str) -> None:
    records = trace("10 IS[] · 11 IEs[]")
    for record in records:
        record["registrations"] = [entry]
    (violation,) = check(records)
    assert (violation.axiom, violation.owner) == ("S5", "scheduler")
    assert fault in violation.explanation
    records[1]["event"] = "IEf"
    assert check(records) == []


@pytest.mark.requirement("004 Safety Axioms/3")
@pytest.mark.parametrize("delay", [timedelta(0), timedelta(milliseconds=1), timedelta.max])
def test_any_delay_from_a_millisecond_on_is_accepted_and_none(delay: timedelta) -> None:
    records = trace("failed")
    for record in records[:2]:
        record["registrations"][0]["retry_delay"] = delay
    assert check(records) == []


def test_stated_retries_count_where_no_delay_is_known() -> None:
    records = trace("failed · 100 RetryDue a · 101 RS a")
    for record in records[:2]:
        del record["registrations"][0]["retry_delay"]
    assert check(records) == []
