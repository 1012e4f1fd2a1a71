"""The scheduler with real threads: callbacks of all kinds, beside each other, and what fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import engine
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.signals import SIGNALS

from .conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Busy, Live, nothing


@pytest.mark.requirement("000 Polling Behavior/1")
def test_a_request_is_seen_by_a_look_a_second_and_run(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert timedelta(seconds=1) == engine.POLL_INTERVAL
    seen: list[Run] = []

    def callback(run: Run) -> None:
        seen.append(run)

    live.run(t=callback)
    (started,) = live.until("TaskRunStarted")
    (asked,) = live.heard.of("TaskRunRequested")
    live.until("TaskRunCompleted")
    assert 0 <= (started.at - asked.at).total_seconds() < TIMEOUT
    assert [run.started_at for run in seen] == [started.actual_time]
    assert not seen[0].stopping.is_set()


@pytest.mark.requirement("001 Registration Format/4")
def test_async_callbacks_run_to_their_end(live: Live) -> None:
    async def coroutine(run: Run) -> None:
        await User.objects.acreate(username=run.task_name)

    class AsyncObject:
        async def __call__(self, run: Run) -> None:
            await coroutine(run)

    def gives_awaitable(run: Run) -> Any:
        return coroutine(run)

    live.run(coroutine=coroutine, object=AsyncObject(), awaitable=gives_awaitable)
    live.until("TaskRunCompleted", 3)
    names = User.objects.order_by("username").values_list("username", flat=True)
    assert list(names) == ["awaitable", "coroutine", "object"]


@pytest.mark.requirement(
    "000 Polling Behavior/2",
    "003 Testable Invariants/4",
    "000 Real-time bounds/1",
    "001 Real-time bounds/1",
    "004 Liveness Axioms/1",
)
@pytest.mark.slow
def test_pa09_every_one_of_many_tasks_runs_exactly_once(live: Live) -> None:
    """P78: on SQLite, too, where everybody waits for one lock."""
    names = [f"t{n:04}" for n in range(1000)]
    called: list[str] = []
    live.run(**{name: lambda name=name: called.append(name) for name in names})
    live.until("TaskRunCompleted", len(names))
    assert sorted(called) == names
    assert sorted(TaskRun.objects.values_list("task_name", flat=True)) == names


@pytest.mark.parametrize(
    ("command", "ends"),
    [(["check"], "TaskRunCompleted"), (["migrate", "--database", "none"], "TaskRunFailed")],
)
def test_management_commands_run_as_tasks(live: Live, command: list[str], ends: str) -> None:
    live.scheduler.initialize(
        [{"name": "t", "cron": NEVER_TODAY, "command": command, "retry_delay": FIVE_MINUTES}]
    )
    live.ask("t")
    assert live.until(ends)[0].task_name == "t"


@pytest.mark.requirement("001 Resource Management/2", "001 Idempotency Guarantees/2")
def test_re08_a_scheduler_can_be_started_and_stopped_many_times(live: Live) -> None:
    counts = []
    for _ in range(5):
        live.start(t=nothing)
        live.scheduler.stop()
        counts.append(threading.active_count())
    assert len(live.heard.of("SchedulerStopped")) == 5
    # The first may begin what a process has once, such as the thread that watches statements.
    assert set(counts) == {counts[0]}


# --- what fails in a callback, and around it ---


def _commits_the_same_twice() -> None:
    with transaction.atomic():
        User.objects.create(username="twice")
        User.objects.create(username="twice")


async def _begins_a_transaction_in_a_coroutine() -> None:
    with transaction.atomic():
        raise AssertionError("no transaction begins in a coroutine")


@pytest.mark.parametrize(
    ("callback", "errors"),
    [
        (_commits_the_same_twice, ["IntegrityError"]),
        (
            _begins_a_transaction_in_a_coroutine,
            ["SynchronousOnlyOperation: You cannot call this from an async", "sync_to_async"],
        ),
    ],
    ids=["a commit", "p94 a transaction in a coroutine"],
)
def test_a_refused_transaction_is_a_failure_that_says_why(
    live: Live, callback: Any, errors: list[str]
) -> None:
    live.run(t=callback)
    (failure,) = live.until("TaskRunFailed")
    assert failure.error.startswith(errors[0])
    assert errors[-1] in failure.error


@pytest.mark.requirement("001 Resource Management/3")
def test_a_transaction_left_open_is_a_failure_and_reaches_no_other_task(live: Live) -> None:
    def leaves_it_open() -> None:
        transaction.atomic().__enter__()
        User.objects.create(username="lost")

    def well_behaved() -> None:
        assert not connection.in_atomic_block
        User.objects.create(username="kept")

    live.configure(WORKERS=1)
    live.start(a=leaves_it_open, b=well_behaved)
    live.ask("a")
    (failure,) = live.until("TaskRunFailed")
    assert failure.error.startswith("TransactionLeftOpenError")
    live.ask("b")
    live.until("TaskRunCompleted")
    live.scheduler.stop()
    assert list(User.objects.values_list("username", flat=True)) == ["kept"]


def test_a_run_whose_row_somebody_deleted_leaves_its_task_free(live: Live) -> None:
    live.run(t=lambda: TaskRun.objects.all().delete() and None)
    live.until("TaskRunCompleted")
    live.ask("t")
    live.until("TaskRunCompleted", 2)


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


def test_a_log_handler_that_raises_keeps_nothing_from_running(broken_log: None, live: Live) -> None:
    live.run(t=nothing)
    live.until("TaskRunCompleted")


@pytest.mark.requirement("000 Polling Behavior/4")
def test_the_loop_outlives_a_receiver_that_raises(live: Live) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("a receiver of the project is broken")

    SIGNALS["task_run_started"].connect(broken)
    try:
        live.run(t=nothing)
        live.until("TaskRunCompleted")
    finally:
        SIGNALS["task_run_started"].disconnect(broken)


# --- runs beside each other (PA) ---


@pytest.mark.requirement(
    "000 Polling Behavior/3",
    "001 Timely Behavior/1",
    "001 Parallel Execution/1",
    "003 Resource Limits/1",
    "003 Testable Invariants/13",
)
def test_pa01_as_many_at_once_as_there_are_workers(live: Live) -> None:
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

    live.configure(WORKERS=4)
    live.run(**{f"t{n}": callback for n in range(8)})
    live.until("TaskRunCompleted", 8)
    assert most == 4


@pytest.mark.requirement(
    "000 Polling Behavior/3", "001 Timely Behavior/1", "001 Parallel Execution/2"
)
def test_pa02_a_slow_task_keeps_no_fast_one_waiting(live: Live) -> None:
    slow = Busy()
    live.run(fast=nothing, slow=slow)
    (first,) = live.until("TaskRunCompleted")
    assert first.task_name == "fast"
    assert TaskRun.objects.get(task_name="slow").outcome == "running"
    slow.may_end.set()
    live.until("TaskRunCompleted", 2)


@pytest.mark.requirement("001 Parallel Execution/3", "003 Testable Invariants/14")
def test_pa05_however_often_a_task_is_asked_for_it_never_runs_beside_itself(live: Live) -> None:
    lock = threading.Lock()
    began, may_end = threading.Semaphore(0), threading.Semaphore(0)
    overlapped: list[int] = []

    def callback() -> None:
        if not lock.acquire(blocking=False):
            overlapped.append(1)
            return
        began.release()
        assert may_end.acquire(timeout=TIMEOUT)
        lock.release()

    live.run(t=callback)
    assert began.acquire(timeout=TIMEOUT)
    for _ in range(20):
        live.ask("t")
    assert TaskRun.objects.count() == 1
    may_end.release(2)
    live.until("TaskRunCompleted", 2)
    live.scheduler.stop()
    assert (overlapped, TaskRun.objects.count()) == ([], 2), "the requests meanwhile are one"
