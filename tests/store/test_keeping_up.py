"""What is forgotten keeps up with what is written, and no start waits for it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.conf import Options
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.runtime.housekeeping import EVERY, Housekeeping
from django_declarative_cron.store import history
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
    monkeypatch.setattr(history, "BATCH", BATCH)
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


def _slow(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, seconds: float) -> list[str]:
    """Let each look for surplus take so long, and find a batch; give the names looked at."""
    looked = list[str]()

    def prune(member: object, name: str, keep: int) -> int:
        _passes(clock, seconds)
        looked.append(name)
        return history.BATCH

    monkeypatch.setattr(history, "prune_surplus", prune)
    return looked


def test_a_loop_comes_back_when_the_rest_is_over_and_only_where_more_waits(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.prune(member, NOW)
    keeping.work(member, NOW, None)
    assert keeping.longest_sleep(SECOND) == 1.0
    looked = _slow(monkeypatch, clock, 0.125)
    keeping.note([_started("t")])
    keeping.work(member, NOW, None)
    assert (looked, keeping.longest_sleep(SECOND), keeping.longest_sleep(SECOND)) == (
        ["t"],
        0.5,
        1.0,
    )


def test_pruning_takes_a_fifth_of_the_time_whether_it_succeeds_or_not(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), list[str]()

    def fail(member: object, name: str, keep: int) -> int:
        looked.append(name)
        _passes(clock, 0.5)
        raise ValueError("no")

    monkeypatch.setattr(history, "prune_surplus", fail)
    keeping.note([_started("t"), _started("u")])
    with pytest.raises(ValueError, match=r"^no$"):
        keeping.work(member, NOW, NOW)
    _passes(clock, 1.875)
    keeping.work(member, NOW, NOW)
    assert looked == ["t"]
    _passes(clock, 0.125)
    with pytest.raises(ValueError, match=r"^no$"):
        keeping.work(member, NOW, NOW)
    assert looked == ["t", "u"]


def test_a_piece_of_work_ends_with_a_batch(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, looked = Housekeeping(Options(HISTORY_MAX_RUNS=3), clock), _slow(monkeypatch, clock, 0)
    keeping.note([_started("t"), _started("u")])
    assert keeping.prune(member, NOW)
    assert looked == ["t"]
    keeping.prune(member, NOW)
    keeping.prune(member, NOW)
    assert looked == ["t", "u"]


@pytest.mark.parametrize(("kept", "every"), [(3, EVERY), (1000, 100)])
def test_where_much_is_kept_surplus_is_looked_for_less_often(
    clock: ManualClock, kept: int, every: int
) -> None:
    assert Housekeeping(Options(HISTORY_MAX_RUNS=kept), clock)._every == every


def test_ages_begin_to_be_looked_at_in_a_quiet_moment_and_go_on_in_any(
    member: Member, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "BATCH", 2)
    _runs("t", "mmmmm", age=100)
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY), clock)
    left = []
    for far in (SECOND, 2 * SECOND, SECOND, SECOND):
        keeping.work(member, NOW, NOW + far)
        left.append(len(_left()))
    assert left == [5, 3, 1, 0]
