"""What a deploy that changes the declarations does to what was stored, and to what it does not."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.core.declarations.operating import offset_of
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

HOURLY = "0 * * * *"
QUARTER = timedelta(minutes=15)


def _task(sim: Simulation, **said: Any) -> dict[str, Any]:
    return {
        "name": "t",
        "cron": HOURLY,
        "timezone": "UTC",
        "callback": sim.job(),
        "retry_delay": FIVE_MINUTES,
        **said,
    }


def test_p42_another_pattern_takes_the_place_of_the_old_one(simulation: Started) -> None:
    sim = simulation("10:30:00")
    sim.initialize([_task(sim, cron="25 * * * *")])
    sim.stop()
    sim.advance_to(utc("10:50"))
    sim.initialize([_task(sim, cron="*/15 * * * *")])
    sim.advance_to(utc("11:59"), at_least_every=QUARTER)
    assert sim.starts("t") == [utc(f"11:{minute}") for minute in ("00", "15", "30", "45")]


def test_p42_another_name_is_another_task_and_the_history_of_the_old_one_stays(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00")
    sim.initialize([_task(sim, name="old")])
    sim.advance_to(utc("11:10"), at_least_every=QUARTER)
    sim.stop()
    sim.initialize([_task(sim, name="new")])
    sim.advance_to(utc("12:10"), at_least_every=QUARTER)
    assert (sim.starts("old"), sim.starts("new")) == ([utc("11:00")], [utc("12:00")])
    assert list(ScheduledTask.objects.values_list("name", flat=True)) == ["new"]


def test_p43_a_task_that_returns_is_owed_nothing_and_has_its_old_history(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00")
    sim.initialize([_task(sim)])
    sim.advance_to(utc("11:10"), at_least_every=QUARTER)
    sim.stop()
    sim.initialize([])
    sim.advance_to(utc("14:30"), at_least_every=QUARTER)
    sim.stop()
    sim.initialize([_task(sim)])
    sim.advance_to(utc("15:10"), at_least_every=QUARTER)
    assert sim.starts("t") == [utc("11:00"), utc("15:00")]
    assert {run.outcome for run in sim.runs("t")} == {"succeeded"}, "nothing was missed"


@pytest.mark.beyond_the_theory
def test_p44_what_a_person_decided_outlives_every_restart(simulation: Started) -> None:
    sim = simulation("10:30:00")
    tasks = [_task(sim), _task(sim, name="other")]
    sim.initialize(tasks)
    operator_actions.pause(["t"], Act("an operator", sim.now, "inventory"))
    for hour in (11, 12, 13):
        sim.advance_to(utc(f"{hour}:10"), at_least_every=QUARTER)
        (sim.stop if hour == 12 else sim.crash)()
        sim.initialize(tasks)
    assert sim.starts("t") == []
    assert sim.starts("other") == [utc(f"{hour}:00") for hour in (11, 12, 13)]
    (act,) = TaskOverride.objects.filter(ended_at=None)
    assert (act.kind, act.author, act.created_at, act.note) == (
        *("pause", "an operator"),
        *(utc("10:30"), "inventory"),
    )


@pytest.mark.beyond_the_theory
def test_p49_a_deploy_deletes_the_rows_of_names_that_are_gone_and_nothing_else(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([_task(sim, name=name) for name in ("kept", "changed", "gone", "damaged")])
    for name in ("kept", "changed", "gone"):
        operator_actions.pause([name], Act("an operator", sim.now))
    ScheduledTask.objects.filter(name="damaged").update(cron="garbage")
    runs, acts = _keys(TaskRun), _keys(TaskOverride)
    sim.stop()
    with CaptureQueriesContext(connection) as captured:
        sim.initialize(
            [
                *(_task(sim, name=name) for name in ("kept", "damaged")),
                _task(sim, name="changed", cron="5 * * * *"),
            ]
        )
    deleted = [sql for sql in map(_sql, captured) if re.search(r"\b(DELETE|TRUNCATE)\b", sql)]
    assert len(deleted) == 1
    assert f'DELETE FROM "{ScheduledTask._meta.db_table}"' in deleted[0].replace("`", '"')
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {
        *("kept", "changed", "damaged"),
    }
    assert (runs <= _keys(TaskRun), acts <= _keys(TaskOverride)) == (True, True)
    assert (len(runs), len(acts)) == (4, 3)


def _keys(model: type[TaskRun | TaskOverride]) -> set[int]:
    return set(model.objects.values_list("pk", flat=True))


def _sql(query: dict[str, str]) -> str:
    return query["sql"]


def test_p100_an_identical_set_moves_no_occurrence_that_is_spread(simulation: Started) -> None:
    offset = offset_of("t", timedelta(minutes=1))
    assert timedelta(seconds=2) < offset
    sim = simulation("12:10:00")
    tasks = [_task(sim, cron="20 12 * * *", spread=60, overlap_policy="coalesce")]
    sim.initialize(tasks)
    at = utc("12:20") + offset
    sim.advance_to(at - timedelta(seconds=2), at_least_every=QUARTER)
    sim.initialize(tasks)
    sim.advance_to(at - timedelta(seconds=1), at_least_every=QUARTER)
    sim.stop()
    sim.initialize(tasks)
    assert sim.task("t").next_run_at == at
    sim.advance_to(utc("12:40"), at_least_every=QUARTER)
    assert [(run.scheduled_for, run.started_at) for run in sim.runs("t")] == [(at, at)]
