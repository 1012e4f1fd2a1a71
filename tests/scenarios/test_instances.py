"""Several instances of one deployment: which one leads, and which registration set is active."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron import Scheduler
from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import (
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.runtime.scheduler import State
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.simulation import Instance

from ..simulation.judging import task_trace
from .conftest import DAILY, HALF_AN_HOUR, HOUR, MINUTELY, Start, entry, scheduler_of, task
from .observed import of, runs, starts, utc


def _seen(sim: Simulation, name: str = "t") -> list[str]:
    """Name the events of a task's trace."""
    return [each["event"] for each in task_trace(sim, name) if each["event"] != "Tick"]


def _leader(sim: Simulation) -> Instance:
    leading = SchedulerState.objects.get().leader_id
    return next(sim[n] for n in range(len(sim)) if scheduler_of(sim, n).id == leading)


def test_a_leader_that_stops_lets_another_lead_while_its_last_run_goes_on(start: Start) -> None:
    quick = task("quick", "5 * * * *")
    sim = start("10:00", task("slow", lasts=HALF_AN_HOUR), quick, instances=2)
    sim[0].stop()
    assert sim.now == utc("10:30")
    assert starts(sim, "quick") == ["10:05"]
    assert runs(sim, "outcome", "slow") == ["succeeded"]


def test_a_takeover_shortly_before_an_occurrence_does_not_delay_it(start: Start) -> None:
    sim = start("10:01", entry("t", "30 59 * * * *"), instances=2)
    sim.advance_to(utc("10:59:29.600"))
    sim[0].stop()
    sim[1].poll()
    sim.advance_to(utc("10:59:35"))
    assert starts(sim) == ["10:59:30"]


def test_p21_an_election_around_the_full_hour_loses_and_doubles_nothing(start: Start) -> None:
    sim = start("10:30", task(), instances=2)
    chance = random.Random(21)
    hours = [utc("00:00") + number * HOUR for number in range(11, 31)]
    for full in hours:
        leaves = full + timedelta(seconds=chance.uniform(-2, 2))
        sim.advance_to(leaves, at_least_every=HALF_AN_HOUR)
        leader = _leader(sim)
        leader.stop()
        sim.advance_to(full + timedelta(seconds=4), at_least_every=HALF_AN_HOUR)
        leader.initialize([task()])
    assert [run.scheduled_for for run in sim.runs("t")] == hours


@pytest.mark.requirement("001 Real-time bounds/4", "002 CRON-S05")
def test_a_standby_that_saw_work_overdue_takes_over_when_the_leader_is_gone(start: Start) -> None:
    sim = start("10:00", task(), instances=2)
    sim.clock.advance(utc("11:00"))
    sim[1].poll()
    sim[1].poll()
    assert starts(sim) == ["10:00"]
    sim[0].crash()
    sim[1].poll()
    assert starts(sim) == ["10:00", "11:00"]


def test_p40_who_does_not_lead_neither_claims_nor_complains(
    start: Start, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        try:
            return execute(sql, *rest)
        except Exception:
            refused.append(sql)
            raise

    sim = start("10:00:30", instances=5)
    with connection.execute_wrapper(note):
        sim.initialize([task(f"t{n:02}", MINUTELY) for n in range(20)])
        sim.advance_to(utc("10:10"))
    assert refused == [], "the log of the server has no error"
    rows = TaskRun.objects.filter(started_at__isnull=False)
    assert len(of(told, events.TaskRunStarted)) == rows.count() == 20 * 11
    assert rows.values("instance").distinct().count() == 1
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


@pytest.mark.requirement("001 Parallel Execution/3", "002 CRON-22")
def test_a_run_stays_with_its_living_process_and_restarts_when_that_crashes(start: Start) -> None:
    sim = start("10:00", task("t", "0,5 10 * * *", lasts=HALF_AN_HOUR), instances=2)
    sim.advance_to(utc("10:10"))
    assert runs(sim, "outcome") == ["running"]
    sim[0].crash()
    sim.advance_to(utc("10:10:02"))
    assert runs(sim, "outcome") == ["interrupted", "running"]
    took_over = ["Crash", "IS", "IEs", "RS"]
    assert _seen(sim) == ["IS", "IEs", "RS", "IS", "IEs", *took_over]


# --- the lease ---


@pytest.mark.beyond_the_theory
def test_a_process_that_hangs_longer_than_its_lease_loses_its_runs_for_good(start: Start) -> None:
    lease = timedelta(minutes=3)
    sim = start("10:00", task("t", DAILY, lasts=2 * HALF_AN_HOUR), instances=2, lease=lease)
    sim.advance_to(utc("10:10"))
    assert runs(sim, "outcome") == ["running"], "who lives keeps its runs under a lease"
    sim[0].hang()
    sim.advance_to(utc("10:20"))
    assert runs(sim, "outcome") == ["interrupted", "running"]
    sim[0].recover()
    sim.advance_to(utc("12:00"))
    assert runs(sim, "outcome") == ["interrupted", "succeeded"]


@pytest.mark.beyond_the_theory
def test_p36_a_leader_that_slept_through_its_lease_writes_nothing_and_says_so_once(
    start: Start, told: list[Event]
) -> None:
    lease = timedelta(minutes=3)
    sim = start("10:00:30", task("t", MINUTELY), instances=2, lease=lease)
    slept = str(scheduler_of(sim).id)
    sim[0].hang()
    sim.advance_to(sim.now + 3 * lease)
    state = SchedulerState.objects.get()
    sim[0].recover()
    woken_at = sim.now
    sim.advance_to(utc("10:20"))
    assert SchedulerState.objects.get().term == state.term
    assert not TaskRun.objects.filter(instance=slept, started_at__gte=woken_at).exists()
    assert [event.instance for event in of(told, events.LeadershipLost)] == [slept]


@pytest.mark.beyond_the_theory
def test_a_storm_of_lost_hosts_does_not_keep_their_runs_from_being_found(start: Start) -> None:
    """Whoever takes over has only just come; the watch is older than any of the watchers."""
    sim = start("10:00", instances=3, lease=timedelta(minutes=6))
    tasks = [task("t", DAILY, lasts=HALF_AN_HOUR)]
    sim[0].initialize(tasks)
    sim[1].initialize(tasks)
    sim.advance_to(utc("10:10"))
    sim[0].hang()
    sim.advance_to(utc("10:14"))
    sim[2].initialize(tasks)
    sim[1].hang()
    sim.advance_to(utc("10:17"))
    assert runs(sim, "outcome") == ["interrupted", "running"]
    sim[0].recover()
    sim[1].recover()
    sim.advance_to(utc("11:00"))
    assert runs(sim, "outcome") == ["interrupted", "succeeded"]


@pytest.mark.beyond_the_theory
def test_an_outage_kills_nobody_but_who_stays_away_for_long_enough_after_it(start: Start) -> None:
    task_ = task("t", DAILY, lasts=HOUR)
    sim = start("10:00", task_, instances=3, lease=timedelta(minutes=6))
    for number in range(3):
        sim[number].hang()
    sim.advance_to(utc("10:20"))
    sim[2].recover()
    sim.advance_to(utc("10:25"))
    sim[0].recover()
    sim.advance_to(utc("10:35"))
    assert runs(sim, "outcome") == ["running"]
    sim[0].hang()
    sim[2].hang()
    sim.advance_to(utc("10:40"))
    sim[2].recover()
    sim.advance_to(utc("10:46"))
    assert runs(sim, "outcome") == ["running"]
    sim.advance_to(utc("10:47"))
    assert runs(sim, "outcome") == ["interrupted", "running"]


# --- what a task sees of it, for the theory ---


def test_a_task_does_not_see_a_crash_that_interrupts_none_of_its_runs(start: Start) -> None:
    sim = start("10:00", task("a", delay=HALF_AN_HOUR), task("b", "9 9 * * *"), instances=2)
    sim[0].crash()
    sim.advance_to(utc("11:00"))
    assert "Crash" not in _seen(sim, "a")
    assert starts(sim, "a") == ["10:00", "11:00"]


def test_a_task_sees_only_the_stop_of_the_last_instance(start: Start) -> None:
    sim = start("10:01:30", task(), instances=2)
    sim[0].stop()
    assert "SS" not in _seen(sim)
    sim[1].stop()
    assert _seen(sim)[-2:] == ["SS", "SE"]


def test_a_task_sees_that_a_superseded_instance_goes_back_to_its_set(start: Start) -> None:
    sim = start("10:01:30", task(), instances=2)
    sim[1].initialize([task("t", "30 * * * *")])
    sim.advance_to(utc("10:20"))
    sim[1].stop()
    sim.advance_to(utc("11:00"))
    assert starts(sim) == ["11:00"]
    assert _seen(sim)[-6:] == ["SS", "SE", "IS", "IEs", "RS", "REs"]


def test_what_the_theory_does_not_know_and_a_lease_that_ends_too_early_are_refused(
    start: Start,
) -> None:
    with pytest.raises(ValueError, match="simulate a single instance"):
        start("10:01:30", task(), instances=2).trace()
    with pytest.raises(ValueError, match="give two minutes"):
        start("10:00", lease=HALF_AN_HOUR / 60)


# --- rolling deploys ---

Deploy = Callable[..., None]

OLD, NEW = ["a"], ["a", "b"]


@pytest.fixture
def deploy(settings: Any) -> Deploy:
    """Initialise an instance with the tasks of a release."""

    def begin(sim: Simulation, index: int, names: list[str], release: str = "") -> None:
        settings.DECLARATIVE_CRON = {"RELEASE": release}
        sim[index].initialize([task(name) for name in names])

    return begin


def _active() -> set[str]:
    return set(ScheduledTask.objects.values_list("name", flat=True))


@pytest.mark.beyond_the_theory
def test_p28_the_last_set_leads_and_what_it_does_not_know_is_not_lost_in_silence(
    start: Start, deploy: Deploy, told: list[Event], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING", "django_declarative_cron")
    sim = start("10:30", instances=2)
    deploy(sim, 0, ["a", "x"])
    deploy(sim, 1, ["a", "b"])
    sim.advance_to(utc("13:30"))
    assert [len(sim.starts(name)) for name in ("a", "b", "x")] == [3, 3, 0]
    assert [(record.levelname, getattr(record, "event", "")) for record in caplog.records] == [
        ("WARNING", "TaskOrphaned"),
        ("WARNING", "SchedulerSuperseded"),
    ]
    assert [event.task_name for event in of(told, events.TaskOrphaned)] == ["x"]
    assert _leader(sim) is sim[1]


def test_a_run_of_the_older_set_ends_and_nothing_follows_it_there(
    start: Start, deploy: Deploy
) -> None:
    sim = start("10:00", instances=2)
    sim[0].initialize([task("slow", lasts=3 * HALF_AN_HOUR)])
    deploy(sim, 1, NEW)
    sim.advance_to(utc("12:30"))
    assert runs(sim, "outcome", "slow") == ["succeeded"]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(("older", "newer"), [("1.9", "1.10"), ("9c3d1ab", "04f2e77")])
def test_an_older_release_that_restarts_does_not_take_its_set_back(
    start: Start, deploy: Deploy, told: list[Event], older: str, newer: str
) -> None:
    sim = start("10:30", instances=2)
    deploy(sim, 0, OLD, older)
    sim.advance_to(utc("10:31"))
    deploy(sim, 1, NEW, newer)
    sim[0].crash()
    before = list(RegistrationSet.objects.values())
    told.clear()
    deploy(sim, 0, OLD, older)
    assert scheduler_of(sim).state is State.RUNNING
    sim.advance_to(utc("11:30"))
    assert _active() == {"a", "b"}
    assert list(RegistrationSet.objects.values()) == before
    assert len(of(told, events.SchedulerSuperseded)) == 1
    assert len(sim.starts("b")) == 1
    row = SchedulerInstance.objects.get(pk=scheduler_of(sim).id)
    assert (row.release, row.initialized_at) == (older, None)


@pytest.mark.parametrize(
    ("first", "second", "active"),
    [("2.0", "1.0", NEW), ("04f2e77", "9c3d1ab", OLD)],
    ids=["smaller numbers are older", "without numbers the later one is newer"],
)
def test_of_two_releases_of_which_one_was_never_seen(
    start: Start, deploy: Deploy, first: str, second: str, active: list[str]
) -> None:
    sim = start("10:30", instances=2)
    deploy(sim, 0, NEW, first)
    deploy(sim, 1, OLD, second)
    assert _active() == set(active)


@pytest.mark.parametrize(("older", "newer"), [("", "2"), ("1", ""), ("2", "2")])
def test_without_a_release_on_both_sides_the_last_one_wins(
    start: Start, deploy: Deploy, older: str, newer: str
) -> None:
    sim = start("10:30", instances=2)
    deploy(sim, 0, OLD, older)
    deploy(sim, 1, NEW, newer)
    sim[0].crash()
    deploy(sim, 0, OLD, older)
    assert _active() == {"a"}


def test_the_same_set_under_a_newer_release_counts_as_that_and_force_takes_it_back(
    start: Start, deploy: Deploy, settings: Any
) -> None:
    sim = start("10:30", instances=2)
    deploy(sim, 0, NEW, "1")
    deploy(sim, 1, NEW, "3")
    assert SchedulerState.objects.get().release == "3"
    sim[0].stop()
    deploy(sim, 0, OLD, "2")
    assert _active() == {"a", "b"}
    settings.DECLARATIVE_CRON = {"RELEASE": "2"}
    sim[0].stop()
    forceful = Scheduler(clock=sim.clock, background=False, force=True)
    forceful.initialize([task("a")])
    forceful.stop()
    assert _active() == {"a"}
    assert SchedulerState.objects.get().release == "2"


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_an_older_release_leads_again_when_nobody_holds_the_newer_set(
    start: Start, deploy: Deploy, end: str
) -> None:
    sim = start("10:30", instances=2)
    deploy(sim, 0, OLD, "1")
    deploy(sim, 1, NEW, "2")
    getattr(sim[1], end)()
    sim.advance_to(utc("11:30"))
    assert _active() == {"a"}
    assert len(sim.starts("a")) == 1


@pytest.mark.beyond_the_theory
def test_silence_alone_lets_nobody_take_his_set_back_before_he_has_watched_it(
    start: Start, deploy: Deploy
) -> None:
    sim = start("10:30", instances=2, lease=timedelta(minutes=4))
    deploy(sim, 0, OLD)
    deploy(sim, 1, NEW)
    # As after an outage of the database in which everybody was silent.
    sim[0].hang()
    sim[1].hang()
    sim.advance_to(utc("10:40"))
    sim[0].recover()
    sim.poll()
    assert _active() == {"a", "b"}
    sim[1].recover()
    sim.advance_to(utc("10:50"))
    assert _active() == {"a", "b"}
    sim[1].hang()
    sim.advance_to(utc("11:00"))
    assert _active() == {"a"}
