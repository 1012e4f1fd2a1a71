"""Cleaning up after coroutines goes together, and waits while a start is near."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from django_declarative_cron import Run
from django_declarative_cron.core.declaration import Target
from django_declarative_cron.runtime.connections import TransactionLeftOpenError
from django_declarative_cron.runtime.ending import Why
from django_declarative_cron.runtime.runners import coroutines, tidying
from django_declarative_cron.runtime.runners.coroutines import CoroutineRunner, _left, _perform
from django_declarative_cron.runtime.runners.tidying import Tidying
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store.results import Result
from django_declarative_cron.testing import ManualClock

from ...timeouts import TIMEOUT

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
TOGETHER = 10

CleanUps = list[BaseException | None]


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch) -> CleanUps:
    """Take down each cleaning; the first of them may be made to raise."""
    done: CleanUps = []

    def clean_up() -> None:
        done.append(None)
        if isinstance(done[0], BaseException):
            raise done[0]

    monkeypatch.setattr(tidying.connections, "clean_up", clean_up)
    return done


async def _all_at_once(quiet: Callable[[], bool]) -> list[BaseException | None]:
    tidy = Tidying(quiet)
    return await asyncio.gather(*(tidy.clean_up() for _ in range(TOGETHER)), return_exceptions=True)


def test_those_that_end_before_it_begins_are_cleaned_up_after_together(
    cleaned: CleanUps,
) -> None:
    looks = iter([True, True, False])
    assert asyncio.run(_all_at_once(lambda: next(looks))) == [None] * TOGETHER
    assert len(cleaned) == 1


def test_who_ends_while_it_goes_on_is_cleaned_up_after_anew(cleaned: CleanUps) -> None:
    async def two() -> None:
        tidy = Tidying()
        await tidy.clean_up()
        await tidy.clean_up()

    asyncio.run(two())
    assert len(cleaned) == 2


def test_one_that_dies_before_it_begins_keeps_nobody_waiting(cleaned: CleanUps) -> None:
    async def dies() -> None:
        tidy = Tidying()
        waits = asyncio.ensure_future(tidy.clean_up())
        await asyncio.sleep(0)
        [going] = tidy._under_way
        going.cancel()
        await asyncio.wait([waits], timeout=TIMEOUT)
        assert waits.cancelled() and not cleaned
        await tidy.clean_up()

    asyncio.run(dies())
    assert len(cleaned) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [(RuntimeError("lost"), 1), (TransactionLeftOpenError("left open"), TOGETHER)],
)
def test_whose_work_may_be_lost_is_told_so_and_of_all_else_one(
    cleaned: CleanUps, error: Exception, told: int
) -> None:
    cleaned.append(error)
    looks = iter([True, True, False])
    said = asyncio.run(_all_at_once(lambda: next(looks)))
    assert [type(each) for each in said] == [type(error)] * told + [type(None)] * (TOGETHER - told)
    assert all(str(error) in str(each) for each in said[:told])


def test_it_is_not_put_off_for_ever(cleaned: CleanUps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "LONGEST", 0.01)
    assert asyncio.run(_all_at_once(lambda: True)) == [None] * TOGETHER
    assert cleaned


def test_what_all_who_waited_for_were_cancelled_goes_on_and_is_no_error_of_nobody(
    cleaned: CleanUps,
) -> None:
    cleaned.append(RuntimeError("left open"))
    looks, told = [True], list[object]()

    async def cancelled() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        tidy = Tidying(lambda: looks[-1])
        waits = asyncio.ensure_future(tidy.clean_up())
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.wait([waits])
        assert waits.cancelled() and len(cleaned) == 1
        looks.append(False)
        await tidy.end()
        assert len(cleaned) == 2
        del waits, tidy
        gc.collect()

    asyncio.run(cancelled())
    gc.collect()
    assert told == []


def test_a_loop_ends_after_what_a_cancelled_run_has_left_is_cleaned_up(cleaned: CleanUps) -> None:
    is_near, ended = threading.Event(), threading.Event()
    is_near.set()
    runner = CoroutineRunner(ManualClock(NOON), is_near.is_set)
    run = Run("t", NOON, NOON, 1, "due", "UTC", threading.Event())
    work = Work(1, run, Target("", _nothing), lambda result: ended.set())
    before = set(threading.enumerate())
    runner.submit(work)
    [thread] = [t for t in set(threading.enumerate()) - before if t.name.endswith("-asyncio")]
    work.ending.ask("cancelled")
    assert ended.wait(TIMEOUT)
    is_near.clear()
    runner.close()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert cleaned


async def _nothing() -> None:
    pass


def test_a_run_has_ended_when_its_own_work_has(cleaned: CleanUps) -> None:
    clock, results = ManualClock(NOON), list[Result]()

    def quiet() -> bool:
        clock.advance(clock.now() + timedelta(seconds=1))
        return False

    run = Run("t", NOON, NOON, 1, "due", "UTC", threading.Event())
    work = Work(1, run, Target("", _nothing), results.append)
    asyncio.run(_perform(work, clock, Tidying(quiet)))
    assert [(each.succeeded, each.finished_at, each.duration) for each in results] == [
        (True, NOON, 0.0)
    ]


@pytest.mark.parametrize("why", ["cancelled", "timed_out"])
def test_who_is_asked_to_end_while_that_is_put_off_has_succeeded(
    cleaned: CleanUps, why: Why
) -> None:
    results, asked = list[Result](), list[bool]()

    def quiet() -> bool:
        asked.append(work.ending.ask(why))
        return len(asked) < 3

    run = Run("t", NOON, NOON, 1, "due", "UTC", threading.Event())
    work = Work(1, run, Target("", _nothing), results.append)
    asyncio.run(_perform(work, ManualClock(NOON), Tidying(quiet)))
    assert asked == [False] * 3
    assert [(each.succeeded, each.outcome) for each in results] == [(True, "")]
    assert cleaned


def test_a_run_that_has_ended_waits_no_longer_than_its_time_for_others(
    cleaned: CleanUps, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = list[Result]()
    monkeypatch.setattr(coroutines, "_left", lambda work, lasted: 0.01)
    monkeypatch.setattr(tidying, "LONGEST", TIMEOUT)
    run = Run("t", NOON, NOON, 1, "due", "UTC", threading.Event())
    work = Work(1, run, Target("", _nothing), results.append)
    asyncio.run(_perform(work, ManualClock(NOON), Tidying(lambda: True)))
    assert [each.succeeded for each in results] == [True]
    assert not cleaned


@pytest.mark.parametrize(
    ("timeout", "lasted", "left"), [(None, 5.0, None), (10.0, 4.0, 6.0), (10.0, 9.9, 1.0)]
)
def test_its_time_is_what_its_own_work_has_left_of_it(
    timeout: float | None, lasted: float, left: float | None
) -> None:
    assert _left(cast(Work, SimpleNamespace(timeout=timeout)), lasted) == left
