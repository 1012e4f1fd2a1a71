"""Executors, handlers and rows that fail: a claimed run always comes to an end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun

from .conftest import Heard, RunNow, registrations

START = datetime(2024, 1, 1, 10, tzinfo=UTC)


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


class _Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError("the disk of the log is full")


@pytest.fixture
def broken_log() -> Iterator[None]:
    logger = logging.getLogger("django_declarative_cron")
    handler, level = _Broken(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_a_log_handler_that_raises_keeps_nothing_from_running(
    broken_log: None, scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    scheduler.initialize(registrations(t=lambda: None))
    run_now("t")
    heard.wait_for("TaskRunCompleted")


def test_a_run_whose_row_somebody_deleted_leaves_its_task_free(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    def deletes_history() -> None:
        TaskRun.objects.all().delete()

    scheduler.initialize(registrations(t=deletes_history))
    run_now("t")
    heard.wait_for("TaskRunCompleted")
    run_now("t")
    heard.wait_for("TaskRunCompleted", 2)
