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

from .conftest import HALF_AN_HOUR, HOURLY, MINUTELY, Start, act, task
from .observed import of, runs, starts, utc

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
def pair(start: Start) -> Callable[..., Pair]:
    """Two deployments on clocks of their own, each with one task of the same name."""

    def begin(at: str, outcomes: str = "ok", lasts: timedelta = timedelta(0)) -> Pair:
        names = ("default", "theirs")
        ours, theirs = (
            start(at, task("t", HOURLY, outcomes, lasts), deployment=name) for name in names
        )
        return ours, theirs

    return begin


@pytest.mark.requirement("001 Scheduler Identifier/1", "001 Scheduler Identifier/3")
def test_the_identifier_is_made_once_and_stands_in_every_record(start: Start) -> None:
    failing = task("a", outcomes="fail ok")
    sim = start("10:00", failing)
    identifier = SchedulerState.objects.get().identifier
    sim.advance_to(utc("10:10"))
    sim.initialize([failing, task("b", MINUTELY)])
    sim.stop()
    sim.initialize([task("b")])
    sim.crash()
    sim.initialize([failing])
    sim.initialize([])
    sim.initialize([failing])
    assert SchedulerState.objects.get().identifier == identifier
    assert _identifiers("default") == {identifier}
    for model in (ScheduledTask, TaskRun, SchedulerInstance):
        rows: Any = model._default_manager
        found = set(rows.values_list("scheduler__identifier", flat=True))
        assert found == {identifier}, model


@pytest.mark.requirement("001 Scheduler Identifier/2")
def test_deployments_have_identifiers_leaders_and_sets_of_their_own(
    pair: Callable[..., Pair], told: list[Event]
) -> None:
    sim, _ = pair("10:00")
    ours, theirs = SchedulerState.objects.order_by("deployment")
    assert (ours.deployment, theirs.deployment) == ("default", "theirs")
    assert ours.identifier != theirs.identifier
    assert ours.digest == theirs.digest, "the same list"
    assert ours.leader_id != theirs.leader_id
    assert _identifiers("default") == {ours.identifier}
    assert _identifiers("theirs") == {theirs.identifier}
    sim.initialize([])
    orphaned = of(told, events.TaskOrphaned)
    assert [event.scheduler_identifier for event in orphaned] == [str(ours.identifier)]


ACTS: dict[str, Callable[[Simulation], object]] = {
    "a retry and a day of work": lambda sim: sim.advance_to(utc("14:00")),
    "a stop": lambda sim: sim.stop(),
    "a crash": lambda sim: sim.crash(),
    "a step back": lambda sim: sim.jump_to(utc("04:30")),
    "a leap": lambda sim: sim.jump_to(utc("2024-03-01T04:30")),
    "removal": lambda sim: sim.initialize([]),
    "an override": lambda sim: sim.initialize([task("t", "5 * * * *")]),
    "another task": lambda sim: sim.initialize([task("u")]),
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
    ours, _ = pair("10:00", "fail")
    before, mine = _everything("theirs"), _everything("default")
    ACTS[act](ours)
    assert _everything("theirs") == before
    assert (_everything("default") == mine) is (act == "a mistake"), "the act had an effect"


def test_a_crash_in_one_interrupts_no_run_of_the_other(
    pair: Callable[..., Pair], told: list[Event]
) -> None:
    ours, theirs = pair("10:00", lasts=HALF_AN_HOUR)
    ours.crash()
    theirs.advance_to(utc("10:10"))
    theirs.initialize([task("u")])
    assert (runs(ours, "outcome"), runs(theirs, "outcome")) == (["running"], ["running"])
    ours.initialize([task()])
    assert runs(ours, "outcome") == ["interrupted", "succeeded"]
    assert runs(theirs, "outcome") == ["running"]
    assert len(of(told, events.TaskRunInterrupted)) == 1


def test_acts_reach_the_deployment_of_the_settings_only(
    pair: Callable[..., Pair], settings: Any
) -> None:
    ours, theirs = pair("10:10")
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
    ours, theirs = pair("10:10")
    operator_actions.pause(["t"], act(ours))
    for sim in (ours, theirs):
        sim.initialize([])
        sim.initialize([task()])
        sim.advance_to(utc("11:00"))
    assert (starts(ours), starts(theirs)) == ([], ["11:00"])


def test_a_lost_row_is_missed_however_many_rows_the_others_have(
    start: Start, told: list[Event]
) -> None:
    ours = start("10:10", *map(task, "ab"))
    start("10:10", *map(task, "abcd"), deployment="theirs")
    ScheduledTask.objects.filter(scheduler__deployment="default", name="a").delete()
    before = _everything("theirs")
    ours.advance_to(utc("10:12"))
    assert ours.task("a").registered_at > utc("10:10")
    assert _everything("theirs") == before
    failed = of(told, events.PersistenceFailed)
    assert [event.error.rpartition(": ")[2] for event in failed] == ["missing 'a'"]


def test_a_deployment_may_be_any_text(start: Start) -> None:
    deployments = ["a", "A", " a", "größe", "x" * 255]
    for name in deployments:
        assert starts(start("10:00", task(), deployment=name)) == ["10:00"]
    assert SchedulerState.objects.count() == len(deployments)


def test_two_processes_of_two_deployments_are_no_standbys_of_each_other(
    pair: Callable[..., Pair],
) -> None:
    ours, theirs = pair("10:10")
    ours.crash()
    theirs.advance_to(utc("12:00"))
    assert (starts(ours), starts(theirs)) == ([], ["11:00", "12:00"])
