"""Results are written in batches, and a start that is due waits for one batch at most."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from django_declarative_cron import Run
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import executor
from django_declarative_cron.runtime.executor import BATCH, Executor
from django_declarative_cron.runtime.outcome import succeeded
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.results import Recorded, Result
from django_declarative_cron.testing import ManualClock, Simulation
from django_declarative_cron.testing.callables import Queue

from ..timeouts import TIMEOUT

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


MEMBER = cast(Member, object())


def _executor() -> Executor:
    return Executor(ManualClock(NOON), cast(Any, None), None, cast(Any, None), lambda: None)


class Desk:
    """Write waiting results to a database; those whose rows are locked go on waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.batches, self.locked = list[int](), set[int]()
        self.executor = _executor()
        self.executor._waiting = [Result(n, f"t{n}", NOON, succeeded=True) for n in range(number)]
        monkeypatch.setattr(executor.results, "record", self._record)

    def write(self, **how: bool) -> bool:
        return self.executor.record(MEMBER, NOON, **how)

    def _record(self, member: Any, batch: Sequence[Result], now: datetime) -> Recorded:
        self.batches.append(len(batch))
        return Recorded(held=[result for result in batch if result.run in self.locked])


def test_a_pass_writes_one_batch_and_leaves_the_rest_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, BATCH + 1)
    assert desk.write()
    assert (desk.batches, desk.executor.is_behind) == ([BATCH], True)
    assert desk.executor.unrecorded == {f"t{BATCH}"}
    assert desk.write()
    assert (desk.batches, desk.executor.is_behind) == ([BATCH, 1], False)
    assert not desk.executor.unrecorded
    assert not desk.write()


def test_a_stop_writes_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 2 * BATCH + 1)
    desk.executor.record_all(MEMBER, NOON)
    assert desk.batches == [BATCH, BATCH, 1]
    assert not desk.executor.waiting


def test_a_result_whose_row_is_locked_is_tried_once_and_goes_on_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, BATCH + 2)
    desk.locked = {0, 5}
    desk.executor.record_all(MEMBER, NOON)
    assert desk.batches == [BATCH, 2]
    assert [result.run for result in desk.executor.waiting] == [0, 5]
    # No start waits for a row that another transaction has locked.
    assert not desk.executor.unrecorded


def test_runs_that_have_ended_are_recorded_before_due_tasks_are_considered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk(monkeypatch, 0)
    late = [Result(1, "t1", NOON, succeeded=True)]
    monkeypatch.setattr(desk.executor, "gather", lambda _: desk.executor._waiting.extend(late))
    assert not desk.write()
    assert desk.write(is_due=True)
    assert desk.batches == [1]


def test_the_result_of_a_callback_that_has_ended_is_waited_for() -> None:
    ended = threading.Event()
    calls = _executor()
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
    waits = calls._changed.wait_for

    def wait_for(is_there: Callable[[], bool], seconds: float) -> bool:
        ended.set()
        return waits(is_there, seconds)

    calls._changed.wait_for = wait_for  # type: ignore[assignment]
    calls.gather(TIMEOUT)
    assert [each.run for each in calls.waiting] == [2]
    teller.join()


# --- what is due every second, when writing takes its time ---

TASKS = 24
SECONDS = 12


class Inline(Queue):
    """Call what was claimed at once; nothing takes time."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def submit(self, work: Work) -> None:
        work.done(succeeded(work, self._clock.now()))


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["skip", "allow", "enqueue"])
def test_every_second_is_served_although_writing_takes_a_third_of_one(
    monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """On the virtual clock nothing takes time but batches of results."""
    sim = Simulation(start="2024-01-01T12:00:00Z", time_zone="UTC")
    real, batches, passes = executor.results.record, list[int](), 0

    def record(member: Any, batch: Sequence[Result], now: datetime) -> Recorded:
        batches.append(len(batch))
        sim.clock.advance(sim.now + timedelta(milliseconds=300))
        return real(member, batch, now)

    monkeypatch.setattr(executor, "BATCH", TASKS)
    monkeypatch.setattr(executor.results, "record", record)
    entry = {"cron": "* * * * * *", "callback": "builtins.print", "overlap_policy": policy}
    scheduler = sim.new_scheduler(Inline(sim.clock))
    scheduler.initialize([{**entry, "name": f"t{n}"} for n in range(TASKS)])
    end = sim.now + timedelta(seconds=SECONDS)
    while sim.now < end:
        passes += 1
        wake = scheduler.tick(sim.now)
        sim.clock.advance(max(wake or sim.now + timedelta(seconds=1), sim.now))
    assert scheduler.unrecorded <= TASKS
    scheduler.stop()
    assert TaskRun.objects.filter(outcome__in=("running", "succeeded")).count() == TASKS * SECONDS
    assert not TaskRun.objects.exclude(outcome__in=("running", "succeeded")).exists()
    assert len(batches) <= 2 * SECONDS
    assert passes <= 2 * SECONDS
