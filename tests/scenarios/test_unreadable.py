"""Values that SQLite takes for any column: told, put right from the declaration, nobody stopped."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, models

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.models import (
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.row_repair import mend
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, Started, utc

pytestmark = [
    pytest.mark.skipif(connection.vendor != "sqlite", reason="columns have types"),
    pytest.mark.beyond_the_theory,
]

HOURLY = "0 * * * *"
MODELS: tuple[type[models.Model], ...] = (
    SchedulerState,
    SchedulerInstance,
    ScheduledTask,
    TaskRun,
    TaskOverride,
    RegistrationSet,
)


def _kind(field: models.Field[Any, Any]) -> str:
    read: Any = field.target_field if isinstance(field, models.ForeignKey) else field
    for kind in (models.DateTimeField, models.UUIDField, models.JSONField, models.BooleanField):
        if isinstance(read, kind):
            return kind.__name__
    number = models.IntegerField | models.DurationField
    return "number" if isinstance(read, number) else "text"


WRONG: dict[str, tuple[object, ...]] = {
    "DateTimeField": ("2024-02-30 10:00:00",),
    "UUIDField": ("nobody",),
    "JSONField": ("{broken",),
    "BooleanField": ("maybe",),
    "number": ("abc",),
    "text": (b"\xff",),
}
COLUMNS = [
    (model, field, wrong)
    for model in MODELS
    for field in model._meta.concrete_fields
    if field.name not in ("scheduler", "deployment")
    and not (field.primary_key and _kind(field) == "number")
    and (_kind(field) != "text" or (model is ScheduledTask and field.name != "name"))
    for wrong in WRONG[_kind(field)]
]
OF_TASKS = [each for each in COLUMNS if each[0] is ScheduledTask]


def _name(value: object) -> str:
    if isinstance(value, models.Field):
        return f"{value.model.__name__}.{value.name}"
    return "" if isinstance(value, type) else repr(value)


def damage(model: type[models.Model], field: models.Field[Any, Any], wrong: object) -> None:
    where = " WHERE name = 'a'" if model is ScheduledTask else ""
    with connection.cursor() as cursor:
        # Somebody with another program, who looks at no constraint.
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"UPDATE {model._meta.db_table} SET {field.column} = %s{where}", [wrong])
        cursor.execute("PRAGMA ignore_check_constraints = OFF")


def _begun(simulation: Started) -> tuple[Simulation, list[Any]]:
    sim = simulation("10:00:00")
    registrations = [(name, HOURLY, sim.job(), FIVE_MINUTES) for name in ("a", "b")]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:00:30Z")
    return sim, registrations


def _damaged(told: list[Event]) -> list[str]:
    return [event.task_name for event in told if isinstance(event, events.TaskStateDamaged)]


@pytest.mark.parametrize(("model", "field", "wrong"), OF_TASKS, ids=_name)
def test_a_task_is_rewritten_at_the_start(
    simulation: Started, told: list[Event], model: Any, field: Any, wrong: object
) -> None:
    sim, registrations = _begun(simulation)
    sim.stop()
    damage(model, field, wrong)
    sim.initialize(registrations)
    assert _damaged(told) == ["a"]
    assert (sim.task("a").retry_delay, sim.task("a").cron) == (FIVE_MINUTES, HOURLY)
    assert sim.task("a").digest == sim.task("a").digest.lower()
    sim.advance_to("2024-01-01T11:00:30Z", at_least_every=FIVE_MINUTES)
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "field", "wrong"), COLUMNS, ids=_name)
def test_a_scheduler_outlives_what_is_damaged_while_it_runs(
    simulation: Started, model: Any, field: Any, wrong: object
) -> None:
    sim, _ = _begun(simulation)
    act = operator_actions.Act(author="somebody", at=utc("10:00:40"))
    operator_actions.pause(["b"], act)
    operator_actions.resume(["b"], act)
    damage(model, field, wrong)
    sim.advance_to("2024-01-01T12:00:30Z", at_least_every=FIVE_MINUTES)
    mend("default", "default")  # What only people read of.
    # Of the first run the start itself may be what nobody can read any more.
    assert {utc("11:00"), utc("12:00")} <= set(sim.starts("b"))
    assert utc("12:00") in sim.starts("a")
