"""A copy of an event with another field is otherwise equal."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from django_declarative_cron.core.events import Facts, TaskEvent, TaskRunStarted, TaskRunWaiting

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "event",
    [
        TaskRunStarted(
            at=NOON,
            task_name="a",
            scheduled_time=NOON,
            actual_time=NOON,
            attempt=3,
            discharged_at=NOON,
            facts=Facts(deployment=uuid4(), source="urn:x"),
        ),
        TaskRunWaiting(at=NOON, task_name="a", scheduled_time=NOON, behind=1, waiting=2),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_copy_of_an_event_equals_the_one_of_replace(event: TaskEvent) -> None:
    before = [getattr(event, each.name) for each in fields(event)]
    told = event.but(run=77)
    assert type(told) is type(event)
    expected = replace(event, run=77)  # type: ignore[call-arg]
    assert [getattr(told, each.name) for each in fields(told)] == [
        getattr(expected, each.name) for each in fields(expected)
    ]
    assert [getattr(event, each.name) for each in fields(event)] == before
