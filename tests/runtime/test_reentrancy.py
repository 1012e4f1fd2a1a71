"""initialize and stop from several threads, from inside, and during each other (RE, SP)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from django_declarative_cron import Scheduler, conf, signals
from django_declarative_cron.core.declarations.declaration import digest_of_set
from django_declarative_cron.exceptions import DeclarativeCronError, ScheduleTaskError
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.runtime import housekeeping
from django_declarative_cron.runtime import scheduler as scheduler_module

from .conftest import FIVE_MINUTES, TIMEOUT, Busy, Call, Heard, Live, nothing, registrations

EVERY_MINUTE = "* * * * *"
AT_ONCE = timedelta(0)


class Held:
    """A function whose calls wait to be let through."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.real = real
        self._entered, self.let = threading.Event(), threading.Event()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._entered.set()
        assert self.let.wait(TIMEOUT)
        return self.real(*args, **kwargs)

    def wait(self) -> None:
        assert self._entered.wait(TIMEOUT)


def _refuse(*_: object, **__: object) -> Any:
    raise OperationalError("the server is gone")


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


def _declared(live: Live) -> list[str]:
    return [each.name for each in live.scheduler.declarations]


def _stored() -> list[str]:
    return sorted(ScheduledTask.objects.values_list("name", flat=True))


# --- several threads ---


@pytest.mark.requirement("001 Reentrancy Protection/1", "003 Reentrancy Protection/1", "004 L2")
def test_initialisations_at_once_each_get_their_own_outcome_and_the_last_one_holds(
    live: Live,
) -> None:
    together = threading.Barrier(6, timeout=TIMEOUT)

    def initialize(registrations: list[Any]) -> None:
        together.wait()
        live.scheduler.initialize(registrations)

    names = [[f"t{n}", f"u{n}"] for n in range(4)]
    sets = [registrations(**dict.fromkeys(each, nothing)) for each in names]
    good = [Call(initialize, each) for each in sets]
    bad = [Call(initialize, each) for each in ("no list", [("x", "61 * * * *", nothing, 5)])]
    for call in good:
        call.result()
    for call in bad:
        with pytest.raises(DeclarativeCronError):
            call.result()
    assert live.scheduler.state == "Running"
    assert sorted(_declared(live)) in names
    assert _stored() == sorted(_declared(live))
    assert SchedulerState.objects.get().digest == digest_of_set(live.scheduler.declarations)


@pytest.mark.requirement("001 Scheduler Identifier/1")
def test_processes_that_come_at_once_make_one_deployment_with_one_identifier(
    transactional_db: None,
) -> None:
    together = threading.Barrier(4, timeout=TIMEOUT)

    def come(number: int) -> None:
        scheduler = Scheduler(background=False)
        together.wait()
        for _ in range(3):
            scheduler.initialize(registrations(shared=nothing, **{f"t{number}": nothing}))
        scheduler.stop()

    for call in [Call(come, number) for number in range(4)]:
        call.result()
    identifier = SchedulerState.objects.get().identifier
    tasks = ScheduledTask.objects.values_list("scheduler_identifier", flat=True)
    assert list(tasks) == [identifier] * 2, "the last set holds"


@pytest.mark.requirement(
    "001 Resource Management/1", "003 Testable Invariants/15", "004 S3", "004 Liveness Axioms/3"
)
def test_sp02_sp03_stops_at_once_share_one_shutdown_that_waits_for_the_run(
    live: Live, busy: Busy
) -> None:
    stops = [Call(live.scheduler.stop) for _ in range(4)]
    live.until("SchedulerStopRequested")
    assert live.scheduler.state == "Stopping"
    assert live.scheduler.stop(grace=timedelta(milliseconds=20)) is False, "its own grace"
    assert not any(stop.is_over for stop in stops)
    busy.may_end.set()
    assert [stop.result() for stop in stops] == [True] * 4
    told = live.heard.kinds()
    assert [told.count(f"Scheduler{what}") for what in ("StopRequested", "Stopped")] == [1, 1]
    assert told.index("TaskRunCompleted") < told.index("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"


@pytest.mark.requirement("004 Liveness Axioms/2")
@pytest.mark.parametrize("grace", [None, AT_ONCE], ids=["a patient one", "one that has given up"])
def test_an_initialisation_during_a_stop_waits_for_its_end(
    live: Live, busy: Busy, grace: timedelta | None
) -> None:
    stop = Call(live.scheduler.stop, grace=grace)
    live.until("SchedulerStopRequested")
    if grace is not None:
        assert stop.result() is False
    again = Call(live.start, u=nothing)
    assert not again.is_over
    busy.may_end.set()
    assert stop.result() is (grace is None)
    again.result()
    assert live.scheduler.state == "Running"
    live.ask("u")
    live.until("TaskRunCompleted", 2)


def test_a_stop_whose_grace_ran_out_completes_when_the_run_has_ended(
    live: Live, busy: Busy
) -> None:
    assert live.scheduler.stop(grace=AT_ONCE) is False
    assert live.scheduler.state == "Stopping"
    busy.may_end.set()
    live.until("SchedulerStopped")
    assert TaskRun.objects.get().outcome == "succeeded"


@pytest.mark.requirement("001 Scheduler Interface/1")
def test_the_async_forms_meet_like_the_others(transactional_db: None, heard: Heard) -> None:
    async def meet() -> str:
        scheduler = Scheduler()
        await asyncio.gather(
            scheduler.ainitialize(registrations(t=nothing)),
            scheduler.astop(),
            scheduler.ainitialize(registrations(u=nothing)),
            scheduler.astop(),
        )
        assert await scheduler.astop() is True
        return str(scheduler.state)

    assert asyncio.run(meet()) == "Stopped"
    begun = len(heard.of("SchedulerInitializationStarted"))
    assert len(heard.of("SchedulerStopped")) == begun


# --- a stop during an initialisation ---


@pytest.mark.requirement(
    "001 Reentrancy Protection/2",
    "001 Reentrancy Protection/3",
    "003 Reentrancy Protection/2",
    "003 Reentrancy Protection/3",
)
@pytest.mark.parametrize("refused", [False, True], ids=["that succeeds", "that fails"])
def test_sp07_a_stop_during_an_initialisation_waits_for_it_and_nothing_runs(
    live: Live, reconciling: Held, refused: bool
) -> None:
    called: list[int] = []
    entry = ("t", EVERY_MINUTE, lambda: called.append(1), FIVE_MINUTES)
    initialisation = Call(live.scheduler.initialize, [entry])
    reconciling.wait()
    assert live.scheduler.state == "Initializing"
    stop = Call(live.scheduler.stop)
    live.until("SchedulerStopRequested")
    assert live.scheduler.state == "Initializing"
    assert not stop.is_over
    if refused:
        reconciling.real = _refuse
    reconciling.let.set()
    assert stop.result() is True
    if refused:
        with pytest.raises(ScheduleTaskError):
            initialisation.result()
    else:
        initialisation.result()
    assert live.scheduler.state == "Stopped"
    assert (called, TaskRun.objects.count()) == ([], 0)
    told = live.heard.kinds()
    ends = [told.count(f"SchedulerInitialization{end}") for end in ("Completed", "Failed")]
    assert ends == ([0, 1] if refused else [1, 0])
    assert "PollingStarted" not in told
    assert not live.scheduler.is_alive


def test_a_stop_gives_up_within_its_grace_and_completes_by_itself(
    live: Live, reconciling: Held
) -> None:
    initialisation = Call(live.start, t=nothing)
    reconciling.wait()
    assert live.scheduler.stop(grace=timedelta(milliseconds=20)) is False
    reconciling.let.set()
    initialisation.result()
    assert len(live.until("SchedulerStopped")) == 1
    assert live.scheduler.state == "Stopped"


# --- from inside ---


@pytest.mark.requirement("004 Liveness Axioms/3")
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_callback_may_stop_its_scheduler(live: Live, kind: str) -> None:
    answers: list[Any] = []
    scheduler = live.scheduler

    def callback() -> None:
        answers.append((scheduler.stop(), scheduler.state, scheduler.stop()))

    async def coroutine() -> None:
        answers.append((await scheduler.astop(), scheduler.state, await scheduler.astop()))

    live.run(t=callback if kind == "sync" else coroutine)
    live.until("SchedulerStopped")
    assert answers == [(False, "Stopping", False)]
    assert TaskRun.objects.get().outcome == "succeeded"
    assert scheduler.stop() is True
    instance = SchedulerInstance.objects.get()
    assert None not in (instance.stop_requested_at, instance.stopped_at)
    assert SchedulerState.objects.get().leader is None


def test_a_stop_from_inside_waits_for_the_other_runs_before_it_is_complete(live: Live) -> None:
    busy = Busy()
    live.start(busy=busy, stopping=live.scheduler.stop)
    live.ask("busy")
    assert busy.began.wait(TIMEOUT)
    live.ask("stopping")
    live.until("TaskRunCompleted")
    assert live.scheduler.state == "Stopping"
    assert live.heard.of("SchedulerStopped") == []
    busy.may_end.set()
    live.until("SchedulerStopped")
    assert set(TaskRun.objects.values_list("outcome", flat=True)) == {"succeeded"}


def test_callbacks_that_all_stop_beside_a_stop_from_outside(live: Live) -> None:
    together = threading.Barrier(3, timeout=TIMEOUT)

    def callback() -> None:
        together.wait()
        live.scheduler.stop()

    live.run(a=callback, b=callback)
    together.wait()
    assert live.scheduler.stop() is True
    assert live.scheduler.state == "Stopped"
    assert len(live.heard.of("SchedulerStopped")) == 1


@pytest.mark.requirement("001 Reentrancy Protection/1")
@pytest.mark.parametrize("names", [["u"], ["t", "u"]], ids=["without itself", "with itself"])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_callback_may_initialise_its_scheduler(live: Live, kind: str, names: list[str]) -> None:
    following = registrations(**dict.fromkeys(names, nothing))

    def callback() -> None:
        live.scheduler.initialize(following)

    async def coroutine() -> None:
        await live.scheduler.ainitialize(following)

    live.run(t=callback if kind == "sync" else coroutine)
    (completed,) = live.until("TaskRunCompleted")
    assert completed.history_only is ("t" not in names), "its schedule is the same in the new set"
    assert _declared(live) == names
    live.ask("u")
    live.until("TaskRunCompleted", 2)
    assert _stored() == names


def test_a_callback_that_initialises_while_a_stop_waits_for_it_is_refused(live: Live) -> None:
    def callback(run: Any) -> None:
        assert run.stopping.wait(TIMEOUT)
        live.start(u=nothing)

    live.run(t=callback)
    live.until("TaskRunStarted")
    assert Call(live.scheduler.stop).result() is True
    (failure,) = live.heard.of("TaskRunFailed")
    assert failure.error == (
        "ScheduleTaskError: Failed to schedule task 'default': "
        "the scheduler is stopping, and its stop waits for this very call"
    )
    assert _stored() == ["t"]


def test_a_callback_of_one_scheduler_stops_another_like_anybody(live: Live) -> None:
    other = Scheduler(options=lambda: replace(conf.options(), DEPLOYMENT="other"))
    other.initialize(registrations(x=nothing))
    answers: list[bool] = []
    live.run(t=lambda: answers.append(other.stop()))
    live.until("TaskRunCompleted")
    assert (answers, other.state, live.scheduler.state) == ([True], "Stopped", "Running")


def test_a_receiver_of_the_loop_may_initialise(live: Live, on: Any) -> None:
    on("task_run_failed", lambda: live.start(u=nothing))
    live.run(t=lambda: 1 // 0)
    live.until("SchedulerReinitializationCompleted")
    live.ask("u")
    live.until("TaskRunCompleted")


def test_a_receiver_of_a_start_may_remove_its_task_and_the_run_is_called_all_the_same(
    live: Live, on: Any
) -> None:
    called: list[str] = []
    on("task_run_started", lambda: live.start(u=nothing))
    live.run(t=lambda: called.append("t"))
    (completed,) = live.until("TaskRunCompleted")
    assert (completed.history_only, called) == (True, ["t"])
    assert _declared(live) == ["u"]


@pytest.mark.requirement("004 Liveness Axioms/2")
def test_a_receiver_of_a_start_and_another_thread_may_initialise_at_once(
    live: Live, on: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(scheduler_module.reconcile.reconcile)
    others: list[Call] = []

    def receive() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(scheduler_module.reconcile, "reconcile", held)
            others.append(Call(live.start, other=nothing))
            held.wait()
        held.let.set()
        live.start(mine=nothing)

    on("task_run_started", receive)
    live.run(t=nothing)
    live.until("TaskRunCompleted")
    others[0].result()
    assert _declared(live) == ["mine"]


@pytest.mark.requirement("001 Reentrancy Protection/2")
@pytest.mark.parametrize(
    "event",
    ["scheduler_initialization_started", "scheduler_initialization_completed", "task_run_failed"],
)
def test_a_receiver_of_an_initialisation_or_of_the_loop_may_stop(
    live: Live, on: Any, event: str
) -> None:
    answers: list[bool] = []
    on(event, lambda: answers.append(live.scheduler.stop()))
    live.scheduler.initialize([("t", EVERY_MINUTE, lambda: 1 // 0, FIVE_MINUTES)])
    assert len(live.until("SchedulerStopped")) == 1
    assert answers == [False]
    assert live.scheduler.state == "Stopped"
    assert not live.scheduler.is_alive
    assert TaskRun.objects.exists() is (event == "task_run_failed")


@pytest.mark.requirement("003 Reentrancy Protection/1", "004 Liveness Axioms/2")
def test_a_receiver_of_an_initialisation_may_not_initialise(
    live: Live, on: Any, caplog: pytest.LogCaptureFixture
) -> None:
    on("scheduler_initialization_completed", lambda: live.scheduler.initialize([]))
    live.start(t=nothing)
    assert live.scheduler.state == "Running"
    assert _declared(live) == ["t"]
    (record,) = [each for each in caplog.records if each.name == "django_declarative_cron"]
    assert record.exc_info is not None
    assert "called by a receiver of its own initialize() or stop()" in str(record.exc_info[1])


def test_a_receiver_of_the_end_may_initialise_again(live: Live, on: Any) -> None:
    on("scheduler_stopped", lambda: live.start(u=nothing))
    live.start(t=nothing)
    live.scheduler.stop()
    assert live.scheduler.state == "Running"
    live.ask("u")
    live.until("TaskRunCompleted")


def test_a_context_that_outlives_its_run_counts_as_outside(live: Live) -> None:
    kept: list[contextvars.Context] = []
    live.run(t=lambda: kept.append(contextvars.copy_context()))
    live.until("TaskRunCompleted")
    assert kept[0].run(live.scheduler.stop) is True


# --- what goes wrong meanwhile ---


@pytest.mark.requirement("004 Liveness Axioms/3")
def test_a_stop_and_the_loop_that_looks_after_the_rows_do_not_wait_for_each_other(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    auditing = Held(lambda *_: False)
    monkeypatch.setattr(housekeeping, "is_whole", auditing)
    live.start(t=nothing)
    auditing.wait()
    stop = Call(live.scheduler.stop)
    live.until("SchedulerStopRequested")
    auditing.let.set()
    assert stop.result() is True
    assert live.scheduler.state == "Stopped"


def test_a_failed_repetition_keeps_the_old_set_running(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.start(t=nothing)
    before = list(ScheduledTask.objects.values())
    with monkeypatch.context() as patched:
        patched.setattr(scheduler_module.reconcile, "reconcile", _refuse)
        with pytest.raises(ScheduleTaskError) as caught:
            live.start(u=nothing, v=nothing)
    assert isinstance(caught.value.details["cause"], OperationalError)
    with pytest.raises(DeclarativeCronError):
        live.scheduler.initialize([("u", "61 * * * *", nothing, FIVE_MINUTES)])
    assert live.scheduler.state == "Running"
    assert list(ScheduledTask.objects.values()) == before
    assert len(live.heard.of("SchedulerInitializationFailed")) == 2
    live.ask("t")
    live.until("TaskRunCompleted")
