"""The pool of threads, and the event loop beside it: late starts are told of, stuck threads are
replaced, and whatever a callback does to them, every run ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron import Run, Scheduler
from django_declarative_cron.core.declarations.declaration import Target
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.executor import Executor
from django_declarative_cron.runtime.runners import thread
from django_declarative_cron.runtime.runners.asyncio import CoroutineRunner
from django_declarative_cron.runtime.work import Work
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result
from django_declarative_cron.testing import ManualClock

from ..conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard, RunNow, registrations
from . import callbacks
from .conftest import Bench, eventually

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench("thread", WORKERS=1)


def test_a_late_start_is_told_of_once_with_numbers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P56."""
    monkeypatch.setattr(thread, "LATE", 0.2)
    names = ["t", "u", "v"]
    bench.start(*[bench.task(name, "until_stopping") for name in names])
    eventually(lambda: "waited" in caplog.text)
    load = bench.load()
    assert (load.size, load.busy, load.queued, load.stuck) == (1, 1, 2, 0)
    assert load.oldest_wait >= 0.2
    bench.scheduler.stop()
    assert [run.outcome for run in TaskRun.objects.all()] == ["succeeded"] * 3
    (told,) = [line for line in caplog.messages if "has waited" in line]
    assert "for a free thread: 1 of 1 are busy, 2 more wait" in told


def test_a_thread_that_does_not_end_is_replaced_and_its_task_not_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """P57, where nothing can end it."""
    monkeypatch.setattr(thread, "STUCK_AFTER", 0.2)
    go_on = threading.Event()

    def deaf() -> None:
        go_on.wait(TIMEOUT)

    bench.changes["deaf"] = {"timeout": timedelta(seconds=0.1)}
    try:
        bench.scheduler.initialize(
            [("deaf", NEVER_TODAY, deaf, FIVE_MINUTES), bench.task("t", "ok")]
        )
        bench.ask("deaf")
        eventually(lambda: bench.load().stuck == 1)
        assert "cannot be ended" in caplog.text
        bench.ask("t")
        assert bench.ended("t").outcome == "succeeded"
        bench.ask("deaf")
        assert TaskRun.objects.filter(task_name="deaf").count() == 1
    finally:
        go_on.set()
    run = bench.ended("deaf")
    assert (run.outcome, run.error) == ("timed_out", "timed out after 0.1 s")
    eventually(lambda: bench.load().stuck == 0)


def test_a_run_that_is_cancelled_in_the_queue_is_never_called(bench: Bench) -> None:
    bench.start(bench.task("t", "until_stopping"), bench.task("u", "until_stopping"))
    bench.noted("began")
    eventually(lambda: bench.load().queued == 1)
    (place,) = bench.scheduler._engine.runners._by_name["thread"]._busy  # type: ignore[attr-defined]
    waiting = TaskRun.objects.exclude(task_name=place.work.run.task_name).get(finished_at=None)
    manual_runs.cancel(waiting, Act("", datetime.now(UTC)))
    assert bench.ended(waiting.task_name).outcome == "cancelled"
    assert len(bench.noted("began")) == 1


def test_a_run_ends_whatever_keeps_it_from_being_called(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> bool:
        raise RuntimeError("the question is broken")

    monkeypatch.setattr(Executor, "_admit", breaks)
    run = bench.run("ok")
    assert (run.outcome, run.error) == ("failed", "RuntimeError: the question is broken")
    monkeypatch.undo()


@pytest.mark.requirement("003 Error Handling/3")
def test_a_claim_that_no_thread_can_take_is_a_failure_and_the_others_run(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []
    real, refused = threading.Thread.start, []

    def start(self: threading.Thread) -> None:
        if self.name.startswith("declarative-cron-thread") and not refused:
            refused.append(self)
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    names = ("a", "b", "c")
    scheduler.initialize(registrations(**{n: lambda n=n: called.append(n) for n in names}))
    run_now(*names)
    (failure,) = heard.wait_for("TaskRunFailed")
    heard.wait_for("TaskRunCompleted", 2)
    assert failure.error == "RuntimeError: can't start new thread"
    assert sorted([*called, failure.task_name]) == list(names)
    assert not TaskRun.objects.filter(outcome="running").exists()


# --- coroutines ---


def test_coroutines_wait_for_one_another_on_one_thread_although_there_is_one_worker(
    bench: Bench,
) -> None:
    names = [f"t{number}" for number in range(callbacks.MEETING)]
    bench.start(
        bench.task("held", "until_stopping"), *(bench.task(name, "meets") for name in names)
    )
    bench.heard.wait_for("TaskRunCompleted", len(names))
    results = TaskRun.objects.filter(task_name__in=names).values_list("result", flat=True)
    assert list(results) == ["declarative-cron-asyncio"] * len(names)
    eventually(lambda: bench.load().busy == 1)


def test_a_callback_that_stops_the_event_loop_ends_nobody_else(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    done: list[str] = []

    async def stops_it() -> None:
        done.append("stopped")
        asyncio.get_running_loop().stop()

    async def breaks_it() -> None:
        async def child() -> None:
            done.append("broken")
            raise SystemExit(3)

        asyncio.get_running_loop().create_task(child())
        await asyncio.sleep(0)

    async def innocent() -> None:
        while len(done) < 2:
            await asyncio.sleep(0)

    scheduler.initialize(registrations(a=stops_it, b=breaks_it, c=innocent))
    run_now("a", "b", "c")
    heard.wait_for("TaskRunCompleted", 3)
    run_now("c")
    heard.wait_for("TaskRunCompleted", 4)


def _work(number: int, function: Callable[[], object], done: Callable[[Result], None]) -> Work:
    run = Run(f"t{number}", NOON, NOON, 1, "due", "UTC", threading.Event())
    return Work(number, run, Target("", function), done)


def test_a_run_that_another_one_cancels_before_it_began_has_ended() -> None:
    runner, ended = CoroutineRunner(ManualClock(NOON)), threading.Event()
    results, called = list[Result](), list[int]()

    def done(result: Result) -> None:
        results.append(result)
        if len(results) == 2:
            ended.set()

    def cancel_others(mine: asyncio.Task[Any] | None) -> None:
        for task in asyncio.all_tasks() - {mine}:
            task.cancel()

    async def begins_one_and_cancels_all() -> None:
        runner.submit(_work(2, never, done))
        asyncio.get_running_loop().call_soon(cancel_others, asyncio.current_task())

    async def never() -> None:
        called.append(2)

    runner.submit(_work(1, begins_one_and_cancels_all, done))
    assert ended.wait(TIMEOUT)
    eventually(lambda: runner.load.busy == 0)
    runner.close()
    outcomes = {each.run: (each.succeeded, each.error.partition(":")[0]) for each in results}
    assert outcomes[2] == (False, "CancelledError") and called == []


@pytest.mark.skipif(
    not hasattr(asyncio, "eager_task_factory"), reason="this Python begins no task at once"
)
def test_a_run_that_ends_as_it_begins_is_not_busy_for_ever() -> None:
    runner, results = CoroutineRunner(ManualClock(NOON)), list[Result]()

    async def nothing() -> None:
        """Wait for nothing; nor is anything cleaned up."""

    async def eager() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        runner._begin(loop, _work(1, nothing, results.append))
        assert [each.succeeded for each in results] == [True]

    asyncio.run(eager())
    assert runner.load.busy == 0
