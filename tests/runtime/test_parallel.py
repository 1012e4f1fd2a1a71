"""Runs beside each other (PA), with real threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.models import ScheduledTask, TaskRun

from .conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard

RunNow = Callable[..., None]


def _registrations(delay: timedelta = FIVE_MINUTES, **callbacks: Any) -> list[Any]:
    return [(name, NEVER_TODAY, each, delay) for name, each in callbacks.items()]


@pytest.mark.requirement(
    "000 Polling Behavior/3",
    "001 Timely Behavior/1",
    "001 Parallel Execution/1",
    "003 Resource Limits/1",
    "003 Testable Invariants/13",
)
def test_pa01_as_many_at_once_as_there_are_workers(
    transactional_db: None, heard: Heard, run_now: RunNow
) -> None:
    scheduler = Scheduler(options=lambda: replace(conf.options(), WORKERS=4))
    lock = threading.Lock()
    together = threading.Barrier(4, timeout=TIMEOUT)
    at_once, most = 0, 0

    def callback() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        together.wait()
        with lock:
            at_once -= 1

    names = [f"t{n}" for n in range(8)]
    scheduler.initialize(_registrations(**dict.fromkeys(names, callback)))
    run_now(*names)
    heard.wait_for("TaskRunCompleted", 8)
    scheduler.stop()
    assert most == 4


@pytest.mark.requirement(
    "000 Polling Behavior/3", "001 Timely Behavior/1", "001 Parallel Execution/2"
)
def test_pa02_a_slow_task_keeps_no_fast_one_waiting(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    may_end = threading.Event()

    def slow() -> None:
        assert may_end.wait(TIMEOUT)

    scheduler.initialize(_registrations(fast=lambda: None, slow=slow))
    run_now("fast", "slow")
    (first,) = heard.wait_for("TaskRunCompleted")
    assert first.task_name == "fast"
    assert TaskRun.objects.get(task_name="slow").outcome == "running"
    may_end.set()
    heard.wait_for("TaskRunCompleted", 2)


@pytest.mark.requirement("001 Resource Management/3")
def test_pa03_a_failing_task_leaves_a_good_one_alone(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    scheduler.initialize(_registrations(bad=lambda: 1 // 0, good=lambda: None))
    run_now("bad", "good")
    (failed,) = heard.wait_for("TaskRunFailed")
    heard.wait_for("TaskRunCompleted")
    bad, good = ScheduledTask.objects.order_by("name")
    assert bad.pending_retry_until == failed.at + FIVE_MINUTES
    assert (bad.last_success_at, good.pending_retry_until) == (None, None)
    assert good.last_success_at is not None


@pytest.mark.requirement("001 Parallel Execution/3", "003 Testable Invariants/14")
def test_pa05_however_often_a_task_is_asked_for_it_never_runs_beside_itself(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    lock = threading.Lock()
    began = threading.Semaphore(0)
    may_end = threading.Semaphore(0)
    overlapped: list[int] = []

    def callback() -> None:
        if not lock.acquire(blocking=False):
            overlapped.append(1)
            return
        began.release()
        assert may_end.acquire(timeout=TIMEOUT)
        lock.release()

    scheduler.initialize(_registrations(t=callback))
    run_now("t")
    assert began.acquire(timeout=TIMEOUT)
    for _ in range(20):
        run_now("t")
    assert TaskRun.objects.count() == 1
    may_end.release(2)
    heard.wait_for("TaskRunCompleted", 2)
    scheduler.stop()
    assert (overlapped, TaskRun.objects.count()) == ([], 2), "the requests meanwhile are one"


@pytest.mark.parametrize("tasks", [3])
def test_pa07_failed_tasks_are_each_called_again(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, tasks: int
) -> None:
    calls: dict[str, int] = {}

    def callback(run: Any) -> None:
        calls[run.task_name] = calls.get(run.task_name, 0) + 1
        if run.attempt == 1:
            raise ValueError("the first time")

    names = [f"t{n}" for n in range(tasks)]
    short = timedelta(milliseconds=500)
    scheduler.initialize(_registrations(short, **dict.fromkeys(names, callback)))
    run_now(*names)
    heard.wait_for("TaskRunCompleted", tasks)
    assert calls == dict.fromkeys(names, 2)
    failed = {event.task_name: event for event in heard.of("TaskRunFailed")}
    again = [event for event in heard.of("TaskRunStarted") if event.reason == "retry"]
    assert all(event.at >= failed[event.task_name].at + short for event in again)
    assert all(event.is_retry for event in again)
