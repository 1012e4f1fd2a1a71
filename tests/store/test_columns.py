"""What a column takes, and that it comes back as it went."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction

from django_declarative_cron.models import (
    AccessToken,
    OutboxEvent,
    ScheduledTask,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import bulk_update, database

from .conftest import Deployment, claim, initialized, record

pytestmark = pytest.mark.django_db
sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="columns have types of their own")

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


@sqlite
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


@sqlite
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


# --- many rows at once ---


TEXTS = ["", "NULL", 'a"b', "back\\slash", "\\", "{x,y}", "it's 100 %", "two\nlines", "ü€", '","']


@pytest.mark.parametrize("with_none", [False, True])
def test_whatever_stands_in_a_text_is_kept(with_none: bool) -> None:
    initialized(len(TEXTS))
    tasks = list(ScheduledTask.objects.order_by("pk"))
    for number, (task, text) in enumerate(zip(tasks, TEXTS, strict=True)):
        task.broken_reason, task.declaration = text, {"text": text, text: [number, None]}
        task.boot_at = datetime(1 + number * 900, 1, 1, 0, 0, 0, number, UTC)
    if with_none:
        tasks[3].boot_at = None
    expected = [(t.broken_reason, t.declaration, t.boot_at) for t in tasks]
    bulk_update.update("default", tasks, ["broken_reason", "declaration", "boot_at"])
    again = ScheduledTask.objects.order_by("pk")
    assert [(t.broken_reason, t.declaration, t.boot_at) for t in again] == expected
    written: list[Any] = []
    for task in tasks:
        task.pk, task.name = None, f"{task.name}-again"  # type: ignore[assignment]
        written.append(task)
    database.insert("default", written)
    again = ScheduledTask.objects.filter(name__endswith="-again").order_by("pk")
    assert [(t.broken_reason, t.declaration, t.boot_at) for t in again] == expected


def test_extreme_instants_negative_counts_and_quoted_texts_are_kept_in_one_update() -> None:
    texts = ["", "{}", 'a "b", \\c\\\\', "NULL", "it's\n100 % ,", 'é\t\u2028{"}']
    made = initialized(len(texts))
    tasks = list(ScheduledTask.objects.order_by("pk"))
    for number, (task, text) in enumerate(zip(tasks, texts, strict=True)):
        task.description, task.run_count = text, number - 3
        task.wake_at = datetime(1 + 9**number // 8, 2, 28, 23, 59, 59, number, tzinfo=UTC)
        # All rows share these values.
        task.broken_reason, task.boot_at, task.orphaned = "it's 100 %", made.now, True
    names = ["description", "run_count", "wake_at", "broken_reason", "boot_at", "orphaned"]
    expected = [tuple(getattr(task, name) for name in names) for task in tasks]
    bulk_update.update("default", tasks, names)
    assert list(ScheduledTask.objects.order_by("pk").values_list(*names)) == expected


@pytest.mark.skipif(connection.vendor != "postgresql", reason="others keep such a text")
def test_a_text_that_the_server_refuses_is_refused_and_not_split() -> None:
    initialized(2)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    tasks[0].broken_reason = "a\0b"
    with pytest.raises((DatabaseError, ValueError)), transaction.atomic():
        bulk_update.update("default", tasks, ["broken_reason"])


@pytest.mark.parametrize(
    "values", [[1, True, 1.0], [{"n": 1}, {"n": True}], [None, None], [[], []]]
)
def test_data_that_is_equal_and_not_the_same_is_kept_as_it_is(values: list[Any]) -> None:
    initialized(len(values))
    tasks = list(ScheduledTask.objects.order_by("pk"))
    run = {"scheduler": tasks[0].scheduler, "scheduled_for": tasks[0].registered_at}
    runs = [
        TaskRun(**run, task_name=task.name, outcome="succeeded", result=value)
        for task, value in zip(tasks, values, strict=True)
    ]
    database.insert("default", runs)
    kept = TaskRun.objects.order_by("pk").values_list("result", flat=True)
    assert list(map(repr, kept)) == list(map(repr, values))
    TaskRun.objects.update(result="another")
    bulk_update.update("default", runs, ["result"])
    assert list(map(repr, kept.all())) == list(map(repr, values))


def test_a_text_that_is_too_long_is_refused_and_not_cut() -> None:
    initialized(2)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    for number, task in enumerate(tasks):
        task.timezone = f"{number}" * 300
    if connection.vendor == "sqlite":
        bulk_update.update("default", tasks, ["timezone"])
        assert [len(task.timezone) for task in ScheduledTask.objects.all()] == [300, 300]
    else:
        with pytest.raises(DatabaseError), transaction.atomic():
            bulk_update.update("default", tasks, ["timezone"])


def test_a_row_that_is_gone_stays_gone() -> None:
    initialized(2)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    ScheduledTask.objects.filter(pk=tasks[0].pk).delete()
    for number, task in enumerate(tasks):
        task.run_count = number + 7
    if connection.vendor != "mysql":
        bulk_update.update("default", tasks, ["run_count"])
        assert list(ScheduledTask.objects.values_list("run_count", flat=True)) == [8]
