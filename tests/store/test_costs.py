"""What each operation costs, counted in statements and rows; and that indexes find the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings

from django_declarative_cron.models import Outcome, ScheduledTask, TaskRun
from django_declarative_cron.store import bulk, claims, database, results, rows
from django_declarative_cron.store.endings import Result
from django_declarative_cron.store.peek import peek

from .conftest import Deployment

pytestmark = pytest.mark.django_db

_TABLES = [model._meta.db_table for model in (ScheduledTask, TaskRun)]
_READS_ALL = re.compile(rf"(Seq Scan on|SCAN) ({'|'.join(_TABLES)})( +\(cost|$)")

_LIMITS = re.compile(r"^SET TRANSACTION .*session_timeout = '\d+s'; ", re.DOTALL)
_AROUND = re.compile(r"BEGIN|COMMIT|SAVEPOINT|RELEASE|SET |UPDATE \S+ SET term = term")

is_postgresql = connection.vendor == "postgresql"


def _statements(act: Callable[[], object]) -> list[str]:
    """Give the statements of an act, but for what begins, ends and limits a transaction."""
    with CaptureQueriesContext(connection) as captured:
        act()
    said = [_LIMITS.sub("", query["sql"]) for query in captured.captured_queries]
    return [sql for sql in said if not _AROUND.match(sql)]


def _initialized(tasks: int) -> Deployment:
    made = Deployment(tasks)
    made.initialize()
    return made


def _claim(made: Deployment) -> claims.Claimed:
    return claims.claim_due(made.member, made.by_name, made.now, reaping=False)


def _record(made: Deployment, claimed: claims.Claimed) -> results.Recorded:
    ended = [Result(c.run, c.task_name, made.now, succeeded=True) for c in claimed.claims]
    return results.record(made.member, ended, made.now)


def _pass(made: Deployment) -> tuple[list[str], list[str]]:
    """Give the statements in which all tasks start, and end."""
    tasks = len(made.declarations)
    made.owe_all()
    claimed: list[claims.Claimed] = []
    started = _statements(lambda: claimed.append(_claim(made)))
    assert len(claimed[0].claims) == tasks
    ended = _statements(lambda: _record(made, claimed[0]))
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == tasks
    return started, ended


@pytest.mark.parametrize("tasks", [1, 40])
def test_tasks_start_and_end_in_as_many_statements_however_many_they_are(tasks: int) -> None:
    started, ended = _pass(_initialized(tasks))
    # The deployment's row, what is due, the new runs, the tasks; one more for ids on MariaDB.
    assert len(started) <= (4 if is_postgresql else 5)
    # The deployment's row, the tasks, the runs, and both written.
    assert len(ended) <= 5


@pytest.mark.parametrize("tasks", [2, 60])
def test_an_unchanged_set_is_recognised_in_as_many_statements_whatever_it_holds(tasks: int) -> None:
    made = _initialized(tasks)
    before = list(ScheduledTask.objects.order_by("pk").values())
    assert len(_statements(made.initialize)) <= 8
    assert list(ScheduledTask.objects.order_by("pk").values()) == before


def test_of_many_tasks_the_one_that_changed_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _initialized(30)
    changed = made.declare("t7", cron="5 5 5 5 *")
    made.declarations = [*changed, *(d for d in made.declarations if d.name != "t7")]
    written: list[str] = []
    upsert = bulk.upsert

    def seen(using: str, rows: Sequence[Any], fields: Sequence[str]) -> None:
        written.extend(row.name for row in rows)
        upsert(using, rows, fields)

    monkeypatch.setattr(bulk, "upsert", seen)
    made.initialize()
    assert written == ["t7"]


def test_a_large_set_is_written_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    # A server ends the transaction of who says nothing for long.
    monkeypatch.setattr(database, "_CHUNK", 4)
    inserts = [s for s in _statements(lambda: _initialized(10)) if _inserts(s, ScheduledTask)]
    assert len(inserts) == 3
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {
        f"t{number}" for number in range(10)
    }


def _inserts(sql: str, model: Any) -> bool:
    return sql.startswith("INSERT") and model._meta.db_table in sql


def test_only_columns_that_changed_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    _initialized(3)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    stored = bulk.Read(tasks, rows.STATE_FIELDS)
    tasks[1].run_count += 1
    tasks[2].running_run = 77
    with monkeypatch.context() as patched:
        seen: list[Sequence[str]] = []
        patched.setattr(bulk, "upsert", lambda using, rows, fields: seen.append(fields))
        stored.write("default", beside=["enabled"])
    assert [(fields[0], set(fields[1:])) for fields in seen] == [
        ("enabled", {"running_run", "run_count"})
    ]
    stored.write("default")
    again = list(ScheduledTask.objects.order_by("pk").values_list("run_count", "running_run"))
    assert again == [(0, None), (1, None), (0, 77)]


def test_what_is_the_same_in_all_rows_is_written_to_all_rows() -> None:
    made = _initialized(3)
    tasks = list(ScheduledTask.objects.order_by("pk"))
    for number, task in enumerate(tasks):
        task.run_count, task.broken_reason, task.declaration = number, "it's 100 %", {"n": number}
        task.boot_at, task.orphaned = made.now, True
    bulk.upsert(
        "default", tasks, ["run_count", "broken_reason", "declaration", "boot_at", "orphaned"]
    )
    stored = ScheduledTask.objects.order_by("pk")
    assert [
        (t.run_count, t.broken_reason, t.declaration, t.boot_at, t.orphaned) for t in stored
    ] == [(number, "it's 100 %", {"n": number}, made.now, True) for number in range(3)]


def test_data_that_is_equal_and_not_the_same_is_kept_as_it_is() -> None:
    made = _initialized(1)
    scheduler = ScheduledTask.objects.get().scheduler
    runs = [
        TaskRun(
            scheduler=scheduler,
            task_name=f"t{number}",
            scheduled_for=made.now,
            outcome=Outcome.SUCCEEDED,
            reason="due",
            result=value,
        )
        for number, value in enumerate([1, True, 1.0, None])
    ]
    bulk.insert("default", runs)
    kept = TaskRun.objects.order_by("task_name").values_list("result", flat=True)
    assert list(map(repr, kept)) == ["1", "True", "1.0", "None"]


@contextmanager
def _among_many_tasks() -> Iterator[None]:
    """Let PostgreSQL plan for thousands of tasks that wait, and not by what it last counted."""
    if not is_postgresql:
        yield
        return
    table = ScheduledTask._meta.db_table
    same = [each.column for each in ScheduledTask._meta.concrete_fields]
    columns = ", ".join(each for each in same if each not in ("id", "name", "wake_at"))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (name, wake_at, {columns}) "
            f"SELECT name || '-' || n, now() + interval '1 day', {columns} "
            f"FROM {table}, generate_series(1, 100) AS n"
        )
        cursor.execute(f"ANALYZE {table}")
        cursor.execute("SET enable_seqscan = off")
        try:
            yield
        finally:
            cursor.execute("RESET enable_seqscan")


def _plan(sql: str) -> str:
    how = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{how} {sql}")
        return "\n".join(" ".join(map(str, row)) for row in cursor.fetchall())


@pytest.mark.skipif(connection.vendor == "mysql", reason="its plans are told by its statistics")
def test_every_look_of_a_pass_uses_an_index() -> None:
    made = _initialized(40)
    started, ended = _pass(made)
    said = [*started, *ended, *_statements(lambda: peek(made.member))]
    with override_settings(DECLARATIVE_CRON={"EXTERNAL_WORKERS": True}):
        [look] = _statements(lambda: peek(made.member))
    assert "reserved_until" in look
    said.append(look)
    looks = [sql for sql in said if sql.startswith("SELECT") and any(t in sql for t in _TABLES)]
    assert len(looks) >= 4
    with _among_many_tasks():
        plans = "\n".join(map(_plan, looks))
    assert "ddc_task_wake" in plans
    assert [line for line in plans.splitlines() if _READS_ALL.search(line)] == []


def test_what_is_due_is_found_by_when_it_is_to_be_considered() -> None:
    made = _initialized(5)
    ScheduledTask.objects.filter(name="t3").update(
        wake_at=made.now - timedelta(minutes=1), boot_at=made.now
    )
    assert [claim.task_name for claim in _claim(made).claims] == ["t3"]
