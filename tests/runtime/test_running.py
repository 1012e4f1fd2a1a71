"""The scheduler with real threads: callbacks of all kinds, and what they leave behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import engine
from django_declarative_cron.runtime.work import Run

from .conftest import FIVE_MINUTES, NEVER_TODAY, TIMEOUT, Heard

RunNow = Callable[..., None]


def _registrations(**callbacks: Any) -> list[Any]:
    return [(name, NEVER_TODAY, each, FIVE_MINUTES) for name, each in callbacks.items()]


@pytest.mark.requirement("000 Polling Behavior/1")
def test_a_request_is_seen_by_a_look_a_second_and_run(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert timedelta(seconds=1) == engine.POLL_INTERVAL
    seen: list[Run] = []

    def callback(run: Run) -> None:
        seen.append(run)

    scheduler.initialize(_registrations(t=callback))
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
        _registrations(coroutine=callback, object=AsyncObject(), awaitable=gives_awaitable)
    )
    run_now("coroutine", "object", "awaitable")
    heard.wait_for("TaskRunCompleted", 3)
    names = set(User.objects.values_list("username", flat=True))
    assert names == {"coroutine", "object", "awaitable"}


@pytest.mark.requirement("001 Parallel Execution/1")
def test_pa01_tasks_run_side_by_side(scheduler: Scheduler, heard: Heard, run_now: RunNow) -> None:
    together = threading.Barrier(4, timeout=TIMEOUT)
    names = [f"t{n}" for n in range(4)]
    scheduler.initialize(_registrations(**dict.fromkeys(names, together.wait)))
    run_now(*names)
    heard.wait_for("TaskRunCompleted", 4)
    assert heard.of("TaskRunFailed") == []


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
        _registrations(**{name: lambda name=name: called.append(name) for name in names})
    )
    run_now(*names)
    heard.wait_for("TaskRunCompleted", len(names))
    assert sorted(called) == names
    assert sorted(TaskRun.objects.values_list("task_name", flat=True)) == names


@pytest.mark.requirement("003 Error Handling/1")
def test_a_failed_run_keeps_its_error_and_a_traceback_of_the_callback_only(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    def callback() -> None:
        raise ValueError("it went wrong")

    scheduler.initialize(_registrations(t=callback))
    run_now("t")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error == "ValueError: it went wrong"
    run = TaskRun.objects.get()
    assert "in callback" in run.traceback
    assert "in perform" not in run.traceback
    assert "in invoke" not in run.traceback


@pytest.mark.requirement("001 Resource Management/3")
def test_a_transaction_left_open_is_a_failure_and_reaches_no_other_task(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, settings: Any
) -> None:
    def leaves_it_open() -> None:
        transaction.atomic().__enter__()
        User.objects.create(username="lost")

    def well_behaved() -> None:
        assert not connection.in_atomic_block
        User.objects.create(username="kept")

    scheduler = Scheduler(options=_one_worker)
    scheduler.initialize(_registrations(a=leaves_it_open, b=well_behaved))
    run_now("a")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error.startswith("TransactionLeftOpenError")
    run_now("b")
    heard.wait_for("TaskRunCompleted")
    scheduler.stop()
    assert list(User.objects.values_list("username", flat=True)) == ["kept"]


def _one_worker() -> Any:
    from dataclasses import replace

    from django_declarative_cron import conf

    return replace(conf.options(), WORKERS=1)


def test_a_failed_commit_is_a_failure(scheduler: Scheduler, heard: Heard, run_now: RunNow) -> None:
    def callback() -> None:
        with transaction.atomic():
            User.objects.create(username="twice")
            User.objects.create(username="twice")

    scheduler.initialize(_registrations(t=callback))
    run_now("t")
    (failure,) = heard.wait_for("TaskRunFailed")
    assert failure.error.startswith("IntegrityError")


def test_p94_a_transaction_in_a_coroutine_is_a_failure_that_says_what_to_do(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    async def callback() -> None:
        with transaction.atomic():
            raise AssertionError("no transaction begins in a coroutine")

    scheduler.initialize(_registrations(t=callback))
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


@pytest.mark.requirement("001 Resource Management/1", "003 Testable Invariants/15", "004 S3")
def test_sp03_stop_waits_for_the_run_and_its_result_is_stored(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def callback(run: Run) -> None:
        began.set()
        assert run.stopping.wait(TIMEOUT)
        assert go_on.wait(TIMEOUT)

    scheduler.initialize(_registrations(t=callback))
    run_now("t")
    assert began.wait(TIMEOUT)

    def stop() -> None:
        try:
            scheduler.stop()
        finally:
            connections.close_all()

    stopping = threading.Thread(target=stop)
    stopping.start()
    heard.wait_for("SchedulerStopRequested")
    assert heard.of("SchedulerStopped") == []
    assert stopping.is_alive()
    go_on.set()
    stopping.join(TIMEOUT)
    assert not stopping.is_alive()
    told = heard.kinds()
    assert told.index("TaskRunCompleted") < told.index("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"
    assert scheduler.state == "Stopped"


@pytest.mark.requirement("001 Resource Management/2", "001 Idempotency Guarantees/2")
def test_re08_a_scheduler_can_be_started_and_stopped_many_times(
    scheduler: Scheduler, heard: Heard
) -> None:
    counts = []
    for _ in range(5):
        scheduler.initialize(_registrations(t=lambda: None))
        scheduler.stop()
        counts.append(threading.active_count())
    assert len(heard.of("SchedulerStopped")) == 5
    # The first may begin what a process has once, such as the thread that watches statements.
    assert set(counts) == {counts[0]}


@pytest.mark.requirement("000 Polling Behavior/4")
def test_the_loop_outlives_a_receiver_that_raises(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    from django_declarative_cron.signals import SIGNALS

    def broken(**_: object) -> None:
        raise RuntimeError("a receiver of the project is broken")

    SIGNALS["task_run_started"].connect(broken)
    try:
        scheduler.initialize(_registrations(t=lambda: None))
        run_now("t")
        heard.wait_for("TaskRunCompleted")
    finally:
        SIGNALS["task_run_started"].disconnect(broken)


@pytest.mark.requirement("001 Scheduler Interface/1")
def test_the_async_forms_do_the_same(transactional_db: None) -> None:
    asyncio.run(_start_and_stop())


async def _start_and_stop() -> None:
    scheduler = Scheduler()
    await scheduler.ainitialize(_registrations(t=lambda: None))
    assert scheduler.state == "Running"
    await scheduler.astop()
    assert scheduler.state == "Stopped"
