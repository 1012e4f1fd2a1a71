"""Coroutines: side by side on one loop, beside the threads and not in their place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from django_declarative_cron import Run
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.runners.asyncio import CoroutineRunner
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store.results import Result
from django_declarative_cron.testing import ManualClock

from ...timeouts import TIMEOUT
from . import callbacks
from .conftest import HERE, NEVER_TODAY, Bench, eventually


def test_they_wait_for_one_another_on_one_thread_although_there_is_one_worker(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench("thread", WORKERS=1)
    names = [f"t{number}" for number in range(callbacks.MEETING)]
    for name in names:
        bench._changes[name] = {"runner": "thread"}
    tasks = [(name, NEVER_TODAY, f"{HERE}.meets", callbacks.FIVE_MINUTES) for name in names]
    bench.scheduler.initialize([bench.task("held", "until_stopping"), *tasks])
    bench.ask("held", *names)
    bench.heard.wait_for("TaskRunCompleted", len(names))
    results = TaskRun.objects.filter(task_name__in=names).values_list("result", flat=True)
    assert list(results) == ["declarative-cron-asyncio"] * len(names)
    eventually(lambda: bench.load().busy == 1)


def test_a_run_that_another_one_cancels_before_it_began_has_ended() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    runner, ended = CoroutineRunner(ManualClock(noon)), threading.Event()
    results, called = list[Result](), list[int]()

    def work(number: int, function: Callable[[], object]) -> Work:
        run = Run(f"t{number}", noon, noon, 1, "due", "UTC", threading.Event())
        return Work(number, run, Target("", function), done)

    def done(result: Result) -> None:
        results.append(result)
        if len(results) == 2:
            ended.set()

    def cancel_others(mine: asyncio.Task[None] | None) -> None:
        for task in asyncio.all_tasks() - {mine}:
            task.cancel()

    async def begins_one_and_cancels_all() -> None:
        runner.submit(work(2, never))
        asyncio.get_running_loop().call_soon(cancel_others, asyncio.current_task())

    async def never() -> None:
        called.append(2)

    runner.submit(work(1, begins_one_and_cancels_all))
    assert ended.wait(TIMEOUT)
    eventually(lambda: runner.load.busy == 0)
    runner.close()
    outcomes = {each.run: (each.succeeded, each.error.partition(":")[0]) for each in results}
    assert outcomes[2] == (False, "CancelledError") and called == []


@pytest.mark.skipif(
    not hasattr(asyncio, "eager_task_factory"), reason="this Python begins no task at once"
)
def test_a_run_that_ends_as_it_begins_is_not_busy_for_ever() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    runner, results = CoroutineRunner(ManualClock(noon)), list[Result]()

    async def nothing() -> None:
        """Wait for nothing; nor is anything cleaned up."""

    async def eager() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        run = Run("t", noon, noon, 1, "due", "UTC", threading.Event())
        runner._begin(loop, Work(1, run, Target("", nothing), results.append))
        assert [each.succeeded for each in results] == [True]

    asyncio.run(eager())
    assert runner.load.busy == 0
