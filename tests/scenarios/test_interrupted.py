"""Interrupted runs (IN): what becomes of a run whose process is gone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import ScheduledTask, SchedulerInstance, TaskRun
from django_declarative_cron.store.status import shown_end, shown_outcome

from .conftest import FIVE_MINUTES, Started, utc

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
    (event,) = [e for e in told if isinstance(e, events.TaskRunInterrupted)]
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
