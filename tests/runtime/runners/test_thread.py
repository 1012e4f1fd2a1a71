"""The pool of threads: late starts are told of, stuck threads are replaced, nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.runners import thread
from django_declarative_cron.store import manual_runs
from django_declarative_cron.store.operator_actions import Act

from ..conftest import FIVE_MINUTES, NEVER_TODAY
from .conftest import Bench, eventually

RunNow = Callable[..., None]


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
        go_on.wait(60)

    bench._changes["deaf"] = {"timeout": FIVE_MINUTES / 3000}
    ok = bench.task("t", "ok")
    try:
        bench.scheduler.initialize([("deaf", NEVER_TODAY, deaf, FIVE_MINUTES), ok])
        bench.ask("deaf")
        eventually(lambda: bench.load().stuck == 1)
        assert "cannot be ended" in caplog.text
        bench.ask("t")
        assert bench.ended("t").outcome == "succeeded"
        bench.ask("deaf")
        assert TaskRun.objects.filter(task_name="deaf").count() == 1
    finally:
        go_on.set()
    eventually(lambda: TaskRun.objects.filter(task_name="deaf", outcome="timed_out").exists())
    run = TaskRun.objects.filter(task_name="deaf").earliest("id")
    assert (run.outcome, run.error) == ("timed_out", "timed out after 0.1 s")
    eventually(lambda: bench.load().stuck == 0)


def test_a_run_that_is_cancelled_in_the_queue_is_never_called(bench: Bench) -> None:
    bench.start(bench.task("t", "until_stopping"), bench.task("u", "until_stopping"))
    bench.noted("began")
    eventually(lambda: bench.load().queued == 1)
    running = TaskRun.objects.filter(finished_at=None)
    now = running[0].started_at
    assert now is not None
    (waiting,) = [r for r in running if r.task_name == ("u" if _runs(bench, "t") else "t")]
    manual_runs.cancel(waiting, Act("", now))
    run = bench.ended(waiting.task_name)
    assert run.outcome == "cancelled"
    assert len(bench.noted("began")) == 1


def test_a_run_ends_whatever_keeps_it_from_being_called(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(self: object, member: object, lapses: int, run: int) -> bool:
        raise RuntimeError("the question is broken")

    monkeypatch.setattr("django_declarative_cron.runtime.executor.Executor._admit", breaks)
    run = bench.run("ok")
    assert (run.outcome, run.error) == ("failed", "RuntimeError: the question is broken")
    monkeypatch.undo()


def test_a_child_that_comes_back_from_the_callback_ends(bench: Bench) -> None:
    run = bench.run("comes_back_twice")
    assert (run.outcome, run.result) == ("succeeded", 1)


def _runs(bench: Bench, name: str) -> bool:
    (place,) = bench.scheduler._engine.runners._by_name["thread"]._busy  # type: ignore[attr-defined]
    return bool(place.work.run.task_name == name)
