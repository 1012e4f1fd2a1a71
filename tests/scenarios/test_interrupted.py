"""Interrupted runs (IN): what becomes of a run whose process is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store.status import shown_end, shown_outcome
from django_declarative_cron.testing import SimulatedCrash, Simulation

from .conftest import (
    DAILY,
    HALF_AN_HOUR,
    HOUR,
    SECOND,
    Start,
    governed,
    job,
    restart,
    scheduler_of,
    task,
)
from .observed import of, runs, starts, utc

LONG_AGO = utc("1500-01-01T00:00")


@pytest.mark.requirement("001 Idempotency Guarantees/6")
def test_in01_an_interrupted_run_restarts_once_at_the_next_initialisation(
    start: Start, told: list[Event]
) -> None:
    once_long = job(lasts=HALF_AN_HOUR)
    sim = start("10:00", task("t", DAILY, once_long))
    old = str(scheduler_of(sim).id)
    sim.advance_to(utc("10:00:30"))
    sim.crash()
    assert sim.task("t").last_attempt_at == utc("10:00")
    once_long.duration = timedelta(0)
    restart(sim, task("t", DAILY, once_long), at="10:01:30")
    assert runs(sim, "outcome reason attempt started_at") == [
        ("interrupted", "boot", 1, "10:00"),
        ("succeeded", "orphaned", 2, "10:01:30"),
    ]
    (event,) = of(told, events.TaskRunInterrupted)
    assert (event.level, event.task_name) == ("INFO", "t")
    assert (event.old_instance, event.new_instance) == (old, str(scheduler_of(sim).id))
    sim.advance_to(utc("23:00"), at_least_every=HOUR)
    assert len(sim.starts("t")) == 2


def test_in03_in07_in09_only_what_was_interrupted_and_is_still_declared_restarts(
    start: Start, told: list[Event]
) -> None:
    slow = job(lasts=HALF_AN_HOUR)
    kept = [task("a", DAILY, slow), task("b", "5 10 * * *", slow), task("idle", "0 23 * * *")]
    sim = start("10:00", *kept, task("gone", DAILY, slow), task("changed", DAILY))
    sim.advance_to(utc("10:05:10"))
    TaskRun.objects.filter(task_name="a").update(instance=_another_process(sim.task("a")))
    restart(sim, *kept, task("changed", "0 5 * * *"), at="10:06")
    assert [len(sim.starts(name)) for name in ("a", "b", "idle", "changed")] == [2, 2, 0, 1]
    assert not ScheduledTask.objects.filter(name="gone").exists()
    assert runs(sim, "outcome", "gone") == ["interrupted"]
    assert [event.task_name for event in of(told, events.TaskOverridden)] == ["changed"]


def _another_process(row: ScheduledTask) -> SchedulerInstance:
    return SchedulerInstance.objects.create(
        scheduler=row.scheduler,
        host="elsewhere",
        pid=1,
        started_at=LONG_AGO,
        heartbeat_at=LONG_AGO,
    )


def test_in05_an_override_forgets_the_interruption_which_ended_at_the_last_sign_of_life(
    start: Start,
) -> None:
    sim = start("10:00", task("t", DAILY, lasts=HALF_AN_HOUR))
    sim.advance_to(utc("10:00:30"))
    heard = SchedulerInstance.objects.get().heartbeat_at
    sim.crash()
    sim.jump_to(utc("10:05"))
    [run] = TaskRun.objects.select_related("instance")
    assert shown_outcome(run, sim.now) == "interrupted"
    assert shown_end(run, sim.now) == heard < sim.now
    sim.initialize([task("t", "0 11 * * *")])
    run.refresh_from_db()
    assert run.finished_at >= utc("10:05")
    assert shown_end(run, sim.now) == heard
    assert runs(sim, "outcome") == ["interrupted"]
    sim.advance_to(utc("11:00"))
    assert starts(sim)[1:] == ["11:00"]


def test_an_override_in_a_minute_it_names_does_not_wait_for_a_run_of_the_dead(
    start: Start,
) -> None:
    sim = start("10:00", task("t", DAILY, lasts=HALF_AN_HOUR))
    sim.advance_to(utc("10:00:30"))
    restart(sim, task("t", "0 10,11 * * *"))
    assert runs(sim, "outcome reason") == [("interrupted", "boot"), ("succeeded", "boot")]


@pytest.mark.requirement("001 Idempotency Guarantees/6")
def test_in12_an_interrupted_retry_restarts_once_and_goes_on_as_usual(start: Start) -> None:
    once = job("fail ok")
    registration = task("t", DAILY, once)
    sim = start("10:00", registration)
    once.duration = HALF_AN_HOUR
    sim.advance_to(utc("10:05:30"))
    sim.crash()
    once.duration = timedelta(0)
    restart(sim, registration, at="10:07")
    sim.advance_to(utc("2024-01-02T10:00"), at_least_every=HOUR)
    assert runs(sim, "outcome attempt") == [
        ("failed", 1),
        ("interrupted", 2),
        ("succeeded", 3),
        ("succeeded", 1),
    ]


def test_in15_a_graceful_stop_leaves_nothing_to_restart(start: Start) -> None:
    registration = task("t", DAILY, lasts=20 * SECOND)
    sim = start("10:00", registration)
    sim.stop()
    sim.initialize([registration])
    sim.advance_to(utc("11:00"))
    assert runs(sim, "outcome") == ["succeeded"]


def test_a_restart_consumes_a_missed_occurrence_too(start: Start) -> None:
    sim = start("10:00", task(lasts=HALF_AN_HOUR))
    sim.advance_to(utc("10:10"))
    restart(sim, task(), at="12:30")
    assert runs(sim, "outcome reason count scheduled_for") == [
        ("interrupted", "boot", 1, "10:00"),
        ("missed", "no_scheduler", 1, "11:00"),
        ("succeeded", "orphaned", 1, "12:00"),
    ]


@pytest.mark.parametrize("catch_up_window", [None, 0], ids=["catches up", "never catches up"])
@pytest.mark.parametrize("moment", ["before the call", "in the callback", "before the result"])
def test_p32_p102_a_kill_at_any_moment_leaves_a_task_that_runs_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, moment: str, catch_up_window: int | None
) -> None:
    outcomes = [SimulatedCrash(), "ok"] if moment == "in the callback" else "ok"
    registration = governed("t", "1 * * * *", outcomes, catch_up_window=catch_up_window)
    sim = start("10:00:30", registration)
    place = {
        "before the call": "runtime.executor.Executor.call",
        "before the result": "store.results._record",
    }

    def gone(*_: object) -> None:
        raise SimulatedCrash

    with monkeypatch.context() as patch:
        if moment in place:
            patch.setattr(f"django_declarative_cron.{place[moment]}", gone)
        sim.advance_to(utc("10:01"))
    assert sim[0].scheduler is None
    # The trace has no end of a run that nobody saw, and no start of one that was not called.
    seen = [] if moment == "before the call" else ["RS"]
    assert [each["event"] for each in sim.trace()] == ["IS", "IEs", *seen, "Crash", "Tick"]
    sim.advance_to(utc("10:40"))
    sim.initialize([registration])
    sim.advance_to(utc("11:01"))
    assert runs(sim, "outcome scheduled_for attempt") == [
        ("interrupted", "10:01", 1),
        ("succeeded", "10:01", 2),
        ("succeeded", "11:01", 1),
    ]


@pytest.mark.requirement("004 S4")
@pytest.mark.beyond_the_theory
def test_a_late_result_never_overwrites_what_came_after(start: Start, told: list[Event]) -> None:
    long = job("ok fail", HALF_AN_HOUR)
    sim = start("10:00", task("t", DAILY, long), instances=2)
    SchedulerInstance.objects.filter(id=scheduler_of(sim).id).update(heartbeat_at=LONG_AGO)
    SchedulerState.objects.update(leader=None, lease_expires_at=None)
    sim[1].poll()
    assert runs(sim, "outcome") == ["interrupted", "running"]
    sim.advance_to(utc("10:45"))
    assert runs(sim, "outcome") == ["interrupted", "failed", "running"]
    assert sim.task("t").last_success_at is None
    assert [type(event) for event in told].count(events.TaskRunResultDiscarded) == 1


# --- a task that ends its process each time keeps nobody else from running (P32, P54) ---


def _again(sim: Simulation, tasks: list[object], seconds: int, times: int = 1) -> None:
    """Let a supervisor start the scheduler again."""
    for _ in range(times):
        sim.clock.advance(sim.now + timedelta(seconds=seconds))
        sim.initialize(tasks)


def test_the_third_end_in_a_row_is_told_once_and_counted(start: Start, told: list[Event]) -> None:
    tasks: list[object] = [task("k", DAILY, [*[SimulatedCrash()] * 5, "ok"])]
    sim = start("10:00", *tasks)
    counted = []
    for _ in range(5):
        _again(sim, tasks, 5)
        counted.append(sim.task("k").interruptions)
    assert counted == [1, 2, 3, 4, 0]
    assert runs(sim, "outcome", "k") == [*["interrupted"] * 5, "succeeded"]
    (once,) = of(told, events.TaskRepeatedlyInterrupted)
    assert (once.task_name, once.interruptions) == ("k", 3)


def test_a_failure_ends_the_suspicion_too(start: Start) -> None:
    tasks: list[object] = [task("k", DAILY, [*[SimulatedCrash()] * 3, "fail"], delay=HOUR)]
    sim = start("10:00", *tasks)
    _again(sim, tasks, 5, times=3)
    assert (runs(sim, "outcome", "k")[-1], sim.task("k").interruptions) == ("failed", 0)


@pytest.mark.parametrize(
    ("lasts", "waits", "starts_at"),
    [(20 * SECOND, "10:01:19", "10:01:20"), (HOUR, "10:01:29", "10:01:30")],
    ids=["until the others have ended", "but not for ever"],
)
def test_a_suspicious_task_waits(
    start: Start, lasts: timedelta, waits: str, starts_at: str
) -> None:
    """Without that nobody whose run takes a while would ever get to its end."""
    tasks: list[object] = [
        task("killer", DAILY, [*[SimulatedCrash()] * 4, "ok"]),
        task("other", "1 10 * * *", lasts=lasts),
    ]
    sim = start("10:00", *tasks)
    _again(sim, tasks, 1, times=3)
    assert runs(sim, "outcome", "killer")[:3] == ["interrupted"] * 3
    _again(sim, tasks, 57)
    assert sim.now == utc("10:01")
    sim.advance_to(utc(waits), at_least_every=SECOND)
    assert runs(sim, "outcome", "killer") == ["interrupted"] * 4
    assert runs(sim, "outcome", "other") == ["running"]
    sim.advance_to(utc("10:02"), at_least_every=SECOND)
    assert runs(sim, "outcome", "killer") == [*["interrupted"] * 4, "succeeded"]
    assert runs(sim, "outcome", "other") == ["running" if lasts == HOUR else "succeeded"]
    assert starts(sim, "killer")[-1] == starts_at


def test_of_several_the_least_suspicious_clears_itself_first(start: Start) -> None:
    tasks: list[object] = [
        task("killer", DAILY, [*[SimulatedCrash()] * 5, "ok"]),
        task("near", DAILY, lasts=2 * SECOND),
    ]
    sim = start("10:00", *tasks)
    _again(sim, tasks, 1, times=2)
    sim.crash()
    for _ in range(2):
        _again(sim, tasks, 1)
        sim.advance_to(sim.now + 4 * SECOND)
    assert runs(sim, "outcome", "near")[-1] == "succeeded"
    assert sim.task("near").interruptions == 0
    assert utc("10:00:20") > sim.now
