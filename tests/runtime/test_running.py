"""The scheduler with real threads: callbacks of all kinds, also beside each other."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from django_declarative_cron import Scheduler, conf
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime import engine
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.signals import SIGNALS

from .conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard, RunNow, registrations


@pytest.mark.requirement("000 Polling Behavior/1")
def test_a_request_is_seen_by_a_look_a_second_and_run(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert timedelta(seconds=1) == engine.POLL_INTERVAL
    seen: list[Run] = []

    def callback(run: Run) -> None:
        seen.append(run)

    scheduler.initialize(registrations(t=callback))
    run_now("t")
    (started,) = heard.wait_for("TaskRunStarted")
    (asked,) = heard.of("TaskRunRequested")
    heard.wait_for("TaskRunCompleted")
    assert 0 <= (started.at - asked.at).total_seconds() < TIMEOUT
    (run,) = seen
    assert (run.task_name, run.reason, run.attempt, run.timezone) == ("t", "manual", 1, "UTC")
    assert run.started_at == started.actual_time
    assert not run.stopping.is_set()


@pytest.mark.requirement("001 Registration Format/4")
def test_async_callbacks_run_to_their_end(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    async def callback(run: Run) -> None:
        await User.objects.acreate(username=run.task_name)

    class AsyncObject:
        async def __call__(self) -> None:
            await User.objects.acreate(username="object")

    def gives_awaitable() -> Any:
        async def inner() -> None:
            await User.objects.acreate(username="awaitable")

        return inner()

    scheduler.initialize(
        registrations(coroutine=callback, object=AsyncObject(), awaitable=gives_awaitable)
    )
    run_now("coroutine", "object", "awaitable")
    heard.wait_for("TaskRunCompleted", 3)
    names = set(User.objects.values_list("username", flat=True))
    assert names == {"coroutine", "object", "awaitable"}


@pytest.mark.requirement(
    "000 Polling Behavior/2",
    "003 Testable Invariants/4",
    "000 Real-time bounds/1",
    "001 Real-time bounds/1",
    "004 Liveness Axioms/1",
)
@pytest.mark.slow
def test_pa09_every_one_of_many_tasks_runs_exactly_once(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    """P78: on SQLite, too, where everybody waits for one lock."""
    names = [f"t{n:04}" for n in range(1000)]
    called: list[str] = []
    scheduler.initialize(
        registrations(**{name: lambda name=name: called.append(name) for name in names})
    )
    run_now(*names)
    heard.wait_for("TaskRunCompleted", len(names))
    assert sorted(called) == names
    assert sorted(TaskRun.objects.values_list("task_name", flat=True)) == names


@pytest.mark.requirement("001 Resource Management/3")
def test_a_transaction_left_open_is_a_failure_and_reaches_no_other_task(
    transactional_db: None, heard: Heard, run_now: RunNow
) -> None:
    def leaves_it_open() -> None:
        transaction.atomic().__enter__()
        User.objects.create(username="lost")

    def well_behaved() -> None:
        assert not connection.in_atomic_block
        User.objects.create(username="kept")

    scheduler = Scheduler(options=lambda: replace(conf.options(), WORKERS=1))
    scheduler.initialize(registrations(a=leaves_it_open, b=well_behaved))
    run_now("a")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error.startswith("TransactionLeftOpenError")
    run_now("b")
    heard.wait_for("TaskRunCompleted")
    scheduler.stop()
    assert list(User.objects.values_list("username", flat=True)) == ["kept"]


def test_a_failed_commit_is_a_failure(scheduler: Scheduler, heard: Heard, run_now: RunNow) -> None:
    def callback() -> None:
        with transaction.atomic():
            User.objects.create(username="twice")
            User.objects.create(username="twice")

    scheduler.initialize(registrations(t=callback))
    run_now("t")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error.startswith("IntegrityError")


def test_p94_a_transaction_in_a_coroutine_is_a_failure_that_says_what_to_do(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    async def callback() -> None:
        with transaction.atomic():
            raise AssertionError("no transaction begins in a coroutine")

    scheduler.initialize(registrations(t=callback))
    run_now("t")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error.startswith("SynchronousOnlyOperation: You cannot call this from an async")
    assert "sync_to_async" in failure.error


@pytest.mark.parametrize(
    ("command", "ends"),
    [(["check"], "TaskRunCompleted"), (["migrate", "--database", "none"], "TaskRunFailed")],
)
def test_management_commands_run_as_tasks(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, command: list[str], ends: str
) -> None:
    scheduler.initialize(
        [{"name": "t", "cron": NEVER_TODAY, "command": command, "retry_delay": FIVE_MINUTES}]
    )
    run_now("t")
    assert heard.wait_for(ends)[0].task_name == "t"


@pytest.mark.requirement("001 Resource Management/2", "001 Idempotency Guarantees/2")
def test_re08_a_scheduler_can_be_started_and_stopped_many_times(
    scheduler: Scheduler, heard: Heard
) -> None:
    counts = []
    for _ in range(5):
        scheduler.initialize(registrations(t=lambda: None))
        scheduler.stop()
        counts.append(threading.active_count())
    assert len(heard.of("SchedulerStopped")) == 5
    # The first may begin what a process has once, such as the thread that watches statements.
    assert set(counts) == {counts[0]}


@pytest.mark.requirement("000 Polling Behavior/4")
def test_the_loop_outlives_a_receiver_that_raises(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("a receiver of the project is broken")

    SIGNALS["task_run_started"].connect(broken)
    try:
        scheduler.initialize(registrations(t=lambda: None))
        run_now("t")
        heard.wait_for("TaskRunCompleted")
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
    scheduler.initialize(registrations(**dict.fromkeys(names, callback)))
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

    scheduler.initialize(registrations(fast=lambda: None, slow=slow))
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
    scheduler.initialize(registrations(bad=lambda: 1 // 0, good=lambda: None))
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

    scheduler.initialize(registrations(t=callback))
    run_now("t")
    assert began.acquire(timeout=TIMEOUT)
    for _ in range(20):
        run_now("t")
    assert TaskRun.objects.count() == 1
    may_end.release(2)
    heard.wait_for("TaskRunCompleted", 2)
    scheduler.stop()
    assert (overlapped, TaskRun.objects.count()) == ([], 2), "the requests meanwhile are one"
