"""Pulses that a trace does not state: from which schedule, when, and at which position."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.theory import check, judge
from django_declarative_cron.theory.derived_events import Schedule
from django_declarative_cron.theory.events import Record, Registration
from django_declarative_cron.theory.trace import positions

from .notation import at, trace
from .said import said
from .test_examples import Mode, both_modes

FIVE_MINUTES = timedelta(minutes=5)


def seen(records: Iterable[Record], **options: Any) -> list[str]:
    """Give each position as its second and its events."""
    return [
        f"{(position.at - at(0)).total_seconds():g} "
        + " + ".join(f"{event.kind} {event.task or ''}".strip() for event in position.events)
        for position in positions(records, **options)
    ]


# --- where pulses come ---


def test_a_pulse_comes_at_its_instant_before_what_is_not_earlier() -> None:
    records = trace("init 10 [a] · 60 RS a · 61 REf a · 400 SS", {"a": "1 * * * *"})
    assert seen(records) == [
        *("10 IS", "11 IEs", "60 Due a", "60 RS a", "61 REf a", "361 RetryDue a", "400 SS")
    ]


def test_pulses_of_one_instant_share_a_position() -> None:
    records = trace("init 10 [a,b] · 70 SS", dict.fromkeys("ab", "1 * * * *"))
    assert seen(records) == ["10 IS", "11 IEs", "60 Due a + Due b", "70 SS"]


def test_a_pulse_joins_stated_pulses_of_its_instant() -> None:
    records = trace("init 10 [a] · 60 Tick · 65 SS", {"a": "1 * * * *"})
    assert seen(records) == ["10 IS", "11 IEs", "60 Due a + Tick", "65 SS"]


def test_nothing_is_made_after_the_end() -> None:
    crons = {"a": "* * * * *"}
    assert seen(trace("init 10 [a] · 59 Tick", crons))[2:] == ["59 Tick"]
    assert seen(trace("init 10 [a] · 60 Tick", crons))[2:] == ["60 Due a + Tick"]


def test_a_year_of_silence_has_one_due() -> None:
    records = trace("init 10 [a] · 31536000 Tick", {"a": "* * * * *"})
    assert seen(records)[2:] == ["60 Due a", "3.1536e+07 Tick"]


def test_every_start_brings_the_next_due() -> None:
    records = trace("init 10 [a] · 90 RS a · 150 RS a · 151 RS a · 900 Tick", {"a": "* * * * *"})
    dues = [each for each in seen(records) if "Due" in each]
    assert dues == ["60 Due a", "120 Due a", "180 Due a"]


def test_a_removed_task_has_one_due_at_most() -> None:
    records = trace("init 10 [a] · init 20 [] · 9000 Tick", {"a": "* * * * *"})
    assert [each for each in seen(records) if "Due" in each] == ["60 Due a"]


def test_the_dues_of_an_overridden_schedule_end() -> None:
    records = trace("init 10 [a] · init 20 [a'] · 9000 Tick", {"a": "1 * * * *", "a'": "5 * * * *"})
    assert [each for each in seen(records) if "Due" in each] == ["300 Due a"]


# --- whose pulses are made ---


def test_a_trace_that_states_the_due_of_a_cron_expression_states_all() -> None:
    records = trace("init 10 [a,b] · 60 Due a · 200 SS", dict.fromkeys("ab", "* * * * *"))
    assert seen(records) == ["10 IS", "11 IEs", "60 Due a", "200 SS"]
    assert seen(records, pulses="stated") == seen(records)
    assert seen(records, pulses="made")[2] == "60 Due a + Due b + Due a"


def test_stated_and_made_dues_live_in_one_trace() -> None:
    records = trace("init 10 [a,b] · 90 Due a · 200 SS", {"b": "2 * * * *"})
    assert seen(records) == ["10 IS", "11 IEs", "90 Due a", "120 Due b", "200 SS"]


@both_modes
def test_a_stated_due_does_not_double_a_made_one(mode: Mode) -> None:
    text = "init 10 [a] · 60 RS a · 61 REs a · 61 Due a · 62 RS a · 63 REs a"
    records = trace(text, {"a": "1 * * * *"})
    assert {v.axiom for v in check(records, mode, pulses="made")} == {"S1", "S2"}
    assert check(records, mode, pulses="stated") != []


def test_a_stated_retry_does_not_double_a_made_one() -> None:
    text = "init 10 [a] · 60 Due a · 61 RS a · 62 REf a · 362 RetryDue a"
    assert seen(trace(text))[-1] == "362 RetryDue a + RetryDue a"
    elsewhere = text.replace("362", "100") + " · 101 RS a"
    assert said(check(trace(elsewhere))) == {"S1 6"}


def test_no_pulses_are_made_for_what_is_not_governed() -> None:
    records = trace("init 10 [a] · 20 RS a · 21 REf a · 9000 Tick", {"a": "* * * * *"})
    for record in records[:2]:
        record["registrations"][0]["overlap_policy"] = "skip"
    assert seen(records) == ["10 IS", "11 IEs", "20 RS a", "21 REf a", "9000 Tick"]


# --- what was due before a task was known ---


@both_modes
@pytest.mark.parametrize(("minute", "owed"), [("1", True), ("0,2", False), ("*", True)])
def test_a_first_coming_boots_in_a_minute_that_matches(minute: str, owed: bool, mode: Mode) -> None:
    records = trace("init 70 [a] · 72 RS a · 73 REs a", {"a": f"{minute} * * * *"})
    assert said(check(records, mode)) == (set() if owed else {"S1 2"})


# --- civil time ---


def _civil(cron: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    registrations = [
        {"name": "t", "cron": cron, "timezone": zone, "retry_delay": FIVE_MINUTES},
    ]
    records: list[dict[str, Any]] = [{"at": start, "event": "IEs", "registrations": registrations}]
    dues: list[datetime] = []
    while not dues or dues[-1] < end:
        last = dues[-1] if dues else start
        found = list(positions([*records, {"at": end, "event": "Tick"}], pulses="made"))
        new = [p.at for p in found if p.has("Due") and p.at > last]
        if not new:
            break
        dues.append(new[0])
        records.append({"at": new[0] + timedelta(seconds=1), "event": "RS", "task": "t"})
    return dues


def test_r7_a_repeated_local_minute_is_due_once() -> None:
    start = datetime(2024, 11, 3, 4, 0, tzinfo=UTC)
    dues = _civil("30 1 * * *", "America/New_York", start, start + timedelta(days=1, hours=3))
    assert dues == [
        datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
        datetime(2024, 11, 4, 6, 30, tzinfo=UTC),
    ]


def test_a_local_minute_that_does_not_exist_is_not_due() -> None:
    start = datetime(2024, 3, 9, 12, 0, tzinfo=UTC)
    dues = _civil("30 2 * * *", "America/New_York", start, start + timedelta(days=2))
    assert dues == [datetime(2024, 3, 11, 6, 30, tzinfo=UTC)]


def test_gap_and_fold_of_a_registration_are_heard() -> None:
    start = datetime(2024, 3, 10, 6, 0, tzinfo=UTC)
    entry = {"name": "t", "cron": "30 2 * * *", "timezone": "America/New_York", "gap": "shift"}
    records = [
        {"at": start, "event": "IEs", "registrations": [entry]},
        {"at": start + timedelta(hours=2), "event": "Tick"},
    ]
    assert [p.at for p in positions(records) if p.has("Due")] == [start + timedelta(hours=1)]


# --- any schedule will do ---


class Instants:
    """A schedule of a few instants."""

    def __init__(self, *seconds: int) -> None:
        self.instants = [at(second) for second in seconds]

    def next_after(self, instant: datetime) -> datetime | None:
        return next((each for each in self.instants if each > instant), None)

    def latest_at_or_before(self, instant: datetime) -> datetime | None:
        return max((each for each in self.instants if each <= instant), default=None)


def instants(registration: Registration) -> Schedule:
    assert registration.cron is not None
    return Instants(*map(int, registration.cron.split()))


def test_schedules_can_be_given() -> None:
    records = trace("init 10 [a] · 75 RS a · 76 REs a · 99 Tick", {"a": "73 5000"})
    assert check(records, schedules=instants) == []
    assert said(check(records, schedules=lambda _: Instants(80))) == {"S1 2", "open a"}


@pytest.mark.requirement("004 EA5")
def test_ea5_what_is_due_once_is_due_again() -> None:
    records = trace("init 10 [a] · 75 RS a · 76 REs a", {"a": "73"})
    (violation,) = check(records, schedules=instants)
    assert (violation.axiom, violation.owner, violation.task) == ("EA5", "environment", "a")
    assert check(trace("init 10 [a] · 99 Tick", {"a": ""}), schedules=instants) == []


def test_a_due_between_minutes_starts_no_minute() -> None:
    crons = {"a": "60 5000", "b": "73 5000"}
    text = "init 10 [b] · init 80 [a,b] · 85 RS a · 86 RS b"
    assert check(trace(text, crons), schedules=instants) == []


# --- late pulses change no more than they must ---


def test_a_trace_read_once_says_the_same() -> None:
    text = "init 10 [a] · 62 RS a · 63 REf a · 400 RS a · 401 REs a"
    records = trace(text, {"a": "1 * * * *"})
    assert judge(iter(records), pulses="made") == judge(records)
