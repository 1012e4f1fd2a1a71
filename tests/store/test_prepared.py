"""Queries that are worded once read what those read that are worded anew."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from django_declarative_cron.models import ScheduledTask, SchedulerState
from django_declarative_cron.store import claims, guard
from django_declarative_cron.store.database import DatabaseNow

from .conftest import Deployment

pytestmark = pytest.mark.django_db


def _values(row: object) -> dict[str, object]:
    return {key: value for key, value in vars(row).items() if not key.startswith("_")}


def test_what_is_due_is_read_as_django_reads_it() -> None:
    made = Deployment(3)
    made.initialize()
    made.owe_all()
    ScheduledTask.objects.filter(name="t1").update(
        wake_at=made.now - timedelta(hours=1), declaration={"é": [1, None, {"a": "%s"}]}
    )
    ScheduledTask.objects.filter(name="t2").update(wake_at=made.now + timedelta(hours=1))
    with guard.locked(made.member) as held:
        assert held is not None
        for now in (made.now, made.now - timedelta(minutes=1)):
            read = claims._first_due(held, made.member, now)
            expected = ScheduledTask.objects.filter(wake_at__lte=now).order_by("wake_at", "pk")
            by_name = {task.name: task for task in read}
            assert {t.name: _values(t) for t in expected} == {
                name: _values(task) for name, task in by_name.items()
            }
            assert not any(task._state.adding for task in read)
            assert {task._state.db for task in read} == {"default"}


def test_the_deployment_is_read_as_django_reads_it_and_with_the_time() -> None:
    made = Deployment(1)
    made.initialize()
    with guard.locked(made.member) as held, transaction.atomic():
        assert held is not None
        states = SchedulerState.objects.annotate(database_now=DatabaseNow())
        after = states.get(deployment="default")
        assert abs(after.database_now - held.database_now) < timedelta(minutes=5)
        assert held.row == after
        held.row.database_now = after.database_now
        assert _values(held.row) == _values(after)


def test_a_deployment_that_is_not_there_is_not_found() -> None:
    with guard.locked_deployment("default", "nobody's") as held:
        assert held is None
