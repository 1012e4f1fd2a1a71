"""Every database refuses values of another type than the column's, so that each row can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from django_declarative_cron.models import AccessToken, OutboxEvent, TaskOverride, TaskRun

from .conftest import Deployment
from .statements import claim, initialized, record

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="columns have types of their own"),
]

WRONG: dict[str, tuple[object, ...]] = {
    "DateTimeField": ("2024-02-30 10:00:00", "abc", "", 12, "2024-01-01 10:00:00Z", b"2024-01-01"),
    "UUIDField": ("nobody", 7),
    "JSONField": ("{broken",),
    "BooleanField": ("maybe", 7),
    "number": ("abc", 1.5),
    "text": (b"\xff",),
}


def _kind(field: models.Field[Any, Any]) -> str:
    read: Any = field.target_field if isinstance(field, models.ForeignKey) else field
    for kind in (models.DateTimeField, models.UUIDField, models.JSONField, models.BooleanField):
        if isinstance(read, kind):
            return kind.__name__
    return "number" if isinstance(read, models.IntegerField | models.DurationField) else "text"


@pytest.fixture
def made() -> Deployment:
    """Give a deployment with a row in each table."""
    made = initialized(1)
    made.owe_all()
    record(made, claim(made))
    [run] = TaskRun.objects.all()
    common = {"scheduler": run.scheduler, "created_at": datetime.now(UTC)}
    AccessToken.objects.create(**common, name="t", key="k", digest="d")
    TaskOverride.objects.create(**common, task_name="t0", kind=TaskOverride.Kind.RUN)
    OutboxEvent.objects.create(**common, event_id=made.member.instance, type="x", body="{}")
    return made


def _is_refused(field: models.Field[Any, Any], wrong: object) -> bool:
    table = field.model._meta.db_table
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f'UPDATE {table} SET "{field.column}" = %s', [wrong])
            assert cursor.rowcount == 1
    except DatabaseError:
        return True
    return False


def test_no_column_takes_a_value_that_could_not_be_read(made: Deployment) -> None:
    taken = [
        (field.model.__name__, field.name, wrong)
        for model in apps.get_app_config("django_declarative_cron").get_models()
        if model._base_manager.exists()
        for field in model._meta.concrete_fields
        for wrong in WRONG[_kind(field)]
        if not _is_refused(field, wrong)
    ]
    assert taken == []


@pytest.mark.parametrize(
    "instant",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_every_instant_is_taken(made: Deployment, instant: datetime) -> None:
    TaskRun.objects.update(finished_at=instant)
    assert TaskRun.objects.get().finished_at == instant
