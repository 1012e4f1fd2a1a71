"""Pulses that a trace does not state: from which schedule, when, and at which position."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.theory import check, judge
from django_declarative_cron.theory.derived_events import Schedule
from django_declarative_cron.theory.events import Record, Registration
from django_declarative_cron.theory.trace import positions

from .notation import Case, Mode, at, both_modes, cases, said, trace


def seen(records: Iterable[Record], **options: Any) -> list[str]:
    """Give each position as its second and its events."""
    return [
        f"{(position.at - at(0)).total_seconds():.0f} "
        + " + ".join(f"{event.kind} {event.task or ''}".strip() for event in position.events)
        for position in positions(records, **options)
    ]


PULSES = cases("""
a pulse comes at its instant before what is not earlier
  {a 1} init 10 [a] · 60 RS a · 61 REf a · 400 SS
  → 10 IS · 11 IEs · 60 Due a · 60 RS a · 61 REf a · 361 RetryDue a · 400 SS
pulses of one instant share a position
  {a 1, b 1} init 10 [a,b] · 70 SS → 10 IS · 11 IEs · 60 Due a + Due b · 70 SS
a pulse joins stated pulses of its instant
  {a 1} init 10 [a] · 60 Tick · 65 SS → 10 IS · 11 IEs · 60 Due a + Tick · 65 SS
nothing is made after the end
  {a *} init 10 [a] · 59 Tick → 10 IS · 11 IEs · 59 Tick
  {a *} init 10 [a] · 60 Tick → 10 IS · 11 IEs · 60 Due a + Tick
a year of silence has one due
  {a *} init 10 [a] · 31536000 Tick → 10 IS · 11 IEs · 60 Due a · 31536000 Tick
every start brings the next due
  {a *} init 10 [a] · 90 RS a · 150 RS a · 151 RS a · 900 Tick
  → 10 IS · 11 IEs · 60 Due a · 90 RS a · 120 Due a · 150 RS a · 151 RS a · 180 Due a · 900 Tick
a removed task has one due at most
  {a *} init 10 [a] · init 20 [] · 9000 Tick
  → 10 IS · 11 IEs · 20 IS · 21 IEs · 60 Due a · 9000 Tick
the dues of an overridden schedule end
  {a 1, a' 5} init 10 [a] · init 20 [a'] · 9000 Tick
  → 10 IS · 11 IEs · 20 IS · 21 IEs · 300 Due a · 9000 Tick
a trace that states the due of a cron expression states all
  {a *, b *} init 10 [a,b] · 60 Due a · 200 SS → 10 IS · 11 IEs · 60 Due a · 200 SS
stated and made dues live in one trace
  {b 2} init 10 [a,b] · 90 Due a · 200 SS → 10 IS · 11 IEs · 90 Due a · 120 Due b · 200 SS
a stated retry does not double a made one
  owed · 61 RS a · 62 REf a · 362 RetryDue a
  → 10 IS · 11 IEs · 60 Due a · 61 RS a · 62 REf a · 362 RetryDue a + RetryDue a
no pulses are made for what is not governed
  {a *} init 10 [a:skip] · 20 RS a · 21 REf a · 9000 Tick
  → 10 IS · 11 IEs · 20 RS a · 21 REf a · 9000 Tick
""")


@pytest.mark.parametrize("case", PULSES, ids=lambda case: case.name)
def test_pulses_are_made_where_they_are_not_stated(case: Case) -> None:
    assert seen(trace(case.text)) == case.repaired.split(" · ")


def test_it_can_be_said_whose_pulses_are_made() -> None:
    records = trace("{a *, b *} init 10 [a,b] · 60 Due a · 200 SS")
    assert seen(records, pulses="stated") == seen(records)
    assert seen(records, pulses="made")[2] == "60 Due a + Due b + Due a"


@both_modes
def test_a_stated_due_does_not_double_a_made_one(mode: Mode) -> None:
    text = "init 10 [a] · 60 RS a · 61 REs a · 61 Due a · 62 RS a · 63 REs a"
    records = trace(text, {"a": "1 * * * *"})
    assert {v.axiom for v in check(records, mode, pulses="made")} == {"S1", "S2"}
    assert check(records, mode, pulses="stated") != []


# --- what was due before a task was known ---


@both_modes
@pytest.mark.parametrize(("minute", "owed"), [("1", True), ("0,2", False), ("*", True)])
def test_a_first_coming_boots_in_a_minute_that_matches(minute: str, owed: bool, mode: Mode) -> None:
    records = trace("init 70 [a] · 72 RS a · 73 REs a", {"a": f"{minute} * * * *"})
    assert said(check(records, mode)) == (set() if owed else {"S1 2"})


# --- civil time ---


@pytest.mark.parametrize(
    ("cron", "keys", "start", "dues"),
    [
        # R7: the second pass of a repeated local minute is none.
        ("30 1 * * *", {}, "2024-11-03T04:00Z", ["2024-11-03T05:30Z", "2024-11-04T06:30Z"]),
        # A local minute that does not exist is not due, unless the registration shifts it.
        ("30 2 * * *", {}, "2024-03-09T12:00Z", ["2024-03-11T06:30Z"]),
        ("30 2 * * *", {"gap": "shift"}, "2024-03-10T06:00Z", ["2024-03-10T07:00Z"]),
    ],
)
def test_dues_follow_civil_time(
    cron: str, keys: dict[str, Any], start: str, dues: list[str]
) -> None:
    expected = [datetime.fromisoformat(due) for due in dues]
    entry = {"name": "t", "cron": cron, "timezone": "America/New_York", **keys}
    registered = {"event": "IEs", "registrations": [entry]}
    records = [{"at": datetime.fromisoformat(start), **registered}]
    for due in expected:
        records.append({"at": due + timedelta(seconds=1), "event": "RS", "task": "t"})
    assert [p.at for p in positions(records, pulses="made") if p.has("Due")] == expected


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
