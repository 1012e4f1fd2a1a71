"""Results are written in batches, and an instant that comes waits for a small one at most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from django_declarative_cron import Run
from django_declarative_cron.core.declaration import Target
from django_declarative_cron.runtime import recording
from django_declarative_cron.runtime.calls import Calls
from django_declarative_cron.runtime.hush import CALLING, HUSH, Hush
from django_declarative_cron.runtime.recording import FEW, LONGEST, MOST, Recording
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.results import Recorded, Result
from django_declarative_cron.testing import ManualClock

from ..timeouts import TIMEOUT

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
A_BIT = timedelta(milliseconds=1)


class Book:
    """Results that wait, as ``Calls`` keeps them."""

    def __init__(self, number: int) -> None:
        self.waiting = [Result(n, f"t{n}", NOON, succeeded=True) for n in range(number)]
        self.late: list[Result] = []

    def gather(self, seconds: float) -> None:
        self.waiting += self.late
        self.late = []

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
        member, self.wakes, self.stopping = cast(Member, object()), 0, threading.Event()
        self.hush = Hush(self.clock, self._wake, self.stopping)
        book = cast(Calls, self.book)
        self.recording = Recording(self.clock, book, lambda: member, self.hush)

    def _wake(self) -> None:
        self.wakes += 1

    def _record(
        self, member: Any, batch: Sequence[Result], now: datetime, *, looks: bool
    ) -> Recorded:
        self.batches.append(len(batch))
        self.clock.advance(self.clock.now() + self.takes)
        return Recorded(held=[result for result in batch if result.run in self.held])


def test_all_are_written_a_thousand_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 2 * MOST + 1)
    assert desk.recording.write(NOON)
    assert desk.batches == [MOST, MOST, 1]
    assert not desk.recording.is_behind
    assert not desk.recording.write(NOON)


def test_only_what_is_written_in_time_is_written_before_an_instant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 4 * FEW)
    desk.takes = 20 * A_BIT
    instant = NOON + HUSH + 39 * A_BIT  # At first a hundred are taken to need 20 ms.
    assert desk.recording.write(NOON, instant)
    assert desk.batches == [195]  # 19 ms are left, and no batch takes less than 20.
    assert desk.recording.is_behind
    assert desk.recording.unrecorded == {f"t{n}" for n in range(195, 4 * FEW)}
    # What was left waits until what is due at the instant has begun.
    assert desk.recording.following(desk.clock.now(), instant) == instant
    desk.clock.advance(instant)
    desk.recording.write(instant, instant)
    assert desk.batches == [195]
    assert desk.recording.following(instant, instant + MINUTE) == instant
    desk.recording.write(instant, instant + MINUTE)
    assert desk.batches == [195, 4 * FEW - 195]
    assert not desk.recording.unrecorded
    assert desk.recording.following(instant, instant + MINUTE) == instant + MINUTE


@pytest.mark.parametrize(("left", "is_written"), [(20 * A_BIT, True), (19 * A_BIT, False)])
def test_even_one_result_is_kept_where_it_would_not_be_written_in_time(
    monkeypatch: pytest.MonkeyPatch, left: timedelta, is_written: bool
) -> None:
    desk = Desk(monkeypatch, 1)
    instant = NOON + HUSH + left
    assert desk.recording.write(NOON, instant)
    assert bool(desk.batches) is is_written
    # It is kept for that instant, and for no other one that takes its place.
    later = instant + A_BIT
    assert desk.recording.following(NOON, later) == (later if is_written else NOON)
    assert desk.recording.following(NOON, instant) == instant


def test_a_slow_batch_keeps_results_of_the_last_tenth_of_a_second_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 1)
    desk.takes = timedelta(seconds=5)
    desk.recording.write(NOON)
    desk.takes, now = timedelta(0), desk.clock.now()
    desk.book = desk.recording._calls = Book(1)  # type: ignore[assignment]
    instant = now + HUSH + timedelta(milliseconds=100)
    desk.recording.write(now, instant)
    assert desk.batches == [1, 1]


def test_who_ends_right_before_an_instant_wakes_nobody_and_is_looked_for_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 0)
    instant = NOON + HUSH
    desk.hush.ended()
    assert desk.recording.following(NOON, instant) == instant
    assert (desk.wakes, desk.hush.is_on) == (1, True)
    desk.book.waiting = Book(1).waiting
    desk.hush.ended()
    assert desk.wakes == 1
    # Whatever the next pass brings, also that nothing is due any more.
    assert desk.recording.following(NOON, None) == NOON
    desk.hush.ended()
    assert (desk.wakes, desk.hush.is_on) == (2, False)
    # A result that somebody else holds is tried no sooner for that.
    assert desk.recording.following(NOON, None) is None


def test_a_hush_ends_by_itself_and_with_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 0)
    desk.hush.begin(NOON, NOON + HUSH)
    desk.clock.leap(NOON - MINUTE)  # The clock on the wall is set back: it is no longer for that.
    desk.clock.advance(NOON - MINUTE + HUSH + CALLING - A_BIT)
    assert desk.hush.is_on
    desk.stopping.set()
    desk.hush.ended()
    assert (desk.wakes, desk.hush.is_on) == (1, False)
    desk.stopping.clear()
    desk.clock.advance(desk.clock.now() + A_BIT)
    desk.hush.ended()
    assert (desk.wakes, desk.hush.is_on) == (2, False)
    desk.hush.begin(NOON, NOON + HUSH + A_BIT)
    assert not desk.hush.is_on


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


def test_who_has_ended_tells_so_before_what_is_due_by_then_is_considered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 0)
    desk.book.late = [Result(1, "t1", NOON, succeeded=True)]
    instant = NOON + A_BIT
    desk.hush.begin(NOON, instant)
    assert not desk.recording.write(NOON, instant)  # It is to come: nobody is waited for.
    assert (desk.batches, desk.hush.is_on) == ([], True)
    desk.clock.advance(instant)
    assert desk.recording.write(instant, instant)
    assert (desk.batches, desk.hush.is_on) == ([1], False)


def test_the_result_of_a_callback_that_has_ended_is_waited_for() -> None:
    ended = threading.Event()
    calls = Calls(ManualClock(NOON), cast(Any, None), None, lambda: None, cast(Any, None))
    run = Run("t", NOON, NOON, 1, "due", "UTC", threading.Event())
    goes_on, over = (Work(n, run, Target("", lambda: None), calls._done) for n in (1, 2))
    calls._running = {1: goes_on, 2: over}
    calls.gather(TIMEOUT)  # Nobody has ended.
    over.ending.settle()
    calls.gather(0)
    assert calls.waiting == []

    def done() -> None:
        ended.wait(TIMEOUT)
        over.done(Result(2, "t", NOON, succeeded=True))

    teller = threading.Thread(target=done)
    teller.start()
    waits = calls._book.wait_for

    def wait_for(is_there: Callable[[], bool], seconds: float) -> bool:
        ended.set()
        return waits(is_there, seconds)

    calls._book.wait_for = wait_for  # type: ignore[assignment]
    calls.gather(TIMEOUT)
    assert [each.run for each in calls.waiting] == [2]
    teller.join()
