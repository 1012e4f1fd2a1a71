"""Queries that are worded once read what those read that are worded anew."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import fields
from datetime import UTC, timedelta

import pytest
from django.db import connection, transaction

from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.state import TaskState
from django_declarative_cron.models import Outcome, ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.store import bulk, claims, columns, guard, prepared, results, rows
from django_declarative_cron.store.database import DatabaseNow
from django_declarative_cron.store.endings import Result
from django_declarative_cron.store.made import made
from django_declarative_cron.store.prepared import Prepared

from .conftest import Deployment
from .statements import claim, record

pytestmark = pytest.mark.django_db


def _values(row: object) -> dict[str, object]:
    if isinstance(row, ScheduledTask):
        # It may be a text until it is asked for.
        assert isinstance(row.declaration, dict)
    return {key: value for key, value in vars(row).items() if not key.startswith("_")}


def test_a_text_is_carried_along_until_somebody_asks_for_what_it_says() -> None:
    row = made(ScheduledTask, {"id": 1, "_declaration_unread": '{"a": [1, null]}'}, "default")
    alike = [copy.copy(row), pickle.loads(pickle.dumps(row)), row]
    for each in alike:
        assert each.declaration == {"a": [1, None]}
        assert each.declaration is each.declaration
        assert "_declaration_unread" not in vars(each)
    row = made(ScheduledTask, {"_declaration_unread": '{"a": 1}'}, "default")
    row.declaration = {"b": 2}
    assert row.declaration == {"b": 2}
    assert columns.texts_of([row], ScheduledTask._meta.get_field("declaration")) == ['{"b": 2}']


def test_a_text_that_means_nothing_says_so_whenever_somebody_asks() -> None:
    row = made(ScheduledTask, {"id": 1, "_declaration_unread": "{"}, "default")
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            assert row.declaration


def test_instants_are_utc_in_whatever_zone_the_session_is() -> None:
    made = Deployment(1)
    made.initialize()
    states: Prepared[SchedulerState] = Prepared(SchedulerState)
    as_django = SchedulerState.objects.get()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL TimeZone TO 'Asia/Kolkata'")
    [row] = states.fetch(connection.alias, SchedulerState.objects.all, [])
    assert row.initialized_at == as_django.initialized_at
    assert row.initialized_at is not None
    assert row.initialized_at.tzinfo is UTC


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
    with guard.locked_deployment("default", "nobody's", timedelta(seconds=15)) as held:
        assert held is None


def test_what_has_ended_is_read_as_django_reads_it() -> None:
    made = Deployment(4)
    made.initialize()
    made.owe_all()
    claimed = claims.claim_due(made.member, made.by_name, made.now, reaping=False)
    ended = [Result(c.run, c.task_name, made.now, succeeded=True) for c in claimed.claims[:3]]
    TaskRun.objects.filter(pk=ended[0].run).update(outcome=Outcome.INTERRUPTED)
    ScheduledTask.objects.filter(name=ended[1].task_name).delete()
    TaskRun.objects.filter(pk=ended[2].run).update(detail={"'": ["%s", 1]}, log="it's\n100 %")
    with guard.locked(made.member) as held:
        assert held is not None
        free, left_out = results._free(held, made.member, ended)
    assert left_out == []
    runs = TaskRun.objects.filter(pk__in=[result.run for result in ended[1:]]).order_by("pk")
    assert [_values(run) for run in free.runs] == [_values(run) for run in runs]
    tasks = ScheduledTask.objects.filter(name__in=[each.task_name for each in ended])
    assert {_values(task)["name"]: _values(task) for task in free.tasks} == {
        task.name: _values(task) for task in tasks
    }


def test_a_task_is_found_by_its_key_and_by_its_name_where_that_is_unknown_or_another() -> None:
    made = Deployment(4)
    made.initialize()
    keys = dict(ScheduledTask.objects.values_list("name", "pk"))
    asked = {"t0": keys["t0"], "t1": None, "t2": keys["t3"], "t3": max(keys.values()) + 1}
    ended = [
        Result(number, name, made.now, succeeded=True, task_key=key)
        for number, (name, key) in enumerate(asked.items(), 1)
    ]
    for some in (ended, ended[:1], ended[1:2], ended[2:3]):
        with guard.locked(made.member) as held:
            assert held is not None
            found, busy = results._lock_tasks(held, made.member, some)
        assert {task.name: task.pk for task in found} == {
            result.task_name: keys[result.task_name] for result in some
        }
        assert busy == set()


def test_what_was_got_ready_is_asked_without_another_word(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Deployment(2)
    made.initialize()
    made.owe_all()
    monkeypatch.setattr(claims, "_tasks", Prepared(ScheduledTask))
    monkeypatch.setattr(results, "_tasks", Prepared(ScheduledTask))
    monkeypatch.setattr(results, "_runs", Prepared(TaskRun))
    claims.get_ready(made.member, made.now)
    results.get_ready("default")
    if connection.vendor != "mysql":
        # There each key is named, and the query is another one each time.
        monkeypatch.setattr(prepared, "_worded", None)
    claimed = claim(made)
    assert sorted(each.task_name for each in claimed.claims) == ["t0", "t1"]
    record(made, claimed)
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == 2


def test_rows_know_the_ids_that_they_got() -> None:
    made = Deployment(1)
    made.initialize()
    scheduler = SchedulerState.objects.get()
    make = bulk.maker(TaskRun, scheduler_id=scheduler.pk, outcome=Outcome.SUCCEEDED)
    for names in (["a", "b", "c"], ["d"], ["e", "f"]):
        fresh = [make(task_name=name, scheduled_for=made.now) for name in names]
        with transaction.atomic():
            bulk.insert("default", fresh)
        if connection.features.can_return_rows_from_bulk_insert:
            stored = TaskRun.objects.filter(task_name__in=names).values_list("pk", "task_name")
            assert [(run.pk, run.task_name) for run in fresh] == list(stored.order_by("pk"))
            assert not any(run._state.adding for run in fresh)
    assert TaskRun.objects.count() == 6


def test_a_task_ends_on_the_terms_of_its_row_where_it_was_called_on_others() -> None:
    made = Deployment(1)
    made.initialize()
    row, declared = ScheduledTask.objects.get(), made.declarations[0]
    assert rows.terms_of(row, declared) is declared.terms
    row.digest = "another"
    stored = rows.terms_of(row, declared)
    assert stored is not declared.terms
    assert stored.schedule == declared.schedule
    row.digest, row.retry_delay = declared.digest(), timedelta(hours=7)
    assert rows.terms_of(row, declared).retry == FixedDelay(timedelta(hours=7))
    row.declaration["overlap_policy"] = "skip"
    assert rows.terms_of(row, declared).overlap_policy == "skip"


def test_a_state_that_is_read_has_every_field() -> None:
    made = Deployment(1)
    made.initialize()
    row = ScheduledTask.objects.get()
    row.running_run, row.waiting, row.skip_at = 7, 2, made.now
    expected = TaskState(
        **{
            each.name: getattr(row, each.name)
            for each in fields(TaskState)
            if each.name != "running"
        },
        running=True,
    )
    assert rows.state_of(row) == expected
    assert set(vars(rows.state_of(row))) == {each.name for each in fields(TaskState)}
