"""Interrupted runs (IN): what becomes of a run whose process is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
from django_declarative_cron.store.status import shown_end, shown_outcome
from django_declarative_cron.testing import SimulatedCrash, Simulation

from .conftest import FIVE_MINUTES, Started, of, utc

LONG = timedelta(minutes=30)


@pytest.mark.requirement("001 Idempotency Guarantees/6")
def test_in01_an_interrupted_run_restarts_once_at_the_next_initialisation(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(duration=LONG)
    registrations = [("t", "0 10 * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    old = str(sim[0].scheduler.id)
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.crash()
    assert sim.task("t").last_attempt_at == utc("10:00")
    sim.jump_to("2024-01-01T10:01:30Z")
    job.duration = timedelta(0)
    sim.initialize(registrations)
    assert [(run.outcome, run.reason, run.attempt) for run in sim.runs("t")] == [
        ("interrupted", "boot", 1),
        ("succeeded", "orphaned", 2),
    ]
    assert sim.starts("t") == [utc("10:00"), utc("10:01:30")]
    (event,) = of(told, events.TaskRunInterrupted)
    assert (event.level, event.task_name) == ("INFO", "t")
    assert (event.old_instance, event.new_instance) == (old, str(sim[0].scheduler.id))
    sim.advance_to("2024-01-01T23:00:00Z", at_least_every=timedelta(hours=1))
    assert len(sim.starts("t")) == 2


def test_in03_only_the_interrupted_restart_whoever_ran_them(simulation: Started) -> None:
    sim = simulation("10:00:00")
    slow, idle = sim.job(duration=LONG), sim.job()
    registrations = [
        ("a", "0 10 * * *", slow, FIVE_MINUTES),
        ("b", "5 10 * * *", slow, FIVE_MINUTES),
        ("idle", "0 23 * * *", idle, FIVE_MINUTES),
    ]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:05:10Z")
    TaskRun.objects.filter(task_name="a").update(instance=_another_process(sim.task("a")))
    sim.crash()
    sim.jump_to("2024-01-01T10:06:00Z")
    sim.initialize(registrations)
    assert len(sim.starts("a")) == len(sim.starts("b")) == 2
    assert sim.starts("idle") == []


def _another_process(task: ScheduledTask) -> SchedulerInstance:
    return SchedulerInstance.objects.create(
        scheduler=task.scheduler,
        host="elsewhere",
        pid=1,
        started_at=utc("1500-01-01T00:00"),
        heartbeat_at=utc("1500-01-01T00:00"),
    )


def test_in05_an_override_forgets_the_interruption(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:05:00Z")
    sim.initialize([("t", "0 11 * * *", sim.job(), FIVE_MINUTES)])
    assert len(sim.starts("t")) == 1
    assert sim.runs("t")[0].outcome == "interrupted"
    sim.advance_to("2024-01-01T11:00:00Z")
    assert sim.starts("t")[1:] == [utc("11:00")]


def test_an_interrupted_run_ends_for_people_at_the_last_sign_of_life(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:00:30Z")
    heard = SchedulerInstance.objects.get().heartbeat_at
    sim.crash()
    sim.jump_to("2024-01-01T10:05:00Z")
    [run] = TaskRun.objects.select_related("instance")
    assert shown_outcome(run, sim.now) == "interrupted"
    assert shown_end(run, sim.now) == heard < sim.now
    sim.initialize([("t", "0 11 * * *", sim.job(), FIVE_MINUTES)])
    run.refresh_from_db()
    assert run.finished_at >= utc("10:05")
    assert shown_end(run, sim.now) == heard


def test_an_override_in_a_minute_it_names_does_not_wait_for_a_run_of_the_dead(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(duration=LONG)
    sim.initialize([("t", "0 10 * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.crash()
    job.duration = timedelta(0)
    sim.initialize([("t", "0 10,11 * * *", job, FIVE_MINUTES)])
    assert [(run.outcome, run.reason) for run in sim.runs("t")] == [
        ("interrupted", "boot"),
        ("succeeded", "boot"),
    ]


def test_in07_an_interruption_and_an_override_do_not_touch_each_other(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("00:00:00")
    job = sim.job(duration=LONG)
    sim.initialize(
        [("t1", "0 0 * * *", job, FIVE_MINUTES), ("t2", "0 0 * * *", sim.job(), FIVE_MINUTES)]
    )
    sim.advance_to("2024-01-01T00:01:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T00:10:00Z")
    job.duration = timedelta(0)
    sim.initialize(
        [("t1", "0 0 * * *", job, FIVE_MINUTES), ("t2", "0 5 * * *", sim.job(), FIVE_MINUTES)]
    )
    assert (len(sim.starts("t1")), len(sim.starts("t2"))) == (2, 1)
    kinds = [type(event) for event in told]
    assert events.TaskRunInterrupted in kinds
    assert events.TaskOverridden in kinds


def test_in09_an_interrupted_task_that_is_no_longer_declared_is_no_error(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    kept = ("kept", "0 10 * * *", sim.job(), FIVE_MINUTES)
    sim.initialize([("gone", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES), kept])
    sim.advance_to("2024-01-01T10:00:30Z")
    sim.crash()
    sim.initialize([kept])
    assert not ScheduledTask.objects.filter(name="gone").exists()
    assert [run.outcome for run in sim.runs("gone")] == ["interrupted"]
    assert len(sim.starts("kept")) == 1


@pytest.mark.requirement("001 Idempotency Guarantees/6")
def test_in12_an_interrupted_retry_restarts_once_and_goes_on_as_usual(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(["fail", "ok"])
    registrations = [("t", "0 10 * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    job.duration = LONG
    sim.advance_to("2024-01-01T10:05:30Z")
    sim.crash()
    job.duration = timedelta(0)
    sim.jump_to("2024-01-01T10:07:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-02T10:00:00Z", at_least_every=timedelta(hours=1))
    assert [(r.outcome, r.attempt) for r in sim.runs("t")] == [
        ("failed", 1),
        ("interrupted", 2),
        ("succeeded", 3),
        ("succeeded", 1),
    ]


def test_in15_a_graceful_stop_leaves_nothing_to_restart(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", "0 10 * * *", sim.job(duration=timedelta(seconds=20)), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.stop()
    assert sim.runs("t")[0].outcome == "succeeded"
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(sim.starts("t")) == 1


def test_a_restart_consumes_a_missed_occurrence_too(simulation: Started) -> None:
    sim = simulation("10:00:00")
    job = sim.job(duration=LONG)
    registrations = [("t", "0 * * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:10:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T12:30:00Z")
    job.duration = timedelta(0)
    sim.initialize(registrations)
    restarted = sim.runs("t")[-1]
    assert (restarted.reason, restarted.scheduled_for) == ("orphaned", utc("12:00"))
    assert [(r.outcome, r.count) for r in sim.runs("t")] == [
        ("interrupted", 1),
        ("missed", 1),
        ("succeeded", 1),
    ]


@pytest.mark.requirement("001 Parallel Execution/3")
def test_a_run_of_a_process_that_still_lives_is_never_started_elsewhere(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00", instances=2)
    job = sim.job(duration=LONG)
    registrations = [("t", "0,5 10 * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:10:00Z")
    assert len(sim.starts("t")) == 1


@pytest.mark.requirement("004 S4")
@pytest.mark.beyond_the_theory
def test_a_late_result_never_overwrites_what_came_after(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00", instances=2)
    job = sim.job(duration=LONG)
    registrations = [("t", "0 10 * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    SchedulerInstance.objects.filter(id=sim[0].scheduler.id).update(
        heartbeat_at=utc("1500-01-01T00:00")
    )
    sim.task("t").scheduler.__class__.objects.update(leader=None, lease_expires_at=None)
    job.outcomes = ["ok", "fail"]
    sim[1].poll()
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "running"]
    sim.advance_to("2024-01-01T10:45:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "failed", "running"]
    assert sim.task("t").last_success_at is None
    assert [type(e).__name__ for e in told].count("TaskRunResultDiscarded") == 1


@pytest.mark.requirement("001 Real-time bounds/4", "002 CRON-S05")
def test_a_standby_that_saw_work_overdue_takes_over_when_the_leader_is_gone(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00", instances=2)
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    sim.clock.advance(utc("11:00"))
    sim[1].poll()
    sim[1].poll()
    assert sim.starts("t") == [utc("10:00")]
    sim[0].crash()
    sim[1].poll()
    assert sim.starts("t") == [utc("10:00"), utc("11:00")]


# --- a task that ends its process each time keeps nobody else from running (P32, P54) ---

HOUR = timedelta(hours=1)


def _again(sim: Simulation, registrations: list[object], seconds: int) -> None:
    """Let a supervisor start the scheduler again."""
    sim.clock.advance(sim.now + timedelta(seconds=seconds))
    sim.initialize(registrations)


def _outcomes(sim: Simulation, name: str) -> list[str]:
    return [run.outcome for run in sim.runs(name)]


def test_the_third_end_in_a_row_is_told_once_and_counted(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    ends = [SimulatedCrash()] * 5
    set_: list[object] = [("k", "0 10 * * *", sim.job([*ends, "ok"]), FIVE_MINUTES)]
    sim.initialize(set_)
    counted = []
    for _ in range(5):
        _again(sim, set_, 5)
        counted.append(sim.task("k").interruptions)
    assert counted == [1, 2, 3, 4, 0]
    assert _outcomes(sim, "k") == [*["interrupted"] * 5, "succeeded"]
    (once,) = of(told, events.TaskRepeatedlyInterrupted)
    assert (once.task_name, once.interruptions) == ("k", 3)


def test_a_failure_ends_the_suspicion_too(simulation: Started) -> None:
    sim = simulation("10:00:00")
    set_: list[object] = [("k", "0 10 * * *", sim.job([*[SimulatedCrash()] * 3, "fail"]), HOUR)]
    sim.initialize(set_)
    for _ in range(3):
        _again(sim, set_, 5)
    assert (_outcomes(sim, "k")[-1], sim.task("k").interruptions) == ("failed", 0)


def _killed_four_times(sim: Simulation, duration: timedelta) -> None:
    """Let one task end its process again and again before another one is due."""
    set_: list[object] = [
        ("killer", "0 10 * * *", sim.job([*[SimulatedCrash()] * 4, "ok"]), FIVE_MINUTES),
        ("other", "1 10 * * *", sim.job(duration=duration), FIVE_MINUTES),
    ]
    sim.initialize(set_)
    for _ in range(3):
        _again(sim, set_, 1)
    assert _outcomes(sim, "killer")[:3] == ["interrupted"] * 3
    _again(sim, set_, 57)
    assert sim.now == utc("10:01:00")


def test_a_suspicious_task_starts_when_the_others_have_ended(simulation: Started) -> None:
    """Without that nobody whose run takes a while would ever get to its end."""
    sim = simulation("10:00:00")
    _killed_four_times(sim, timedelta(seconds=20))
    sim.advance_to("2024-01-01T10:01:19Z", at_least_every=timedelta(seconds=1))
    assert (_outcomes(sim, "other"), _outcomes(sim, "killer")) == (
        ["running"],
        ["interrupted"] * 4,
    )
    sim.advance_to("2024-01-01T10:01:22Z", at_least_every=timedelta(seconds=1))
    assert (_outcomes(sim, "other"), _outcomes(sim, "killer")) == (
        ["succeeded"],
        [*["interrupted"] * 4, "succeeded"],
    )


def test_a_suspicious_task_does_not_wait_for_ever(simulation: Started) -> None:
    sim = simulation("10:00:00")
    _killed_four_times(sim, HOUR)
    sim.advance_to("2024-01-01T10:02:00Z", at_least_every=timedelta(seconds=1))
    assert _outcomes(sim, "other") == ["running"]
    assert _outcomes(sim, "killer") == [*["interrupted"] * 4, "succeeded"]
    waited = (sim.starts("killer")[-1] - utc("10:01:00")).total_seconds()
    assert 30 <= waited <= 32


def test_of_several_the_least_suspicious_clears_itself_first(simulation: Started) -> None:
    sim = simulation("10:00:00")
    killer = sim.job([*[SimulatedCrash()] * 5, "ok"])
    near = sim.job(duration=timedelta(seconds=2))
    set_: list[object] = [
        ("killer", "0 10 * * *", killer, FIVE_MINUTES),
        ("near", "0 10 * * *", near, FIVE_MINUTES),
    ]
    sim.initialize(set_)
    for _ in range(2):
        _again(sim, set_, 1)
    sim.crash()
    for _ in range(2):
        _again(sim, set_, 1)
        sim.advance_to(sim.now + timedelta(seconds=4))
    assert _outcomes(sim, "near")[-1] == "succeeded"
    assert sim.task("near").interruptions == 0
    assert utc("10:00:20") > sim.now
