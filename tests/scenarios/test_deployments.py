"""Deployments that share a database: one identifier each, and none touches another's rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Model, QuerySet

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import DeclarativeCronError
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, Started, act, of, utc

EVERY_MINUTE = "* * * * *"

Pair = tuple[Simulation, Simulation]


def _everything(deployment: str) -> list[dict[str, Any]]:
    """Every row of a deployment, in every table of the package."""
    found: list[dict[str, Any]] = list(
        SchedulerState.objects.filter(deployment=deployment).values()
    )
    for model in apps.get_app_config("django_declarative_cron").get_models():
        if model is not SchedulerState:
            rows: QuerySet[Model] = model._default_manager.filter(scheduler__deployment=deployment)
            found += rows.order_by("pk").values()
    return found


def _identifiers(deployment: str) -> set[uuid.UUID]:
    tasks = ScheduledTask.objects.filter(scheduler__deployment=deployment)
    return set(tasks.values_list("scheduler_identifier", flat=True))


@pytest.fixture
def pair(simulation: Started) -> Callable[..., Pair]:
    """Two deployments on clocks of their own, each with one task of the same name."""

    def start(at: str, cron: str = HOURLY, **job: Any) -> Pair:
        ours, theirs = simulation(at), simulation(at, deployment="theirs")
        for sim in (ours, theirs):
            sim.initialize([("t", cron, sim.job(**job), FIVE_MINUTES)])
        return ours, theirs

    return start


@pytest.mark.requirement("001 Scheduler Identifier/1", "001 Scheduler Identifier/3")
def test_the_identifier_is_made_once_and_stands_in_every_record(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("a", HOURLY, sim.job(["fail", "ok"]), FIVE_MINUTES)]
    sim.initialize(registrations)
    identifier = SchedulerState.objects.get().identifier
    sim.advance_to("2024-01-01T10:10:00Z")
    sim.initialize([*registrations, ("b", EVERY_MINUTE, sim.job(), FIVE_MINUTES)])
    sim.stop()
    sim.initialize([("b", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.crash()
    sim.initialize(registrations)
    sim.initialize([])
    sim.initialize(registrations)
    assert SchedulerState.objects.get().identifier == identifier
    assert _identifiers("default") == {identifier}
    for model in (ScheduledTask, TaskRun, SchedulerInstance):
        rows: Any = model._default_manager
        found = set(rows.values_list("scheduler__identifier", flat=True))
        assert found == {identifier}, model


@pytest.mark.requirement("001 Scheduler Identifier/2")
def test_what_is_removed_is_told_with_the_identifier(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("a", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.initialize([])
    (orphaned,) = of(told, events.TaskOrphaned)
    assert orphaned.scheduler_identifier == str(SchedulerState.objects.get().identifier)


def test_deployments_have_identifiers_leaders_and_sets_of_their_own(
    pair: Callable[..., Pair],
) -> None:
    pair("10:00:00")
    ours, theirs = SchedulerState.objects.order_by("deployment")
    assert (ours.deployment, theirs.deployment) == ("default", "theirs")
    assert ours.identifier != theirs.identifier
    assert ours.digest == theirs.digest, "the same list"
    assert ours.leader_id != theirs.leader_id
    assert _identifiers("default") == {ours.identifier}
    assert _identifiers("theirs") == {theirs.identifier}


ACTS: dict[str, Callable[[Simulation], object]] = {
    "a retry and a day of work": lambda sim: sim.advance_to("2024-01-01T14:00:00Z"),
    "a stop": lambda sim: sim.stop(),
    "a crash": lambda sim: sim.crash(),
    "a step back": lambda sim: sim.jump_to("2024-01-01T04:30:00Z"),
    "a leap": lambda sim: sim.jump_to("2024-03-01T04:30:00Z"),
    "removal": lambda sim: sim.initialize([]),
    "an override": lambda sim: sim.initialize([("t", "5 * * * *", sim.job(), FIVE_MINUTES)]),
    "another task": lambda sim: sim.initialize([("u", HOURLY, sim.job(), FIVE_MINUTES)]),
    "a mistake": lambda sim: _refused(sim, "no list"),
    "a pause": lambda sim: operator_actions.pause(["t"], act(sim)),
    "a request": lambda sim: (operator_actions.request_run(["t"], act(sim)), sim.poll()),
    "a cleared retry": lambda sim: operator_actions.clear_retry(["t"], act(sim)),
}


def _refused(sim: Simulation, mistake: Any) -> None:
    with pytest.raises(DeclarativeCronError):
        sim.initialize(mistake)


@pytest.mark.requirement("001 Scheduler Identifier/2")
@pytest.mark.beyond_the_theory
@pytest.mark.parametrize("act", ACTS)
def test_nothing_that_happens_in_one_is_seen_in_the_other(
    pair: Callable[..., Pair], act: str
) -> None:
    ours, _ = pair("10:00:00", outcomes=["fail"])
    before, mine = _everything("theirs"), _everything("default")
    ACTS[act](ours)
    assert _everything("theirs") == before
    assert (_everything("default") == mine) is (act == "a mistake"), "the act had an effect"


def test_a_crash_in_one_interrupts_no_run_of_the_other(
    pair: Callable[..., Pair], told: list[Event]
) -> None:
    ours, theirs = pair("10:00:00", duration=timedelta(minutes=30))
    ours.crash()
    theirs.advance_to("2024-01-01T10:10:00Z")
    theirs.initialize([("u", HOURLY, theirs.job(), FIVE_MINUTES)])
    assert [run.outcome for run in (*ours.runs("t"), *theirs.runs("t"))] == ["running"] * 2
    ours.initialize([("t", HOURLY, ours.job(), FIVE_MINUTES)])
    assert [run.outcome for run in ours.runs("t")] == ["interrupted", "succeeded"]
    assert [run.outcome for run in theirs.runs("t")] == ["running"]
    assert len(of(told, events.TaskRunInterrupted)) == 1


def test_acts_reach_the_deployment_of_the_settings_only(
    pair: Callable[..., Pair], settings: Any
) -> None:
    ours, theirs = pair("10:10:00")
    assert operator_actions.pause(["t"], act(ours)) == ["t"]
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "theirs"}
    assert operator_actions.request_run(["t"], act(theirs)) == ["t"]
    settings.DECLARATIVE_CRON = {"DEPLOYMENT": "nobody's"}
    assert operator_actions.pause(["t"], act(theirs)) == []
    assert TaskOverride.objects.filter(scheduler__deployment="default").get().kind == "pause"
    assert TaskOverride.objects.filter(scheduler__deployment="theirs").get().kind == "run"
    assert (ours.task("t").paused_since, theirs.task("t").paused_since) == (utc("10:10"), None)


@pytest.mark.beyond_the_theory
def test_a_pause_survives_removal_in_its_own_deployment_only(pair: Callable[..., Pair]) -> None:
    ours, theirs = pair("10:10:00")
    operator_actions.pause(["t"], act(ours))
    for sim in (ours, theirs):
        sim.initialize([])
        sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
        sim.advance_to("2024-01-01T11:00:00Z")
    assert (len(ours.starts("t")), len(theirs.starts("t"))) == (0, 1)


def test_a_lost_row_is_missed_however_many_rows_the_others_have(
    simulation: Started, told: list[Event]
) -> None:
    ours, theirs = simulation("10:10:00"), simulation("10:10:00", deployment="theirs")
    ours.initialize([(n, HOURLY, ours.job(), FIVE_MINUTES) for n in ("a", "b")])
    theirs.initialize([(n, HOURLY, theirs.job(), FIVE_MINUTES) for n in ("a", "b", "c", "d")])
    ScheduledTask.objects.filter(scheduler__deployment="default", name="a").delete()
    before = _everything("theirs")
    ours.advance_to("2024-01-01T10:12:00Z")
    assert ours.task("a").registered_at > utc("10:10")
    assert _everything("theirs") == before
    failed = of(told, events.PersistenceFailed)
    assert [event.error.rpartition(": ")[2] for event in failed] == ["missing 'a'"]


def test_a_deployment_may_be_any_text(simulation: Started) -> None:
    deployments = ["a", "A", " a", "größe", "x" * 255]
    for name in deployments:
        sim = simulation("10:00:00", deployment=name)
        sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
        assert len(sim.starts("t")) == 1
    assert SchedulerState.objects.count() == len(deployments)


def test_two_processes_of_two_deployments_are_no_standbys_of_each_other(
    pair: Callable[..., Pair],
) -> None:
    ours, theirs = pair("10:10:00")
    ours.crash()
    theirs.advance_to("2024-01-01T12:00:00Z")
    assert ours.starts("t") == []
    assert theirs.starts("t") == [utc("11:00"), utc("12:00")]
