"""Lifecycle and stop (RE, SP), and what no mistake may touch (VA-22), on a virtual clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import DeclarativeCronError, ScheduleTaskError
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.runtime import engine, scheduler
from django_declarative_cron.runtime.scheduler import Scheduler
from django_declarative_cron.signals import SIGNALS
from django_declarative_cron.store import reconcile
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, Started, of, utc

EVERY_MINUTE = "* * * * *"
LIFE = ("Scheduler", "Polling")


def _life(told: list[Event]) -> list[str]:
    return [type(event).__name__ for event in told if type(event).__name__.startswith(LIFE)]


def _scheduler(sim: Simulation) -> Scheduler:
    scheduler = sim[0].scheduler
    assert scheduler is not None
    return scheduler


def _rows() -> list[dict[str, Any]]:
    return list(ScheduledTask.objects.order_by("name").values())


@pytest.mark.requirement(
    "001 Idempotency Guarantees/1", "001 Idempotency Guarantees/2", "003 Testable Invariants/2"
)
def test_re01_the_same_list_twice_has_no_further_effect(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    registrations = [
        ("a", HOURLY, sim.job(), FIVE_MINUTES),
        ("b", "5 * * * *", sim.job(), FIVE_MINUTES),
    ]
    sim.initialize(registrations)
    before = _rows()
    told.clear()
    sim.initialize(registrations)
    sim.initialize(list(reversed(registrations)))
    assert _rows() == before
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 0)
    assert (
        _life(told)
        == [
            "SchedulerReinitializationStarted",
            "SchedulerReinitializationCompleted",
        ]
        * 2
    )
    sim.advance_to("2024-01-01T11:05:00Z")
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


@pytest.mark.requirement("001 Idempotency Guarantees/3")
def test_re03_a_swap_while_running_starts_the_new_set_and_nothing_of_the_old(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00")
    stays = ("stays", HOURLY, sim.job(), FIVE_MINUTES)
    sim.initialize([stays, ("goes", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.initialize([stays, ("comes", "30 * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [len(sim.starts(n)) for n in ("stays", "goes", "comes")] == [1, 0, 1]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("look", [1, 2], ids=["before a claim", "after a claim"])
def test_re03_a_swap_in_the_middle_of_a_pass_is_not_mistaken_for_a_stranger(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, told: list[Event], look: int
) -> None:
    sim = simulation("10:30:00")
    stays = ("stays", HOURLY, sim.job(), FIVE_MINUTES)
    sim.initialize([stays])
    looks = 0
    real = engine.peek

    def peek(member: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks == look:
            # Another thread swaps the sets while this one looks for the old one.
            _scheduler(sim).initialize([stays, ("comes", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
        return real(member)

    monkeypatch.setattr(engine, "peek", peek)
    sim.advance_to("2024-01-01T11:00:00Z")
    assert looks > look
    assert len(sim.starts("stays")) == 1
    assert sim.starts("comes")[-1] == utc("11:00")
    assert not of(told, events.SchedulerSuperseded)


@pytest.mark.beyond_the_theory
def test_re03_a_swap_in_the_middle_of_a_claim_starts_nothing_under_the_old_set(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00")
    sim.initialize([("goes", HOURLY, sim.job(), FIVE_MINUTES)])

    def swap(**_: object) -> None:
        SIGNALS["poll_started"].disconnect(swap)
        _scheduler(sim).initialize([("comes", HOURLY, sim.job(), FIVE_MINUTES)])

    SIGNALS["poll_started"].connect(swap)
    sim.advance_to("2024-01-01T11:30:00Z")
    assert sim.starts("goes") == []
    (start,) = sim.starts("comes")
    assert start - utc("11:00") < timedelta(seconds=1)


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
def test_re05_va22_a_mistake_in_the_first_set_leaves_nothing_behind(
    simulation: Started, told: list[Event], mistake: Any
) -> None:
    sim = simulation("10:00:00")
    with pytest.raises(DeclarativeCronError):
        sim.initialize(mistake)
    assert _scheduler(sim).state == "Uninitialized"
    assert not any(m.objects.exists() for m in (SchedulerState, SchedulerInstance, ScheduledTask))
    assert _life(told) == ["SchedulerInitializationStarted", "SchedulerInitializationFailed"]
    job = sim.job()
    sim.initialize([("a", HOURLY, job, FIVE_MINUTES)])
    assert _scheduler(sim).state == "Running"
    assert len(job.runs) == 1


@pytest.mark.requirement("001 Error Throwing Guarantees/1")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_va22_a_mistake_in_a_later_set_leaves_the_old_one_running(
    simulation: Started, told: list[Event], mistake: Any
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    before = _rows()
    told.clear()
    with pytest.raises(DeclarativeCronError):
        sim.initialize(mistake)
    assert _scheduler(sim).state == "Running"
    assert _rows() == before
    assert _life(told) == ["SchedulerReinitializationStarted", "SchedulerInitializationFailed"]
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(sim.starts("a")) == 2


def test_re05_after_a_stop_a_failed_initialisation_is_none(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    with pytest.raises(DeclarativeCronError):
        sim.initialize("no list")
    assert _scheduler(sim).state == "Uninitialized"
    assert _scheduler(sim).stop() is True
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(sim.starts("a")) == 2


@pytest.mark.requirement(
    "000 Polling Behavior/5", "001 Scheduler Interface/1", "003 Testable Invariants/1"
)
def test_re06_su11_an_empty_list_and_a_stop(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([])
    sim.advance_to("2024-01-01T10:05:00Z")
    assert (_scheduler(sim).state, _scheduler(sim).polling) == ("Running", "Inactive")
    sim.stop()
    assert _scheduler(sim).state == "Stopped"
    assert _life(told) == [
        "SchedulerInitializationStarted",
        "SchedulerInitializationCompleted",
        "SchedulerStopRequested",
        "SchedulerStopped",
    ]


@pytest.mark.requirement("001 Scheduler State Model/1")
def test_every_state_is_seen_while_it_lasts(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    seen: list[tuple[str, str, str]] = []

    def see(event: Event, **_: object) -> None:
        if type(event).__name__.startswith(LIFE):
            scheduler = _scheduler(sim)
            seen.append((type(event).__name__, scheduler.state, scheduler.polling))

    for signal in SIGNALS.values():
        signal.connect(see)
    try:
        sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
        sim.initialize([])
        sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
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


@pytest.mark.requirement("000 Polling Behavior/4", "000 Polling Behavior/5")
def test_without_tasks_nothing_is_polled_and_a_run_in_flight_still_ends(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    job = sim.job(duration=timedelta(minutes=3))
    sim.initialize([("a", HOURLY, job, FIVE_MINUTES)])
    sim.initialize([])
    told.clear()
    sim.advance_to("2024-01-01T12:30:00Z")
    assert [type(event).__name__ for event in told] == ["TaskRunCompleted"]
    assert sim.runs("a")[0].finished_at == utc("10:03")
    sim.initialize([("a", HOURLY, job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T13:00:00Z")
    assert sim.starts("a") == [utc("10:00"), utc("13:00")]


# --- stop ---


@pytest.mark.requirement("003 Testable Invariants/3")
@pytest.mark.usefixtures("still_clock")
def test_sp01_a_stop_without_an_initialisation(db: None, told: list[Event]) -> None:
    scheduler = Scheduler(background=False)
    assert scheduler.stop() is True
    assert scheduler.state == "Uninitialized"
    assert told == []


def test_sp02_a_second_stop_says_nothing_more(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    scheduler = _scheduler(sim)
    assert scheduler.stop() is True
    told.clear()
    assert scheduler.stop() is True
    assert (scheduler.state, told) == ("Stopped", [])
    sim.stop()


def test_sp05_what_falls_due_during_a_stop_does_not_start(simulation: Started) -> None:
    sim = simulation("09:30:00")
    long = sim.job(duration=timedelta(seconds=2))
    sim.initialize(
        [("long", "59 9 * * *", long, FIVE_MINUTES), ("due", "0 10 * * *", sim.job(), FIVE_MINUTES)]
    )
    long.duration = timedelta(minutes=1, seconds=1)
    sim.advance_to("2024-01-01T09:59:59Z")
    sim.stop()
    assert sim.now == utc("10:00:01")
    assert [run.outcome for run in sim.runs("long")] == ["succeeded"]
    assert sim.runs("due") == []
    sim.initialize(
        [("long", "59 9 * * *", long, FIVE_MINUTES), ("due", "0 10 * * *", sim.job(), FIVE_MINUTES)]
    )
    assert len(sim.starts("due")) == 1, "it is caught up at the next initialisation"


@pytest.mark.requirement("001 Resource Management/2")
def test_sp09_nothing_starts_after_a_stop(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    before = _rows()
    sim.advance_to("2024-01-01T15:00:00Z")
    assert len(sim.starts("a")) == 1
    assert _rows() == before


@pytest.mark.beyond_the_theory
def test_a_job_may_stop_its_simulation(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    registrations = [
        ("busy", EVERY_MINUTE, sim.job(duration=timedelta(minutes=3)), FIVE_MINUTES),
        ("stopping", EVERY_MINUTE, sim.stop, FIVE_MINUTES),
    ]
    sim.initialize(registrations)
    assert _scheduler(sim).state == "Stopping"
    sim.advance_to("2024-01-01T10:10:00Z")
    assert _scheduler(sim).state == "Stopped"
    assert sorted(run.outcome for run in TaskRun.objects.all()) == ["succeeded"] * 2
    assert [each["event"] for each in sim.trace() if each["event"] in ("SS", "SE")] == ["SS", "SE"]
    stopped = next(event for event in told if isinstance(event, events.SchedulerStopped))
    assert stopped.at == utc("10:03")


@pytest.mark.beyond_the_theory
def test_a_job_may_initialise_its_simulation(simulation: Started) -> None:
    sim = simulation("10:00:00")
    other = ("other", EVERY_MINUTE, sim.job(), FIVE_MINUTES)
    sim.initialize([("first", HOURLY, lambda: _scheduler(sim).initialize([other]), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:02:00Z")
    assert [run.outcome for run in sim.runs("first")] == ["succeeded"]
    assert sim.starts("other")[-2:] == [utc("10:01"), utc("10:02")]
    assert [row["name"] for row in _rows()] == ["other"]


@pytest.mark.beyond_the_theory
def test_a_step_back_is_reconsidered_when_the_database_answers_again(
    simulation: Started, monkeypatch: pytest.MonkeyPatch, told: list[Event]
) -> None:
    sim = simulation("12:30:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    with monkeypatch.context() as patched:

        def refuse(*_: object) -> None:
            raise OperationalError("the server is gone")

        patched.setattr(reconcile, "reconsider", refuse)
        sim.jump_to("2024-01-01T08:30:00Z")
    sim.advance_to("2024-01-01T09:00:00Z")
    assert sim.starts("a") == [utc("09:00")]
    assert len(of(told, events.ClockStepped)) == 1


@pytest.mark.requirement("001 Error Taxonomy/8", "001 Error Throwing Guarantees/2")
def test_an_unexpected_error_of_an_initialisation_is_wrapped(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    cause = RuntimeError("a router of the project is broken")

    def broken(*_: object) -> None:
        raise cause

    monkeypatch.setattr(scheduler.reconcile, "reconcile", broken)
    with pytest.raises(ScheduleTaskError) as caught:
        sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    assert caught.value.details["cause"] is caught.value.__cause__ is cause
    told = "Failed to schedule task 'default': a router of the project is broken"
    assert caught.value.message == told
