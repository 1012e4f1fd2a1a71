"""What is called at an instant is made before it, and so are the threads that call it."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.core import events
from django_declarative_cron.core.runners import THREAD
from django_declarative_cron.runtime.ahead import LEAD, WAY, Hold
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.runners.pool import Pool
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store import claims
from django_declarative_cron.store.guard import Standing
from django_declarative_cron.testing import ManualClock

from ..timeouts import TIMEOUT
from .test_ahead import INSTANT, Going

DELAY = timedelta(minutes=5)


def _nothing() -> None:
    """Do nothing."""


def _claims(number: int) -> list[claims.Claim]:
    said = [(f"t{n}", "* * * * *", _nothing, DELAY) for n in range(number)]
    found = []
    for run, declaration in enumerate(conf.declarations(said)):
        started = events.TaskRunStarted(
            at=INSTANT,
            task_name=declaration.name,
            scheduled_time=INSTANT,
            actual_time=INSTANT,
        )
        found.append(claims.Claim(run, declaration.name, started, 1, declaration))
    return found


def _made(found: list[claims.Claim]) -> list[Work]:
    return Scheduler()._engine._calls.take(found, threading.Event())


def test_what_is_to_be_called_is_ready_before_the_wait_for_its_instant_ends() -> None:
    engine, stopping = Scheduler()._engine, threading.Event()
    found, made = _claims(2), list[tuple[int, int]]()
    pool = engine.runners._by_name[THREAD]
    assert isinstance(pool, Pool)

    def meanwhile(clock: Going) -> None:
        made.append((len(engine._calls._ready), pool._threads))
        clock.go(LEAD)

    hold = Hold(INSTANT, Going(INSTANT - LEAD, meanwhile), stopping)  # type: ignore[arg-type]
    assert engine._calls.ready(hold, stopping)(found)
    assert made == [(2, 2)]
    ready = [work for _, work in engine._calls._ready]
    taken = engine._calls.take(found, stopping)
    assert [id(each) for each in taken] == [id(each) for each in ready]
    assert [each.id for each in taken] == [claim.run for claim in found]
    # Nothing is called twice.
    assert not {id(each) for each in engine._calls.take(found, stopping)} & {*map(id, taken)}
    engine.runners.close()


def test_what_was_committed_is_called_and_not_what_was_made_ready_for_a_claim_before() -> None:
    engine, stopping = Scheduler()._engine, threading.Event()
    hold = Hold(INSTANT, ManualClock(INSTANT), stopping)
    assert engine._calls.ready(hold, stopping)(_claims(3))
    assert [each.id for each in engine._calls.take(_claims(2)[1:], stopping)] == [1]
    engine.runners.close()


def test_what_was_made_ready_for_a_claim_that_is_taken_back_is_forgotten() -> None:
    engine, stopping = Scheduler()._engine, threading.Event()
    stopping.set()
    hold = Hold(INSTANT, ManualClock(INSTANT), stopping)
    assert not engine._calls.ready(hold, stopping)(_claims(1))
    assert engine._calls._ready == []
    engine.runners.close()


def test_a_pass_ahead_of_an_instant_gives_way_to_what_it_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, found = Scheduler()._engine, _claims(2)
    engine.standing = Standing.LEADING
    member: Any = SimpleNamespace(instance="here")
    engine._member = member
    hold = Hold(INSTANT, ManualClock(INSTANT), threading.Event())
    called = list[tuple[list[int], Hold | None]]()

    def claim(*_: object, hold: claims.Hold, **__: object) -> claims.Claimed:
        assert hold(found)
        return claims.Claimed(Standing.LEADING, found)

    def call(work: list[Work], hold: Hold | None = None) -> None:
        called.append(([each.id for each in work], hold))

    monkeypatch.setattr(claims, "claim_due", claim)
    monkeypatch.setattr(engine._calls, "call", call)
    engine._claim(member, INSTANT, hold)
    assert called == [([0, 1], hold)]
    engine.runners.close()


def test_threads_are_there_before_what_they_are_to_call() -> None:
    began = {number: threading.Event() for number in range(3)}
    pool = Pool("expected", 2, system_clock, lambda work: began[work.id].set())
    pool.expect(3)
    assert pool._threads == 2
    pool.expect(1)
    assert pool._threads == 2
    for work in _made(_claims(3)):
        pool.submit(work)
    assert all(each.wait(TIMEOUT) for each in began.values())
    pool.close()


def test_no_threads_are_started_for_runs_that_others_wait_for() -> None:
    pool = Pool("waiting", 5, system_clock, lambda work: None)
    pool._idle = 2
    pool.expect(3)
    assert pool._threads == 1
    pool.expect(2)
    assert pool._threads == 1
    pool.close()


def test_a_thread_that_cannot_be_started_ahead_of_an_instant_is_missed_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    pool = Pool("refused", 2, system_clock, lambda work: None)
    pool.expect(2)
    assert pool._threads == 0


def test_the_loop_makes_way_for_what_was_called_and_does_not_count_that_as_its_own() -> None:
    engine, clock = Scheduler()._engine, ManualClock(INSTANT)
    hold, work = Hold(INSTANT, clock, threading.Event()), _made(_claims(1))
    engine._calls.call([], hold)
    assert (clock.now(), hold.waited) == (INSTANT, 0.0)
    engine._calls.call(work, hold)
    assert clock.now() == INSTANT + timedelta(seconds=WAY)
    assert hold.waited == pytest.approx(WAY)
    # A further batch of the same instant has nothing to wait for.
    assert hold.ends_well()
    hold.give_way()
    assert hold.waited == pytest.approx(2 * WAY)
    engine.runners.close()
