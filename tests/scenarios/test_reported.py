"""What users of other schedulers report in public, played against this one.

Deploys and restarts (P20 to P28), the lead (P36, P40), and a kill at any moment (P32).
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
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.testing import SimulatedCrash

from .conftest import FIVE_MINUTES, Started, of, utc

HALF_A_DAY = timedelta(hours=12)


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
    assert [event.task_name for event in of(told, events.TaskOrphaned)] == ["x"]


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
    lost = [event.instance for event in of(told, events.LeadershipLost)]
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
    started = of(told, events.TaskRunStarted)
    rows = TaskRun.objects.filter(started_at__isnull=False)
    assert len(started) == rows.count() == 20 * 11
    assert rows.values("instance").distinct().count() == 1
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


@pytest.mark.parametrize("catch_up_window", [None, 0], ids=["catches up", "never catches up"])
@pytest.mark.parametrize("moment", ["before the call", "in the callback", "before the result"])
def test_p32_p102_a_kill_at_any_moment_leaves_a_task_that_runs_again(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, moment: str, catch_up_window: int | None
) -> None:
    sim = simulation("10:00:30")
    outcomes = [SimulatedCrash(), "ok"] if moment == "in the callback" else ["ok"]
    entry = {"name": "t", "cron": "1 * * * *", "callback": sim.job(outcomes), "timezone": "UTC"}
    registrations = [{**entry, "retry_delay": FIVE_MINUTES, "catch_up_window": catch_up_window}]
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
    sim.advance_to("2024-01-01T10:40:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:01:00Z")
    assert [(run.outcome, run.scheduled_for, run.attempt) for run in sim.runs("t")] == [
        ("interrupted", utc("10:01"), 1),
        ("succeeded", utc("10:01"), 2),
        ("succeeded", utc("11:01"), 1),
    ]
