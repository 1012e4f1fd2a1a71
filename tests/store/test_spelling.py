"""Texts, data and instants come back from many rows as they went."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import database

from .statements import initialized

pytestmark = pytest.mark.django_db

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
    database.upsert("default", tasks, ["broken_reason", "declaration", "boot_at"])
    again = ScheduledTask.objects.order_by("pk")
    assert [(t.broken_reason, t.declaration, t.boot_at) for t in again] == expected
    written: list[Any] = []
    for task in tasks:
        task.pk, task.name = None, f"{task.name}-again"  # type: ignore[assignment]
        written.append(task)
    database.insert("default", written)
    again = ScheduledTask.objects.filter(name__endswith="-again").order_by("pk")
    assert [(t.broken_reason, t.declaration, t.boot_at) for t in again] == expected


@pytest.mark.skipif(connection.vendor != "postgresql", reason="others keep such a text")
def test_a_text_that_the_server_refuses_is_refused_and_not_split() -> None:
    initialized(2)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    tasks[0].broken_reason = "a\0b"
    with pytest.raises((DatabaseError, ValueError)), transaction.atomic():
        database.upsert("default", tasks, ["broken_reason"])
