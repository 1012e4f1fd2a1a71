"""Lifecycle and stop (RE, SP), and what no mistake may touch (VA-22)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import DeclarativeCronError
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.runtime import engine
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.signals import SIGNALS

from .conftest import FIVE_MINUTES, HOURLY, MINUTELY, SECOND, Start, job, scheduler_of, task
from .observed import of, runs, starts, utc

LIFE = ("Scheduler", "Polling")


def _life(told: list[Event]) -> list[str]:
    return [type(event).__name__ for event in told if type(event).__name__.startswith(LIFE)]


def _rows() -> list[dict[str, Any]]:
    return list(ScheduledTask.objects.order_by("name").values())


# --- initialise, and initialise again ---


@pytest.mark.requirement(
    "001 Idempotency Guarantees/1", "001 Idempotency Guarantees/2", "003 Testable Invariants/2"
)
def test_re01_the_same_list_twice_has_no_further_effect(start: Start, told: list[Event]) -> None:
    tasks = [task("a"), task("b", "5 * * * *")]
    sim = start("10:00", *tasks)
    before = _rows()
    told.clear()
    sim.initialize(tasks)
    sim.initialize(tasks[::-1])
    assert _rows() == before
    again = ["SchedulerReinitializationStarted", "SchedulerReinitializationCompleted"]
    assert _life(told) == again * 2
    sim.advance_to(utc("11:05"))
    assert (starts(sim, "a"), starts(sim, "b")) == (["10:00", "11:00"], ["10:05", "11:05"])


@pytest.mark.requirement("001 Idempotency Guarantees/3")
def test_re03_a_swap_while_running_starts_the_new_set_and_nothing_of_the_old(start: Start) -> None:
    sim = start("10:30", task("stays"), task("goes"))
    sim.initialize([task("stays"), task("comes", "30 * * * *")])
    sim.advance_to(utc("11:00"))
    assert [len(sim.starts(name)) for name in ("stays", "goes", "comes")] == [1, 0, 1]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("look", [1, 2], ids=["before a claim", "after a claim"])
def test_re03_a_swap_in_the_middle_of_a_pass_is_not_mistaken_for_a_stranger(
    start: Start, monkeypatch: pytest.MonkeyPatch, told: list[Event], look: int
) -> None:
    sim = start("10:30", task("stays"))
    looks = 0
    real = engine.peek

    def peek(member: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == look:
            # Another thread swaps the sets while this one looks for the old one.
            scheduler_of(sim).initialize([task("stays"), task("comes", MINUTELY)])
        return real(member)

    monkeypatch.setattr(engine, "peek", peek)
    sim.advance_to(utc("11:00"))
    assert looks > look
    assert starts(sim, "stays") == ["11:00"]
    assert starts(sim, "comes")[-1] == "11:00"
    assert not of(told, events.SchedulerSuperseded)


@pytest.mark.beyond_the_theory
def test_re03_a_swap_in_the_middle_of_a_claim_starts_nothing_under_the_old_set(
    start: Start,
) -> None:
    sim = start("10:30", task("goes"))

    def swap(**_: object) -> None:
        SIGNALS["poll_started"].disconnect(swap)
        scheduler_of(sim).initialize([task("comes")])

    SIGNALS["poll_started"].connect(swap)
    sim.advance_to(utc("11:30"))
    assert sim.starts("goes") == []
    (started,) = sim.starts("comes")
    assert started - utc("11:00") < SECOND


MISTAKES = [
    "no list",
    [None],
    [("", HOURLY, print, FIVE_MINUTES)],
    [("b", "61 * * * *", print, FIVE_MINUTES)],
    [("b", HOURLY, print, timedelta(seconds=-1))],
    [("b", HOURLY, "no.such.module", FIVE_MINUTES)],
    [("b", HOURLY, print, FIVE_MINUTES)] * 2,
]


@pytest.mark.requirement(
    "001 Error Throwing Guarantees/1", "003 Testable Invariants/12", "004 Safety Axioms/4"
)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_re05_va22_a_mistake_leaves_nothing_behind_and_the_old_set_running(
    start: Start, told: list[Event], mistake: Any
) -> None:
    sim = start("10:00")
    with pytest.raises(DeclarativeCronError):
        sim.initialize(mistake)
    assert scheduler_of(sim).state == "Uninitialized"
    assert not any(m.objects.exists() for m in (SchedulerState, SchedulerInstance, ScheduledTask))
    assert _life(told) == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    sim.initialize([task("a")])
    before = _rows()
    told.clear()
    with pytest.raises(DeclarativeCronError):
        sim.initialize(mistake)
    assert scheduler_of(sim).state == "Running"
    assert _rows() == before
    assert _life(told) == ["SchedulerReinitializationStarted", "SchedulerInitializationFailed"]
    sim.advance_to(utc("11:00"))
    assert starts(sim, "a") == ["10:00", "11:00"]


def test_re05_after_a_stop_a_failed_initialisation_is_none(start: Start) -> None:
    sim = start("10:00", task("a"))
    sim.stop()
    with pytest.raises(DeclarativeCronError):
        sim.initialize("no list")
    assert scheduler_of(sim).state == "Uninitialized"
    assert scheduler_of(sim).stop() is True
    sim.initialize([task("a")])
    sim.advance_to(utc("11:00"))
    assert starts(sim, "a") == ["10:00", "11:00"]


# --- the states ---


@pytest.mark.requirement("001 Scheduler State Model/1", "000 Polling Behavior/5")
def test_every_state_is_seen_while_it_lasts(start: Start) -> None:
    sim = start("10:00")
    seen: list[tuple[str, str, str]] = []

    def see(event: Event, **_: object) -> None:
        if type(event).__name__.startswith(LIFE):
            scheduler = scheduler_of(sim)
            seen.append((type(event).__name__, scheduler.state, scheduler.polling))

    for signal in SIGNALS.values():
        signal.connect(see)
    try:
        sim.initialize([task("a")])
        sim.initialize([])
        sim.initialize([task("a")])
        sim.stop()
    finally:
        for signal in SIGNALS.values():
            signal.disconnect(see)
    again = ("SchedulerReinitializationStarted", "Reinitializing")
    done = ("SchedulerReinitializationCompleted", "Running")
    assert seen == [
        ("SchedulerInitializationStarted", "Initializing", "Inactive"),
        ("SchedulerInitializationCompleted", "Running", "Inactive"),
        ("PollingStarted", "Running", "Active"),
        (*again, "Active"),
        (*done, "Active"),
        ("PollingStopped", "Running", "Inactive"),
        (*again, "Inactive"),
        (*done, "Inactive"),
        ("PollingStarted", "Running", "Active"),
        ("SchedulerStopRequested", "Stopping", "Stopping"),
        ("PollingStopRequested", "Stopping", "Stopping"),
        ("PollingStopped", "Stopped", "Inactive"),
        ("SchedulerStopped", "Stopped", "Inactive"),
    ]


@pytest.mark.requirement("001 Scheduler Interface/1", "003 Testable Invariants/1")
def test_re06_su11_an_empty_list_and_a_stop(start: Start, told: list[Event]) -> None:
    sim = start("10:00")
    sim.initialize([])
    sim.advance_to(utc("10:05"))
    assert (scheduler_of(sim).state, scheduler_of(sim).polling) == ("Running", "Inactive")
    sim.stop()
    assert _life(told) == [
        "SchedulerInitializationStarted",
        "SchedulerInitializationCompleted",
        "SchedulerStopRequested",
        "SchedulerStopped",
    ]


@pytest.mark.requirement("000 Polling Behavior/4", "000 Polling Behavior/5")
def test_without_tasks_nothing_is_polled_and_a_run_in_flight_still_ends(
    start: Start, told: list[Event]
) -> None:
    long = task("a", lasts=timedelta(minutes=3))
    sim = start("10:00", long)
    sim.initialize([])
    told.clear()
    sim.advance_to(utc("12:30"))
    assert [type(event).__name__ for event in told] == ["TaskRunCompleted"]
    assert runs(sim, "finished_at", "a") == ["10:03"]
    sim.initialize([long])
    sim.advance_to(utc("13:00"))
    assert starts(sim, "a") == ["10:00", "13:00"]


# --- stop ---


@pytest.mark.requirement("003 Testable Invariants/3")
@pytest.mark.usefixtures("still_clock")
def test_sp01_a_stop_without_an_initialisation(db: None, told: list[Event]) -> None:
    scheduler = Scheduler(background=False)
    assert scheduler.stop() is True
    assert (scheduler.state, told) == ("Uninitialized", [])


@pytest.mark.requirement("001 Resource Management/2")
def test_sp02_sp09_nothing_starts_after_a_stop_and_a_second_one_says_nothing_more(
    start: Start, told: list[Event]
) -> None:
    sim = start("10:00", task("a"))
    scheduler = scheduler_of(sim)
    assert scheduler.stop() is True
    told.clear()
    before = _rows()
    assert scheduler.stop() is True
    assert (scheduler.state, told) == ("Stopped", [])
    sim.stop()
    sim.advance_to(utc("15:00"))
    assert starts(sim, "a") == ["10:00"]
    assert _rows() == before


def test_sp05_what_falls_due_during_a_stop_starts_at_the_next_initialisation(start: Start) -> None:
    tasks = [task("long", "59 9 * * *", lasts=61 * SECOND), task("due", "0 10 * * *")]
    sim = start("09:30", *tasks)
    sim.advance_to(utc("09:59:59"))
    sim.stop()
    assert sim.now == utc("10:00:01")
    assert runs(sim, "outcome", "long") == ["succeeded"]
    assert sim.runs("due") == []
    sim.initialize(tasks)
    assert starts(sim, "due") == ["10:00:01"]


@pytest.mark.beyond_the_theory
def test_a_job_may_stop_its_simulation(start: Start, told: list[Event]) -> None:
    sim = start("10:00")
    busy = task("busy", MINUTELY, job(lasts=timedelta(minutes=3)))
    sim.initialize([busy, ("stopping", MINUTELY, sim.stop, FIVE_MINUTES)])
    assert scheduler_of(sim).state == "Stopping"
    sim.advance_to(utc("10:10"))
    assert scheduler_of(sim).state == "Stopped"
    assert [run.outcome for run in TaskRun.objects.all()] == ["succeeded"] * 2
    assert [each["event"] for each in sim.trace() if each["event"] in ("SS", "SE")] == ["SS", "SE"]
    assert [event.at for event in of(told, events.SchedulerStopped)] == [utc("10:03")]


@pytest.mark.beyond_the_theory
def test_a_job_may_initialise_its_simulation(start: Start) -> None:
    sim = start("10:00")
    other = task("other", MINUTELY)
    sim.initialize([("first", HOURLY, lambda: scheduler_of(sim).initialize([other]), FIVE_MINUTES)])
    sim.advance_to(utc("10:02"))
    assert runs(sim, "outcome", "first") == ["succeeded"]
    assert starts(sim, "other")[-2:] == ["10:01", "10:02"]
    assert [row["name"] for row in _rows()] == ["other"]
