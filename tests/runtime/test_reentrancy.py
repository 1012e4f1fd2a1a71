"""initialize and stop from several threads, from inside, and during each other (RE, SP)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connections

from django_declarative_cron import Scheduler, conf, signals
from django_declarative_cron.core.declarations.declaration import digest_of_set
from django_declarative_cron.exceptions import (
    DeclarativeCronError,
    ScheduleTaskError,
    StopSchedulerError,
)
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.runtime import housekeeping, shutdown
from django_declarative_cron.runtime import scheduler as scheduler_module
from django_declarative_cron.store import liveness, results

from .conftest import FIVE_MINUTES, TIMEOUT, Heard, RunNow, registrations

EVERY_MINUTE = "* * * * *"


def _nothing() -> None:
    """Return at once."""


class Call:
    """A call in a thread of its own, which leaves no connection behind."""

    def __init__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.error: BaseException | None = None
        self.value: Any = None
        self._thread = threading.Thread(target=self._run, args=(function, args, kwargs))
        self._thread.start()

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        try:
            self.value = function(*args, **kwargs)
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def result(self) -> Any:
        """Wait for its end; a deadlock is a failure."""
        self._thread.join(TIMEOUT)
        assert self.is_over, "the call never came back"
        if self.error is not None:
            raise self.error
        return self.value


class Held:
    """A function whose calls wait to be let through."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real
        self.entered, self.let = threading.Event(), threading.Event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.entered.set()
        assert self.let.wait(TIMEOUT)
        return self._real(*args, **kwargs)

    def wait(self) -> None:
        assert self.entered.wait(TIMEOUT)


@pytest.fixture
def reconciling(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Hold every initialisation right before its transaction."""
    held = Held(scheduler_module.reconcile.reconcile)
    monkeypatch.setattr(scheduler_module.reconcile, "reconcile", held)
    return held


@pytest.fixture
def on() -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Call a function at the first event of a kind, as a receiver of the project."""
    connected: list[tuple[Any, Any]] = []

    def connect(signal: str, function: Callable[[], object]) -> None:
        calls = [function]

        def receiver(**_: object) -> None:
            while calls:
                calls.pop()()

        signals.SIGNALS[signal].connect(receiver)
        connected.append((signals.SIGNALS[signal], receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


class Busy:
    """A callback that says when it began and ends when it may."""

    def __init__(self) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.began.set()
        assert self.may_end.wait(TIMEOUT)


@pytest.fixture
def busy(scheduler: Scheduler, run_now: RunNow) -> Busy:
    """Give a callback that is at work as the only task of the scheduler."""
    busy = Busy()
    scheduler.initialize(registrations(t=busy))
    run_now("t")
    assert busy.began.wait(TIMEOUT)
    return busy


# --- several threads ---


@pytest.mark.requirement("001 Reentrancy Protection/1", "003 Reentrancy Protection/1", "004 L2")
def test_initialisations_at_once_each_get_their_own_outcome_and_the_last_one_holds(
    scheduler: Scheduler,
) -> None:
    together = threading.Barrier(6, timeout=TIMEOUT)

    def initialize(registrations: list[Any]) -> None:
        together.wait()
        scheduler.initialize(registrations)

    sets = [registrations(**{f"t{n}": _nothing, f"u{n}": _nothing}) for n in range(4)]
    good = [Call(initialize, each) for each in sets]
    bad = [Call(initialize, each) for each in ("no list", [("x", "61 * * * *", _nothing, 5)])]
    for call in good:
        call.result()
    for call in bad:
        with pytest.raises(DeclarativeCronError):
            call.result()
    assert scheduler.state == "Running"
    held = {declaration.name for declaration in scheduler.declarations}
    assert held in [{f"t{n}", f"u{n}"} for n in range(4)]
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == held
    assert SchedulerState.objects.get().digest == digest_of_set(scheduler.declarations)


@pytest.mark.requirement("001 Scheduler Identifier/1")
def test_processes_that_come_at_once_make_one_deployment_with_one_identifier(
    transactional_db: None,
) -> None:
    together = threading.Barrier(4, timeout=TIMEOUT)

    def come(number: int) -> None:
        scheduler = Scheduler(background=False)
        together.wait()
        for _ in range(3):
            scheduler.initialize(registrations(shared=_nothing, **{f"t{number}": _nothing}))
        scheduler.stop()

    for call in [Call(come, number) for number in range(4)]:
        call.result()
    identifier = SchedulerState.objects.get().identifier
    tasks = ScheduledTask.objects.values_list("name", "scheduler_identifier")
    assert {found for _, found in tasks} == {identifier}
    assert len(tasks) == 2, "the last set holds"


@pytest.mark.requirement(
    "001 Resource Management/1", "003 Testable Invariants/15", "004 S3", "004 Liveness Axioms/3"
)
def test_sp02_sp03_stops_at_once_share_one_shutdown_that_waits_for_the_run(
    scheduler: Scheduler, busy: Busy, heard: Heard
) -> None:
    stops = [Call(scheduler.stop) for _ in range(4)]
    heard.wait_for("SchedulerStopRequested")
    assert scheduler.state == "Stopping"
    assert not any(stop.is_over for stop in stops)
    busy.may_end.set()
    assert [stop.result() for stop in stops] == [True] * 4
    assert [len(heard.of(f"Scheduler{what}")) for what in ("StopRequested", "Stopped")] == [1, 1]
    told = heard.kinds()
    assert told.index("TaskRunCompleted") < told.index("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"


@pytest.mark.requirement("004 Liveness Axioms/2")
def test_an_initialisation_during_a_stop_waits_for_its_end(
    scheduler: Scheduler, busy: Busy, heard: Heard, run_now: RunNow
) -> None:
    stop = Call(scheduler.stop)
    heard.wait_for("SchedulerStopRequested")
    again = Call(scheduler.initialize, registrations(u=_nothing))
    assert not again.is_over
    busy.may_end.set()
    assert stop.result() is True
    again.result()
    assert scheduler.state == "Running"
    run_now("u")
    heard.wait_for("TaskRunCompleted", 2)


# --- a stop during an initialisation ---


@pytest.mark.requirement(
    "001 Reentrancy Protection/2",
    "001 Reentrancy Protection/3",
    "003 Reentrancy Protection/2",
    "003 Reentrancy Protection/3",
)
@pytest.mark.parametrize("refused", [False, True], ids=["that succeeds", "that fails"])
def test_sp07_a_stop_during_an_initialisation_waits_for_it_and_nothing_runs(
    scheduler: Scheduler,
    heard: Heard,
    reconciling: Held,
    monkeypatch: pytest.MonkeyPatch,
    refused: bool,
) -> None:
    called: list[int] = []
    initialisation = Call(
        scheduler.initialize, [("t", EVERY_MINUTE, lambda: called.append(1), FIVE_MINUTES)]
    )
    reconciling.wait()
    assert scheduler.state == "Initializing"
    stop = Call(scheduler.stop)
    heard.wait_for("SchedulerStopRequested")
    assert scheduler.state == "Initializing"
    assert not stop.is_over
    if refused:
        monkeypatch.setattr(reconciling, "_real", _refuse)
    reconciling.let.set()
    assert stop.result() is True
    if refused:
        with pytest.raises(ScheduleTaskError):
            initialisation.result()
    else:
        initialisation.result()
    assert scheduler.state == "Stopped"
    assert (called, TaskRun.objects.count()) == ([], 0)
    told = "SchedulerInitializationFailed" if refused else "SchedulerInitializationCompleted"
    assert len(heard.of(told)) == 1
    assert heard.of("PollingStarted") == []
    assert not scheduler.is_alive


def _refuse(*_: object, **__: object) -> Any:
    raise OperationalError("the server is gone")


def test_a_stop_gives_up_within_its_grace_and_completes_by_itself(
    scheduler: Scheduler, heard: Heard, reconciling: Held
) -> None:
    initialisation = Call(scheduler.initialize, registrations(t=_nothing))
    reconciling.wait()
    assert scheduler.stop(grace=timedelta(milliseconds=20)) is False
    reconciling.let.set()
    initialisation.result()
    assert len(heard.wait_for("SchedulerStopped")) == 1
    assert scheduler.state == "Stopped"


def test_a_stop_beside_another_one_keeps_to_its_own_grace(
    scheduler: Scheduler, busy: Busy, heard: Heard
) -> None:
    patient = Call(scheduler.stop)
    heard.wait_for("SchedulerStopRequested")
    assert scheduler.stop(grace=timedelta(milliseconds=20)) is False
    busy.may_end.set()
    assert patient.result() is True


def test_a_stop_whose_grace_ran_out_completes_when_the_run_has_ended(
    scheduler: Scheduler, busy: Busy, heard: Heard
) -> None:
    assert scheduler.stop(grace=timedelta(0)) is False
    assert scheduler.state == "Stopping"
    busy.may_end.set()
    heard.wait_for("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"


def test_an_initialisation_after_such_a_stop_waits_for_the_run_and_then_runs(
    scheduler: Scheduler, busy: Busy, heard: Heard, run_now: RunNow
) -> None:
    assert scheduler.stop(grace=timedelta(0)) is False
    again = Call(scheduler.initialize, registrations(t=_nothing))
    assert not again.is_over
    busy.may_end.set()
    again.result()
    run_now("t")
    heard.wait_for("TaskRunCompleted", 2)


@pytest.mark.requirement("001 Scheduler Interface/1")
def test_the_async_forms_meet_like_the_others(transactional_db: None, heard: Heard) -> None:
    async def meet() -> str:
        scheduler = Scheduler()
        await asyncio.gather(
            scheduler.ainitialize(registrations(t=_nothing)),
            scheduler.astop(),
            scheduler.ainitialize(registrations(u=_nothing)),
            scheduler.astop(),
        )
        assert await scheduler.astop() is True
        return str(scheduler.state)

    assert asyncio.run(meet()) == "Stopped"
    begun = len(heard.of("SchedulerInitializationStarted"))
    assert len(heard.of("SchedulerStopped")) == begun


# --- from inside ---


@pytest.mark.requirement("004 Liveness Axioms/3")
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_callback_may_stop_its_scheduler(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, kind: str
) -> None:
    answers: list[Any] = []

    def callback() -> None:
        answers.append((scheduler.stop(), scheduler.state, scheduler.stop()))

    async def coroutine() -> None:
        answers.append((await scheduler.astop(), scheduler.state, await scheduler.astop()))

    scheduler.initialize(registrations(t=callback if kind == "sync" else coroutine))
    run_now("t")
    heard.wait_for("SchedulerStopped")
    assert answers == [(False, "Stopping", False)]
    assert TaskRun.objects.get().outcome == "succeeded"
    assert scheduler.stop() is True
    instance = SchedulerInstance.objects.get()
    assert instance.stop_requested_at is not None
    assert instance.stopped_at is not None
    assert SchedulerState.objects.get().leader is None


def test_a_stop_from_inside_waits_for_the_other_runs_before_it_is_complete(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    busy = Busy()
    scheduler.initialize(registrations(busy=busy, stopping=scheduler.stop))
    run_now("busy")
    assert busy.began.wait(TIMEOUT)
    run_now("stopping")
    heard.wait_for("TaskRunCompleted")
    assert scheduler.state == "Stopping"
    assert heard.of("SchedulerStopped") == []
    busy.may_end.set()
    heard.wait_for("SchedulerStopped")
    assert set(TaskRun.objects.values_list("outcome", flat=True)) == {"succeeded"}


def test_callbacks_that_all_stop_beside_a_stop_from_outside(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    together = threading.Barrier(3, timeout=TIMEOUT)

    def callback() -> None:
        together.wait()
        scheduler.stop()

    scheduler.initialize(registrations(a=callback, b=callback))
    run_now("a", "b")
    together.wait()
    assert scheduler.stop() is True
    assert scheduler.state == "Stopped"
    assert len(heard.of("SchedulerStopped")) == 1


@pytest.mark.requirement("001 Reentrancy Protection/1")
@pytest.mark.parametrize("names", [["u"], ["t", "u"]], ids=["without itself", "with itself"])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_callback_may_initialise_its_scheduler(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, kind: str, names: list[str]
) -> None:
    following = registrations(**dict.fromkeys(names, _nothing))

    def callback() -> None:
        scheduler.initialize(following)

    async def coroutine() -> None:
        await scheduler.ainitialize(following)

    scheduler.initialize(registrations(t=callback if kind == "sync" else coroutine))
    run_now("t")
    (completed,) = heard.wait_for("TaskRunCompleted")
    assert completed.history_only is ("t" not in names), "its schedule is the same in the new set"
    assert [declaration.name for declaration in scheduler.declarations] == names
    run_now("u")
    heard.wait_for("TaskRunCompleted", 2)
    assert sorted(ScheduledTask.objects.values_list("name", flat=True)) == names


def test_a_callback_that_initialises_while_a_stop_waits_for_it_is_refused(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    def callback(run: Any) -> None:
        assert run.stopping.wait(TIMEOUT)
        scheduler.initialize(registrations(u=_nothing))

    scheduler.initialize(registrations(t=callback))
    run_now("t")
    heard.wait_for("TaskRunStarted")
    assert Call(scheduler.stop).result() is True
    (failure,) = heard.of("TaskRunFailed")
    assert failure.error == (
        "ScheduleTaskError: Failed to schedule task 'default': "
        "the scheduler is stopping, and its stop waits for this very call"
    )
    assert list(ScheduledTask.objects.values_list("name", flat=True)) == ["t"]


def test_a_callback_of_one_scheduler_stops_another_like_anybody(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    other = Scheduler(options=lambda: replace(conf.options(), DEPLOYMENT="other"))
    other.initialize(registrations(x=_nothing))
    answers: list[bool] = []
    scheduler.initialize(registrations(t=lambda: answers.append(other.stop())))
    run_now("t")
    heard.wait_for("TaskRunCompleted")
    assert (answers, other.state, scheduler.state) == ([True], "Stopped", "Running")


def test_a_receiver_of_the_loop_may_stop_at_the_first_failure(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, on: Any
) -> None:
    answers: list[bool] = []
    on("task_run_failed", lambda: answers.append(scheduler.stop()))
    scheduler.initialize(registrations(t=lambda: 1 // 0))
    run_now("t")
    heard.wait_for("SchedulerStopped")
    assert answers == [False]
    assert not scheduler.is_alive


def test_a_receiver_of_the_loop_may_initialise(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, on: Any
) -> None:
    on("task_run_failed", lambda: scheduler.initialize(registrations(u=_nothing)))
    scheduler.initialize(registrations(t=lambda: 1 // 0))
    run_now("t")
    heard.wait_for("SchedulerReinitializationCompleted")
    run_now("u")
    heard.wait_for("TaskRunCompleted")


def test_a_receiver_of_a_start_may_remove_its_task_and_the_run_is_called_all_the_same(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, on: Any
) -> None:
    called: list[str] = []
    on("task_run_started", lambda: scheduler.initialize(registrations(u=_nothing)))
    scheduler.initialize(registrations(t=lambda: called.append("t")))
    run_now("t")
    (completed,) = heard.wait_for("TaskRunCompleted")
    assert (completed.history_only, called) == (True, ["t"])
    assert [declaration.name for declaration in scheduler.declarations] == ["u"]


@pytest.mark.requirement("004 Liveness Axioms/2")
def test_a_receiver_of_a_start_and_another_thread_may_initialise_at_once(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(scheduler_module.reconcile.reconcile)
    others: list[Call] = []

    def receive() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(scheduler_module.reconcile, "reconcile", held)
            others.append(Call(scheduler.initialize, registrations(other=_nothing)))
            held.wait()
        held.let.set()
        scheduler.initialize(registrations(mine=_nothing))

    on("task_run_started", receive)
    scheduler.initialize(registrations(t=_nothing))
    run_now("t")
    heard.wait_for("TaskRunCompleted")
    others[0].result()
    assert [declaration.name for declaration in scheduler.declarations] == ["mine"]


@pytest.mark.requirement("001 Reentrancy Protection/2")
@pytest.mark.parametrize(
    "event", ["scheduler_initialization_started", "scheduler_initialization_completed"]
)
def test_a_receiver_of_an_initialisation_may_stop(
    scheduler: Scheduler, heard: Heard, on: Any, event: str
) -> None:
    answers: list[bool] = []
    on(event, lambda: answers.append(scheduler.stop()))
    scheduler.initialize([("t", EVERY_MINUTE, _nothing, FIVE_MINUTES)])
    assert answers == [False]
    heard.wait_for("SchedulerStopped")
    assert scheduler.state == "Stopped"
    assert len(heard.of("SchedulerStopped")) == 1
    assert not scheduler.is_alive
    assert not TaskRun.objects.exists()


@pytest.mark.requirement("003 Reentrancy Protection/1", "004 Liveness Axioms/2")
def test_a_receiver_of_an_initialisation_may_not_initialise(
    scheduler: Scheduler, on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    on("scheduler_initialization_completed", lambda: scheduler.initialize([]))
    scheduler.initialize(registrations(t=_nothing))
    assert scheduler.state == "Running"
    assert [declaration.name for declaration in scheduler.declarations] == ["t"]
    (record,) = [each for each in caplog.records if each.name == "django_declarative_cron"]
    assert record.exc_info is not None
    assert "called by a receiver of its own initialize() or stop()" in str(record.exc_info[1])


def test_a_receiver_of_the_end_may_initialise_again(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, on: Any
) -> None:
    on("scheduler_stopped", lambda: scheduler.initialize(registrations(u=_nothing)))
    scheduler.initialize(registrations(t=_nothing))
    scheduler.stop()
    assert scheduler.state == "Running"
    run_now("u")
    heard.wait_for("TaskRunCompleted")


def test_a_context_that_outlives_its_run_counts_as_outside(
    scheduler: Scheduler, heard: Heard, run_now: RunNow
) -> None:
    import contextvars

    kept: list[contextvars.Context] = []
    scheduler.initialize(registrations(t=lambda: kept.append(contextvars.copy_context())))
    run_now("t")
    heard.wait_for("TaskRunCompleted")
    assert kept[0].run(scheduler.stop) is True


# --- what goes wrong meanwhile ---


@pytest.mark.requirement("004 Liveness Axioms/3")
def test_a_stop_and_the_loop_that_looks_after_the_rows_do_not_wait_for_each_other(
    scheduler: Scheduler, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditing = Held(lambda *_: False)
    monkeypatch.setattr(housekeeping, "is_whole", auditing)
    scheduler.initialize(registrations(t=_nothing))
    auditing.wait()
    stop = Call(scheduler.stop)
    heard.wait_for("SchedulerStopRequested")
    auditing.let.set()
    assert stop.result() is True
    assert scheduler.state == "Stopped"


def test_a_failed_repetition_keeps_the_old_set_running(
    scheduler: Scheduler, heard: Heard, run_now: RunNow, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.initialize(registrations(t=_nothing))
    before = list(ScheduledTask.objects.values())
    with monkeypatch.context() as patched:
        patched.setattr(scheduler_module.reconcile, "reconcile", _refuse)
        with pytest.raises(ScheduleTaskError) as caught:
            scheduler.initialize(registrations(u=_nothing, v=_nothing))
    assert isinstance(caught.value.details["cause"], OperationalError)
    with pytest.raises(DeclarativeCronError):
        scheduler.initialize([("u", "61 * * * *", _nothing, FIVE_MINUTES)])
    assert scheduler.state == "Running"
    assert list(ScheduledTask.objects.values()) == before
    assert len(heard.of("SchedulerInitializationFailed")) == 2
    run_now("t")
    heard.wait_for("TaskRunCompleted")


@pytest.mark.requirement("001 Error Taxonomy/9")
def test_a_deployment_that_cannot_be_left_is_told_and_the_scheduler_has_stopped(
    scheduler: Scheduler, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler.initialize(registrations(t=_nothing))
    monkeypatch.setattr(liveness, "leave", _refuse)
    with pytest.raises(StopSchedulerError) as caught:
        scheduler.stop()
    assert caught.value.message == "Failed to stop scheduler: the server is gone"
    assert isinstance(caught.value.details["cause"], OperationalError)
    assert caught.value.__cause__ is caught.value.details["cause"]
    assert scheduler.state == "Stopped"
    assert not scheduler.is_alive
    assert len(heard.of("SchedulerStopped")) == 1


@pytest.mark.requirement("001 Error Taxonomy/9")
def test_results_that_cannot_be_recorded_are_told_and_recorded_later(
    scheduler: Scheduler, busy: Busy, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutdown, "_LOOK_AGAIN", 0.001)
    with monkeypatch.context() as patched:
        patched.setattr(results, "_record", _refuse)
        busy.may_end.set()
        with pytest.raises(StopSchedulerError) as caught:
            scheduler.stop()
        assert isinstance(caught.value.details["cause"], OperationalError)
        assert scheduler.state == "Stopping"
        assert TaskRun.objects.get().outcome == "running"
    heard.wait_for("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"
