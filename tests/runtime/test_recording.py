"""Results are written in batches, and an instant that comes waits for a small one at most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from django_declarative_cron.runtime import recording
from django_declarative_cron.runtime.calls import Calls
from django_declarative_cron.runtime.recording import FEW, HUSH, LONGEST, MOST, Recording
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.results import Recorded, Result
from django_declarative_cron.testing import ManualClock

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Book:
    """Results that wait, as ``Calls`` keeps them."""

    def __init__(self, number: int) -> None:
        self.waiting = [Result(n, f"t{n}", NOON, succeeded=True) for n in range(number)]

    def recorded(self, results: list[Result], held: list[Result]) -> None:
        self.waiting = self.waiting[len(results) :] + held


class Desk:
    """Write what waits, with a database that takes all of it but what is held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.clock, self.book = ManualClock(NOON), Book(number)
        self.batches: list[int] = []
        self.held: set[int] = set()
        self.takes = timedelta(0)
        monkeypatch.setattr(recording.results, "record", self._record)
        member = cast(Member, object())
        self.recording = Recording(self.clock, cast(Calls, self.book), lambda: member)

    def _record(self, member: Any, batch: Sequence[Result], now: datetime) -> Recorded:
        self.batches.append(len(batch))
        self.clock.advance(self.clock.now() + self.takes)
        return Recorded(held=[result for result in batch if result.run in self.held])


def test_all_are_written_a_thousand_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 2 * MOST + 1)
    assert desk.recording.write(NOON)
    assert desk.batches == [MOST, MOST, 1]
    assert not desk.recording.is_behind
    assert not desk.recording.write(NOON)


def test_an_instant_that_comes_waits_for_no_more_than_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 4 * FEW)
    desk.takes = timedelta(milliseconds=20)
    instant = NOON + HUSH + timedelta(milliseconds=30)
    assert desk.recording.write(NOON, instant)
    assert desk.batches == [FEW, FEW]
    assert desk.recording.is_behind
    assert desk.recording.unrecorded == {f"t{n}" for n in range(2 * FEW, 4 * FEW)}
    assert desk.recording.following(NOON, instant) == NOON
    # What was left before the instant waits until what is due then has begun.
    near = desk.clock.now()
    desk.recording.write(near, instant)
    assert desk.recording.following(near, instant) == instant
    desk.recording.write(instant, instant)
    assert desk.batches == [FEW, FEW]
    assert desk.recording.following(instant, instant + MINUTE) == instant
    desk.recording.write(instant, instant)
    assert desk.batches == [FEW, FEW, 2 * FEW]
    assert not desk.recording.unrecorded
    assert desk.recording.following(instant, instant + MINUTE) == instant + MINUTE


def test_a_few_results_are_written_before_what_is_due_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, FEW)
    desk.recording.write(NOON, NOON)
    assert desk.batches == [FEW]
    assert not desk.recording.is_behind


def test_results_wait_for_no_instants_that_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 2 * FEW)
    now = NOON
    while not desk.batches:
        assert now <= NOON + LONGEST
        desk.clock.advance(now)
        desk.recording.write(now, now)
        now += timedelta(milliseconds=10)
    assert now - NOON > LONGEST
    assert not desk.recording.is_behind


def test_what_is_held_is_tried_once_and_goes_on_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, MOST + 2)
    desk.held = {0, 5}
    desk.recording.write(NOON)
    assert desk.batches == [MOST, 2]
    assert [result.run for result in desk.book.waiting] == [0, 5]
    # Somebody else holds their rows: nobody's start waits for that.
    assert not desk.recording.unrecorded
