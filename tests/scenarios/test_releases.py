"""Rolling deploys: which registration set takes the place of which."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron import Scheduler
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import (
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
)
from django_declarative_cron.runtime.scheduler import State
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started

Deploy = Callable[..., None]

OLD, NEW = ["a"], ["a", "b"]


@pytest.fixture
def deploy(settings: Any) -> Deploy:
    """Initialise an instance with the tasks of a release."""

    def begin(sim: Simulation, index: int, tasks: list[str], release: str = "") -> None:
        settings.DECLARATIVE_CRON = {"RELEASE": release}
        sim[index].initialize([(name, "0 * * * *", sim.job(), FIVE_MINUTES) for name in tasks])

    return begin


def _active() -> set[str]:
    return set(ScheduledTask.objects.values_list("name", flat=True))


def _count(told: list[Event], name: str) -> int:
    return [type(event).__name__ for event in told].count(name)


def test_the_newer_set_leads_and_the_older_says_once_that_it_is_superseded(
    simulation: Started, deploy: Deploy, told: list[Event]
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, OLD)
    deploy(sim, 1, NEW)
    sim.advance_to("2024-01-01T13:30:00Z")
    assert len(sim.starts("a")) == len(sim.starts("b")) == 3
    assert _count(told, "SchedulerSuperseded") == 1
    leader = SchedulerState.objects.get().leader
    assert leader is not None
    assert leader.pk == sim[1].scheduler.id  # type: ignore[union-attr]


def test_a_run_of_the_older_set_ends_and_nothing_follows_it_there(
    simulation: Started, deploy: Deploy
) -> None:
    sim = simulation("10:00:00", instances=2)
    slow = sim.job(duration=timedelta(minutes=90))
    sim[0].initialize([("slow", "0 * * * *", slow, FIVE_MINUTES)])
    deploy(sim, 1, NEW)
    sim.advance_to("2024-01-01T12:30:00Z")
    assert [run.outcome for run in sim.runs("slow")] == ["succeeded"]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("older", "newer"), [("1.9", "1.10"), ("9c3d1ab", "04f2e77"), ("2026-11-03", "2026-11-28")]
)
def test_an_older_release_that_restarts_does_not_take_its_set_back(
    simulation: Started, deploy: Deploy, told: list[Event], older: str, newer: str
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, OLD, older)
    sim.advance_to("2024-01-01T10:31:00Z")
    deploy(sim, 1, NEW, newer)
    sim[0].crash()
    before = list(RegistrationSet.objects.values())
    told.clear()
    deploy(sim, 0, OLD, older)
    assert sim[0].scheduler is not None
    assert sim[0].scheduler.state is State.RUNNING
    sim.advance_to("2024-01-01T11:30:00Z")
    assert _active() == {"a", "b"}
    assert list(RegistrationSet.objects.values()) == before
    assert _count(told, "SchedulerSuperseded") == 1
    assert len(sim.starts("b")) == 1
    row = SchedulerInstance.objects.get(pk=sim[0].scheduler.id)
    assert (row.release, row.initialized_at) == (older, None)


@pytest.mark.parametrize(
    ("first", "second", "active"),
    [("2.0", "1.0", {"a", "b"}), ("04f2e77", "9c3d1ab", {"a"})],
    ids=["smaller numbers are older", "without numbers the later one is newer"],
)
def test_of_two_releases_of_which_one_was_never_seen(
    simulation: Started, deploy: Deploy, first: str, second: str, active: set[str]
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, NEW, first)
    deploy(sim, 1, OLD, second)
    assert _active() == active


@pytest.mark.parametrize(("older", "newer"), [("", "2"), ("1", ""), ("2", "2")])
def test_without_a_release_on_both_sides_the_last_one_wins(
    simulation: Started, deploy: Deploy, older: str, newer: str
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, OLD, older)
    deploy(sim, 1, NEW, newer)
    sim[0].crash()
    deploy(sim, 0, OLD, older)
    assert _active() == {"a"}


def test_the_same_set_under_a_newer_release_counts_as_that(
    simulation: Started, deploy: Deploy
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, NEW, "1")
    deploy(sim, 1, NEW, "3")
    assert SchedulerState.objects.get().release == "3"
    sim[0].stop()
    deploy(sim, 0, OLD, "2")
    assert _active() == {"a", "b"}


def test_force_takes_the_set_back(simulation: Started, deploy: Deploy, settings: Any) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, OLD, "1")
    deploy(sim, 1, NEW, "2")
    settings.DECLARATIVE_CRON = {"RELEASE": "1"}
    sim[0].stop()
    forceful = Scheduler(clock=sim.clock, background=False, force=True)
    forceful.initialize([("a", "0 * * * *", sim.job(), FIVE_MINUTES)])
    forceful.stop()
    assert _active() == {"a"}
    assert SchedulerState.objects.get().release == "1"


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_an_older_release_leads_again_when_nobody_holds_the_newer_set(
    simulation: Started, deploy: Deploy, end: str
) -> None:
    sim = simulation("10:30:00", instances=2)
    deploy(sim, 0, OLD, "1")
    deploy(sim, 1, NEW, "2")
    getattr(sim[1], end)()
    sim.advance_to("2024-01-01T11:30:00Z")
    assert _active() == {"a"}
    assert len(sim.starts("a")) == 1


@pytest.mark.beyond_the_theory
def test_silence_alone_lets_nobody_take_his_set_back_before_he_has_watched_it(
    simulation: Started, deploy: Deploy
) -> None:
    sim = simulation("10:30:00", instances=2, lease=timedelta(minutes=4))
    deploy(sim, 0, OLD)
    deploy(sim, 1, NEW)
    # As after an outage of the database in which everybody was silent.
    sim[0].hang()
    sim[1].hang()
    sim.advance_to("2024-01-01T10:40:00Z")
    sim[0].recover()
    sim.poll()
    assert _active() == {"a", "b"}
    sim[1].recover()
    sim.advance_to("2024-01-01T10:50:00Z")
    assert _active() == {"a", "b"}
    sim[1].hang()
    sim.advance_to("2024-01-01T11:00:00Z")
    assert _active() == {"a"}
