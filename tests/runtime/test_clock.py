"""Two clocks that are read in turn: who is halted in between has not seen the wall's leap."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import Scheduler
from django_declarative_cron.runtime.clock import Moment, moment
from django_declarative_cron.testing import ManualClock

from .conftest import FIVE_MINUTES, NEVER_TODAY, Heard

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
HALT = timedelta(seconds=30)
READINGS = range(12)
"""So many looks at either clock are more than a pass has until its first statement."""


class Halting(ManualClock):
    """A clock of a process that is halted right after one of its looks at either clock."""

    looks_until_halt = -1

    def now(self) -> datetime:
        return self._then_halt(super().now())

    def monotonic(self) -> float:
        return self._then_halt(super().monotonic())

    def _then_halt(self, seen: Any) -> Any:
        if self.looks_until_halt == 0:
            self.advance(self._now + HALT)
        self.looks_until_halt -= 1
        return seen


@pytest.fixture
def clock() -> Halting:
    """Give a clock that halts nobody yet."""
    return Halting(NOON)


@pytest.fixture
def halting(transactional_db: None, clock: Halting) -> Scheduler:
    """Give a scheduler on that clock that has passed once."""
    made = Scheduler(clock=clock, background=False)
    made.initialize([("t", NEVER_TODAY, lambda: None, FIVE_MINUTES)])
    made.tick()
    return made


@pytest.mark.parametrize("looks", READINGS)
def test_both_clocks_are_read_at_once_wherever_the_process_is_halted(
    clock: Halting, looks: int
) -> None:
    clock.looks_until_halt = looks
    read = moment(clock)
    assert read == Moment((read.at - NOON).total_seconds(), read.at)


def test_a_process_that_is_halted_all_the_time_reads_something() -> None:
    class Slow(Halting):
        def _then_halt(self, seen: Any) -> Any:
            self.advance(self._now + HALT)
            return seen

    assert moment(Slow(NOON)).at > NOON


@pytest.mark.parametrize("looks", READINGS)
def test_a_halt_is_no_leap_of_the_clock(
    halting: Scheduler, clock: Halting, heard: Heard, looks: int
) -> None:
    clock.looks_until_halt = looks
    for _ in range(3):
        halting.tick()
        clock.advance(clock._now + timedelta(seconds=1))
    assert clock.looks_until_halt < 0
    assert heard.of("ClockStepped") == []


def test_a_leap_is_told_though_the_process_was_halted_as_well(
    halting: Scheduler, clock: Halting, heard: Heard
) -> None:
    clock.leap(NOON - timedelta(minutes=2))
    clock.looks_until_halt = 0
    halting.tick()
    halting.tick()
    assert [event.seconds for event in heard.of("ClockStepped")] == [-120.0]


def test_a_set_that_is_activated_again_for_long_is_no_leap_of_the_clock(
    halting: Scheduler, clock: Halting, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = iter([True, False, False])

    def take_long(*_: object) -> bool:
        clock.advance(clock._now + HALT)
        return next(asked)

    monkeypatch.setattr(halting, "_activate_again", take_long)
    halting.tick()
    halting.tick()
    assert heard.of("ClockStepped") == []


def test_a_pass_after_a_set_was_activated_again_for_long_is_of_its_own_time(
    halting: Scheduler, clock: Halting, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated = list[datetime]()

    def take_long(*_: object) -> bool:
        clock.advance(clock._now + HALT)
        return True

    monkeypatch.setattr(halting, "_activate_again", take_long)
    monkeypatch.setattr(halting._engine, "_poll", lambda view, now: evaluated.append(now))
    halting.tick()
    assert evaluated == [NOON, NOON + HALT]
