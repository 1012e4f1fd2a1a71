"""What is forgotten keeps up with what is written, and no start waits for it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.conf import Options
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.runtime.housekeeping import (
    EVERY,
    LONGEST_DELAY,
    ROOM,
    Gaps,
    Housekeeping,
)
from django_declarative_cron.store import pruning
from django_declarative_cron.store.guard import Member
from django_declarative_cron.testing import ManualClock, Simulation

from .test_pruning import DAY, _left, _runs, _started, member

__all__ = ["member"]

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TASKS, KEPT, BATCH = 12, 5, 20


class Forgetful(Simulation):
    """A simulation that keeps little."""

    def _options(self) -> Options:
        return replace(super()._options(), HISTORY_MAX_RUNS=KEPT)


@pytest.mark.django_db
def test_where_it_is_never_quiet_the_history_does_not_grow_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pruning, "BATCH", BATCH)
    monkeypatch.setattr(housekeeping, "EVERY", KEPT)
    sim = Forgetful(NOW)
    entry = {"cron": "@every 1s", "callback": sim.job(), "timezone": "UTC"}
    sim.initialize([{"name": f"t{n}", **entry} for n in range(TASKS)])
    sim.advance_to(NOW + 30 * SECOND)
    assert sim.task("t0").run_count >= 29
    assert TaskRun.objects.count() <= TASKS * (KEPT + KEPT) + BATCH


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock that stands still."""
    return ManualClock(NOW)


def _passes(clock: ManualClock, seconds: float) -> None:
    clock.wait(threading.Event(), seconds)


@pytest.mark.parametrize(
    ("to_come", "has_come"),
    [(None, True), (ROOM, True), (ROOM / 2, False), (timedelta(0), True), (-SECOND, True)],
)
def test_work_begins_where_no_start_is_near(
    clock: ManualClock, to_come: timedelta | None, has_come: bool
) -> None:
    assert Gaps(clock).is_open(None if to_come is None else NOW + to_come) is has_come


def test_work_that_finds_no_room_begins_all_the_same(clock: ManualClock) -> None:
    gaps = Gaps(clock)
    _passes(clock, 3600)
    for _ in range(4):
        assert not gaps.is_open(clock.now() + ROOM / 2)
        _passes(clock, LONGEST_DELAY / 4)
    assert gaps.is_open(clock.now() + ROOM / 2)
    with gaps.work():
        pass
    assert not gaps.is_open(clock.now() + ROOM / 2)


def test_work_takes_a_fifth_of_the_time_whether_it_succeeds_or_not(clock: ManualClock) -> None:
    gaps = Gaps(clock)
    with pytest.raises(ValueError, match=r"^no$"), gaps.work():
        _passes(clock, 0.5)
        raise ValueError("no")
    assert gaps.rest() == 2.0
    _passes(clock, 1.875)
    assert not gaps.is_open(None)
    _passes(clock, 0.125)
    assert gaps.is_open(None)


def test_work_that_takes_long_needs_more_room(clock: ManualClock) -> None:
    gaps = Gaps(clock)
    with gaps.work():
        _passes(clock, 0.25)
    _passes(clock, 1.0)
    assert not gaps.is_open(clock.now() + timedelta(seconds=0.499))
    assert gaps.is_open(clock.now() + timedelta(seconds=0.5))


def _slow(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, seconds: float) -> list[str]:
    """Let each look for surplus take so long, and find a batch; give the names looked at."""
    looked = list[str]()

    def prune(member: object, name: str, keep: int) -> int:
        _passes(clock, seconds)
        looked.append(name)
        return pruning.BATCH

    monkeypatch.setattr(pruning, "prune_surplus", prune)
    return looked


def test_a_loop_comes_back_when_the_rest_is_over_and_only_where_more_waits(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.step(member, NOW)
    keeping.use_the_quiet(member, NOW, None)
    assert keeping.longest_sleep(SECOND) == 1.0
    looked = _slow(monkeypatch, clock, 0.125)
    keeping.note([_started("t")])
    keeping.use_the_quiet(member, NOW, None)
    assert (looked, keeping.longest_sleep(SECOND), keeping.longest_sleep(SECOND)) == (
        ["t"],
        0.5,
        1.0,
    )


def test_a_loop_does_not_turn_and_turn_where_a_start_leaves_no_room(
    member: Member, clock: ManualClock
) -> None:
    keeping = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock)
    keeping.note([_started("t")])
    keeping.use_the_quiet(member, NOW, NOW + ROOM / 2)
    assert keeping.longest_sleep(SECOND) == 1.0


def test_a_piece_of_work_ends_with_a_batch(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.note([_started("t"), _started("u")])
    assert keeping.step(member, NOW)
    assert looked == ["t"]
    keeping.step(member, NOW)
    keeping.step(member, NOW)
    assert looked == ["t", "u"]


@pytest.mark.parametrize(("kept", "every"), [(3, EVERY), (1000, 100)])
def test_where_much_is_kept_surplus_is_looked_for_less_often(
    clock: ManualClock, kept: int, every: int
) -> None:
    assert Housekeeping(Options(HISTORY_MAX_RUNS=kept), clock)._every == every


def test_ages_begin_to_be_looked_at_in_a_quiet_moment_and_go_on_in_any(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 2)
    _runs("t", "mmmmm", age=100)
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), clock)
    left = []
    for far in (SECOND, 2 * SECOND, SECOND, SECOND):
        keeping.use_the_quiet(member, NOW, NOW + far)
        left.append(len(_left()))
    assert left == [5, 3, 1, 0]
