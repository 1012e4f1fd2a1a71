"""What users of other schedulers report in public, played against this one.

Restarts and deploys (P18 to P28), the lead (P36, P40), runs that a crash left open (P54, P62),
and what one broken task does to the others (P58).
"""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.exceptions import CronCalculationError
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.testing import SimulatedCrash, SimulatedFailure

from .conftest import FIVE_MINUTES, Started, utc

HALF_A_DAY = timedelta(hours=12)


def test_p18_deploys_more_often_than_the_interval_do_not_postpone_it(simulation: Started) -> None:
    sim = simulation("10:00:00")
    entry = {"name": "weekly", "cron": "@every 168h", "callback": sim.job(), "timezone": "UTC"}
    start = sim.now
    for number in range(1, 31):
        sim.initialize([entry])
        sim.advance_to(start + number * HALF_A_DAY, at_least_every=HALF_A_DAY)
        sim.stop()
    days = [(at - start) / timedelta(days=1) for at in sim.starts("weekly")]
    assert days == [7, 14]


def test_p20_a_deploy_at_noon_does_not_lose_the_noon_run(simulation: Started) -> None:
    sim = simulation("11:30:30")
    registrations = [("t", "0 12 * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:59:59Z")
    sim.stop()
    sim.clock.advance(utc("12:00:07"))
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T12:30:00Z")
    runs = [(run.scheduled_for, run.started_at, run.outcome) for run in sim.runs("t")]
    assert runs == [(utc("12:00"), utc("12:00:07"), "succeeded")]


def test_p21_an_election_around_the_full_hour_loses_and_doubles_nothing(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00", instances=2)
    registrations = [("t", "0 * * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    chance = random.Random(21)
    for hour in range(11, 31):
        full = utc("00:00") + timedelta(hours=hour)
        leaves = full + timedelta(seconds=chance.uniform(-2, 2))
        sim.advance_to(leaves, at_least_every=timedelta(minutes=30))
        leader = next(
            each
            for each in (sim[0], sim[1])
            if each.scheduler and each.scheduler.id == SchedulerState.objects.get().leader_id
        )
        leader.stop()
        sim.advance_to(full + timedelta(seconds=4), at_least_every=timedelta(minutes=30))
        leader.initialize(registrations)
    slots = [run.scheduled_for for run in sim.runs("t")]
    assert slots == [utc("00:00") + timedelta(hours=hour) for hour in range(11, 31)]


def test_p22_a_month_of_missed_seconds_is_one_run_and_one_row(simulation: Started) -> None:
    sim = simulation("2024-01-01T10:00:00")
    entry = {"name": "t", "cron": "* * * * * *", "callback": sim.job(), "timezone": "UTC"}
    sim.initialize([entry])
    sim.stop()
    sim.clock.advance(utc("2024-01-31T10:00:00"))
    began = time.process_time()
    sim.initialize([entry])
    took = time.process_time() - began
    missed = [(run.outcome, run.count) for run in sim.runs("t") if run.outcome == "missed"]
    assert missed == [("missed", 30 * 86_400 - 1)]
    assert sim.starts("t") == [utc("10:00:00"), utc("2024-01-31T10:00:00")]
    sim.advance_to(utc("2024-01-31T10:00:02"))
    assert sim.starts("t")[2:] == [utc("2024-01-31T10:00:01"), utc("2024-01-31T10:00:02")]
    # Walking through the seconds would take ten times as long.
    assert took < 2


def test_p25_a_run_knows_which_occurrence_it_is_for_in_each_attempt(simulation: Started) -> None:
    sim = simulation("10:59:30")
    seen: list[Run] = []

    def report(run: Run) -> None:
        seen.append(run)
        if run.attempt < 3:
            raise SimulatedFailure("the bank is closed")

    entry = {"name": "report", "cron": "0 12 * * *", "callback": report}
    sim.initialize([{**entry, "timezone": "Europe/Berlin", "retry_delay": FIVE_MINUTES}])
    sim.clock.advance(utc("11:00:45"))
    sim.advance_to("2024-01-01T11:12:00Z")
    assert [(r.attempt, r.reason, r.started_at.replace(microsecond=0)) for r in seen] == [
        (1, "due", utc("11:00:45")),
        (2, "retry", utc("11:05:45")),
        (3, "retry", utc("11:10:45")),
    ]
    assert {(run.task_name, run.scheduled_for, run.timezone) for run in seen} == {
        ("report", utc("11:00"), "Europe/Berlin")
    }


@pytest.mark.beyond_the_theory
def test_p28_a_task_that_the_leader_s_release_does_not_know_is_not_lost_in_silence(
    simulation: Started, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    sim = simulation("10:30:00", instances=2)
    caplog.set_level("WARNING", "django_declarative_cron")
    both = [(name, "0 * * * *", sim.job(), FIVE_MINUTES) for name in ("a", "x")]
    sim[0].initialize(both)
    sim[1].initialize(both[:1])
    sim.advance_to("2024-01-01T11:30:00Z")
    assert (len(sim.starts("a")), len(sim.starts("x"))) == (1, 0)
    assert [(record.levelname, getattr(record, "event", "")) for record in caplog.records] == [
        ("WARNING", "TaskOrphaned"),
        ("WARNING", "SchedulerSuperseded"),
    ]
    assert [e.task_name for e in told if isinstance(e, events.TaskOrphaned)] == ["x"]


@pytest.mark.beyond_the_theory
def test_p58_three_broken_tasks_of_a_hundred_hold_up_no_other(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:59:00")
    sim.initialize([(f"t{n:03}", "0 * * * *", sim.job(), FIVE_MINUTES) for n in range(100)])
    broken = {"t050", "t051", "t052"}
    assert sim[0].scheduler is not None
    schedules = [d.schedule for d in sim[0].scheduler.declarations if d.name in broken]
    real = Schedule.latest_at_or_before

    def answer(self: Schedule, instant: datetime) -> datetime | None:
        if any(self is each for each in schedules):
            raise CronCalculationError(self.expression.text, str(instant), OSError("gone"))
        return real(self, instant)

    monkeypatch.setattr(Schedule, "latest_at_or_before", answer)
    sim.advance_to("2024-01-01T11:00:00Z")
    started = TaskRun.objects.filter(started_at=utc("11:00")).values_list("task_name", flat=True)
    assert len(started) == 97 and not broken & set(started)
    reasons = ScheduledTask.objects.exclude(broken_reason="").values_list("name", "broken_reason")
    why = "CronCalculationError: Failed to calculate next occurrence: gone"
    assert dict(reasons) == dict.fromkeys(broken, why)


def test_p27_a_loop_that_stalled_for_half_a_minute_starts_what_fell_due(
    simulation: Started,
) -> None:
    sim = simulation("10:00:30")
    sim.initialize([("t", "1 * * * *", sim.job(), FIVE_MINUTES)])
    sim.clock.advance(utc("10:01:30"))
    sim.poll()
    assert [(r.scheduled_for, r.started_at) for r in sim.runs("t")] == [
        (utc("10:01"), utc("10:01:30"))
    ]


@pytest.mark.beyond_the_theory
def test_a_pass_that_was_held_up_dates_no_start_before_an_end_that_came_meanwhile(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:30")
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    assert sim[0].scheduler is not None
    engine = sim[0].scheduler._engine

    def halted(now: datetime) -> None:
        monkeypatch.undo()
        sim.clock.advance(now + timedelta(seconds=40))
        # As a worker of an engine writes it.
        ended = now + timedelta(seconds=20)
        TaskRun.objects.update(finished_at=ended)
        ScheduledTask.objects.update(freed_at=ended)

    monkeypatch.setattr(engine, "_record_results", halted)
    sim.advance_to("2024-01-01T10:02:30Z")
    before, after = TaskRun.objects.order_by("id")[:2]
    assert before.finished_at == utc("10:01:20")
    assert after.started_at == utc("10:01:40")
    assert after.scheduled_for == utc("10:01")


@pytest.mark.beyond_the_theory
def test_p36_a_leader_that_slept_through_its_lease_writes_nothing_and_says_so_once(
    simulation: Started, told: list[Event]
) -> None:
    lease = timedelta(minutes=3)
    sim = simulation("10:00:30", instances=2, lease=lease)
    sim.initialize([("t", "* * * * *", sim.job(), FIVE_MINUTES)])
    slept = str(sim[0].scheduler.id) if sim[0].scheduler else ""
    sim[0].hang()
    sim.advance_to(utc("10:00:30") + 3 * lease)
    state = SchedulerState.objects.get()
    sim[0].recover()
    woken_at = sim.now
    sim.advance_to("2024-01-01T10:20:00Z")
    assert SchedulerState.objects.get().term == state.term
    written = TaskRun.objects.filter(instance=slept, started_at__gte=woken_at)
    assert not written.exists()
    lost = [e.instance for e in told if isinstance(e, events.LeadershipLost)]
    assert lost == [slept]


def test_p40_who_does_not_lead_neither_claims_nor_complains(
    simulation: Started, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        try:
            return execute(sql, *rest)
        except Exception:
            refused.append(sql)
            raise

    sim = simulation("10:00:30", instances=5)
    with connection.execute_wrapper(note):
        sim.initialize([(f"t{n:02}", "* * * * *", sim.job(), FIVE_MINUTES) for n in range(20)])
        sim.advance_to("2024-01-01T10:10:00Z")
    assert refused == [], "the log of the server has no error"
    started = [e for e in told if isinstance(e, events.TaskRunStarted)]
    rows = TaskRun.objects.filter(started_at__isnull=False)
    assert len(started) == rows.count() == 20 * 11
    assert rows.values("instance").distinct().count() == 1
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


@pytest.mark.parametrize("policy", ["skip", "coalesce"])
def test_p54_p62_a_run_that_a_kill_left_open_blocks_nothing(
    simulation: Started, policy: str
) -> None:
    sim = simulation("10:00:00")
    entry: dict[str, Any] = {
        "name": "t",
        "cron": "0 * * * *",
        "timezone": "UTC",
        "callback": sim.job(duration=timedelta(minutes=10)),
        "overlap_policy": policy,
        "retry_delay": FIVE_MINUTES,
    }
    sim.initialize([entry])
    sim.advance_to("2024-01-01T10:05:00Z")
    sim.crash()
    sim.advance_to("2024-01-01T10:06:00Z")
    sim.initialize([entry])
    sim.advance_to("2024-01-01T11:30:00Z")
    assert [(run.outcome, run.started_at) for run in sim.runs("t")] == [
        ("interrupted", utc("10:00")),
        ("succeeded", utc("10:06")),
        ("succeeded", utc("11:00")),
    ]


@pytest.mark.parametrize("moment", ["before the call", "in the callback", "before the result"])
def test_p32_a_kill_at_any_moment_leaves_a_task_that_runs_again(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    sim = simulation("10:00:30")
    outcomes = [SimulatedCrash(), "ok"] if moment == "in the callback" else ["ok"]
    registrations = [("t", "1 * * * *", sim.job(outcomes), FIVE_MINUTES)]
    sim.initialize(registrations)
    place = {
        "before the call": "runtime.executor.Executor.call",
        "before the result": "store.results._record",
    }

    def gone(*_: object) -> None:
        raise SimulatedCrash

    with monkeypatch.context() as patch:
        if moment in place:
            patch.setattr(f"django_declarative_cron.{place[moment]}", gone)
        sim.advance_to("2024-01-01T10:01:00Z")
    assert sim[0].scheduler is None
    sim.advance_to("2024-01-01T10:02:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:01:00Z")
    assert [(run.outcome, run.scheduled_for, run.attempt) for run in sim.runs("t")] == [
        ("interrupted", utc("10:01"), 1),
        ("succeeded", utc("10:01"), 2),
        ("succeeded", utc("11:01"), 1),
    ]
