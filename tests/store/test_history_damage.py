"""Stored histories that somebody damaged, told and judged: they break the right axiom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from django_declarative_cron.models import (
    RegistrationSet,
    SchedulerInstance,
    TaskRun,
)
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, judged, start, utc

pytestmark = pytest.mark.django_db

LONG = timedelta(minutes=30)


@pytest.fixture
def sim(db: None) -> Simulation:
    """Two tasks and a stop: the runs of t at 11:00, 12:00 and 13:00 take ten minutes."""
    sim = start()
    sim.initialize(
        [
            ("t", HOURLY, sim.job(duration=timedelta(minutes=10)), FIVE_MINUTES),
            ("u", "20 * * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    sim.advance_to("2024-01-01T13:30:00Z")
    sim.stop()
    assert judged(sim).broken == []
    return sim


def _run_at(at: str) -> Any:
    return TaskRun.objects.filter(started_at=utc(at))


def _copy(at: str, started: str, finished: str, **changes: Any) -> None:
    """Write a run that never was, in the order of time."""
    later = list(TaskRun.objects.filter(started_at__gt=utc(started)).order_by("-id"))
    run = _run_at(at).get()
    for each in later:
        TaskRun.objects.filter(pk=each.pk).update(id=each.pk + 100)
    run.pk = max(TaskRun.objects.filter(started_at__lte=utc(started)).values_list("pk", flat=True))
    run.pk += 50
    run.started_at, run.finished_at = utc(started), utc(finished)
    run.scheduled_for = utc(started)
    for field, value in changes.items():
        setattr(run, field, value)
    run.save(force_insert=True)


def _not_registered() -> None:
    registered = RegistrationSet.objects.get()
    registered.tasks = [entry for entry in registered.tasks if entry["name"] == "t"]
    registered.save()


def _not_acceptable() -> None:
    registered = RegistrationSet.objects.get()
    registered.tasks[0]["cron"] = "every morning"
    registered.save()


def _moved(at: str, **to: str) -> Any:
    return lambda: _run_at(at).update(**{field: utc(instant) for field, instant in to.items()})


# What was done to the rows, and the axioms that are broken.
DAMAGES: dict[str, tuple[Callable[[], object], set[tuple[str, str | None]]]] = {
    "a run that nothing asked for": (
        lambda: _copy("11:00", "11:30", "11:31", outcome="failed"), {("S1", "t"), ("L1", "t")}
    ),
    "a second success of one occurrence": (
        lambda: _copy("11:00", "11:30", "11:31"), {("S1", "t"), ("S2", "t")}
    ),
    "a run before its occurrence": (
        _moved("12:00", started_at="11:58"), {("S1", "t"), ("S2", "t"), ("L1", "t")}
    ),
    "a run far before": (
        _moved("13:00", started_at="10:40", finished_at="10:41"),
        {("S1", "t"), ("S2", "t"), ("L1", "t")},
    ),
    "runs that overlap": (_moved("11:00", finished_at="12:05"), {("S1", "t"), ("S4", "t")}),
    "a run that outlives the stop": (_moved("13:00", finished_at="13:40"), {("S3", "t")}),
    "a run after the stop": (
        _moved("13:20", started_at="13:50", finished_at="13:50"), {("S1", "u"), ("L1", "u")}
    ),
    "a task that was not registered": (_not_registered, {("S1", "u"), ("S2", "u")}),
    "a registration that nobody may accept": (
        _not_acceptable, {("S5", None), ("S1", "t"), ("S2", "t")}
    ),
}  # fmt: skip


@pytest.mark.requirement("004 S1", "004 S2", "004 S3", "004 S5", "004 Safety Axioms/1")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_history_breaks_the_right_axiom(sim: Simulation, damage: str) -> None:
    change, axioms = DAMAGES[damage]
    change()
    sim.jump_to("2024-01-01T14:30:00Z")
    assert set(judged(sim).broken) == axioms


def _worker() -> SchedulerInstance:
    """Write the row of a process that calls what is handed to it, and never schedules."""
    row = SchedulerInstance.objects.get()
    row.pk, row.initialized_at = uuid4(), None
    row.save(force_insert=True)
    return row


@pytest.mark.parametrize(
    "fate",
    [
        {"finished_at": utc("13:40")},
        {"finished_at": None, "outcome": "running", "running_slot": "t"},
        {"finished_at": utc("13:40"), "outcome": "interrupted"},
    ],
    ids=["ends later", "goes on", "its worker dies"],
)
def test_a_run_that_a_worker_calls_may_outlive_the_stop(
    sim: Simulation, fate: dict[str, Any]
) -> None:
    _run_at("13:00").update(**fate)
    sim.jump_to("2024-01-01T13:50:00Z")
    if fate["finished_at"] is None or "outcome" not in fate:
        assert judged(sim).broken == [("S3", "t")]
    _run_at("13:00").update(instance=_worker())
    told = judged(sim)
    assert told.broken == []
    later = [] if fate["finished_at"] is None else ["REf t" if "outcome" in fate else "REs t"]
    assert told.events[-2 - len(later) :] == ["SE", *later, "Tick"]


def test_nothing_else_of_its_task_may_start_while_a_worker_calls_it(sim: Simulation) -> None:
    _run_at("11:00").update(finished_at=utc("12:05"), instance=_worker())
    assert judged(sim).broken[0] == ("S1", "t")


def test_a_run_that_no_worker_took_up_ends_with_the_stop_that_lets_go_of_it(
    sim: Simulation,
) -> None:
    gone = {"finished_at": None, "outcome": "running", "running_slot": "t"}
    _run_at("13:00").update(**gone)
    assert judged(sim).broken == [("S3", "t")]
    _run_at("13:00").update(instance=None)
    assert judged(sim).broken == []


def test_a_worker_outlives_the_crash_of_its_scheduler() -> None:
    sim = start()
    registrations = [("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:05:00Z")
    run, worker = _run_at("11:00").get(), _worker()
    _run_at("11:00").update(instance=worker)
    sim.crash()
    sim.jump_to("2024-01-01T11:08:00Z")
    sim.initialize(registrations)
    assert TaskRun.objects.get(pk=run.pk).outcome == "running"
    told = judged(sim)
    assert ("Crash" in told.events, told.broken) == (True, [])
    sim.jump_to("2024-01-01T11:10:00Z")
    TaskRun.objects.filter(pk=run.pk).update(finished_at=sim.now, outcome="succeeded")
    told = judged(sim)
    assert (told.events[-2:], told.broken) == (["REs t", "Tick"], [])


@pytest.mark.requirement("004 L1")
@pytest.mark.parametrize("damage", [{"delete": True}, {"started_at": utc("12:04")}])
def test_an_occurrence_that_is_not_answered_in_time_breaks_l1(
    sim: Simulation, damage: dict[str, Any]
) -> None:
    run = _run_at("12:00")
    if "delete" in damage:
        run.delete()
    else:
        run.update(**damage)
    [violation] = judged(sim).verdict.violations
    assert (violation.axiom, violation.task, violation.at) == ("L1", "t", utc("12:00"))


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interrupted_run_that_is_not_restarted_breaks_l1(interrupted: bool) -> None:
    sim = start()
    registrations = [("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T11:40:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:50:00Z")
    if interrupted:
        TaskRun.objects.filter(reason="orphaned").delete()
    assert judged(sim).broken == ([("L1", "t")] if interrupted else [])
