"""What each operation costs: statements, rows, and the indexes that find them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.store import (
    bulk_update,
    database,
    guard,
    liveness,
    operator_actions,
    pruning,
    recovery,
)
from django_declarative_cron.store.guard import peek
from django_declarative_cron.store.operator_actions import Act

from .conftest import (
    Deployment,
    claim,
    further,
    initialized,
    is_postgresql,
    one_pass,
    statements,
    write_history,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("tasks", [1, 40])
def test_tasks_start_and_end_in_as_many_statements_however_many_they_are(tasks: int) -> None:
    started, ended = one_pass(initialized(tasks))
    # The deployment's row, the due tasks, the new runs, the tasks; one more for ids on MySQL.
    # The deployment's row, the tasks, the runs, and both written.
    most = 5 + further(tasks)
    assert (len(started) <= most, len(ended) <= most) == (True, True)


@pytest.mark.parametrize("tasks", [2, 60])
def test_an_unchanged_set_is_recognised_in_as_many_statements_whatever_it_holds(tasks: int) -> None:
    made = initialized(tasks)
    liveness.leave(made.member, made.now)
    before = list(ScheduledTask.objects.order_by("pk").values())
    # The deployment's row, the comparison of the tasks, the new instance, and that it leads.
    assert len(statements(made.restart)) == 4
    assert SchedulerState.objects.get().leader_id == made.member.instance
    assert list(ScheduledTask.objects.order_by("pk").values()) == before


@pytest.mark.parametrize("tasks", [2, 60])
def test_a_set_is_registered_in_as_many_statements_whatever_it_holds(tasks: int) -> None:
    made = Deployment(tasks)
    # The deployment's row, made and locked, and its epoch; the instance, the tasks, their names,
    # the set and what is before it, and that it is the active one; on SQLite the ids of rows.
    assert len(statements(made.initialize)) <= 11 + further(tasks)
    assert ScheduledTask.objects.count() == tasks


@pytest.mark.parametrize("tasks", [3, 60])
def test_one_change_is_written_in_as_many_statements_however_many_there_are(tasks: int) -> None:
    made = initialized(tasks)
    made.change("t1", cron="5 5 5 5 *")
    assert len(statements(made.initialize)) <= 17
    liveness.leave(made.member, made.now)
    made.change("t1", cron="5 5 6 6 *")
    # Nothing is left to be seen to: no dead, no marks that lie ahead.
    assert len(statements(made.restart)) <= 13


@pytest.mark.parametrize(
    "act",
    [operator_actions.pause, operator_actions.request_run, operator_actions.skip_next],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("tasks", [1, 30])
def test_an_act_takes_as_many_statements_however_many_tasks_it_is_for(
    tasks: int, act: Callable[..., list[str]]
) -> None:
    made = initialized(30)
    names = list(made.by_name)[:tasks]
    assert len(statements(lambda: act(names, Act("somebody", made.now)))) <= 6


@pytest.mark.parametrize("runs", [3, 30])
def test_a_batch_is_forgotten_in_as_many_statements_however_much_it_is(runs: int) -> None:
    made = initialized(1)
    write_history(made, runs)
    later = made.now + timedelta(days=1)
    # What is old, what of it stays, its newest end, the rows, and how far history goes back.
    assert len(statements(lambda: pruning.prune_old(made.member, later))) <= 8
    assert TaskRun.objects.count() == 1
    write_history(made, runs)
    assert len(statements(lambda: pruning.prune_surplus(made.member, "t0", 2))) <= 8
    assert TaskRun.objects.count() == 2


def test_of_many_tasks_the_one_that_changed_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    made = initialized(30)
    made.change("t7", cron="5 5 5 5 *")
    written: list[str] = []
    update = bulk_update.update

    def seen(using: str, rows: Sequence[Any], fields: Sequence[str]) -> None:
        written.extend(row.name for row in rows if isinstance(row, ScheduledTask))
        update(using, rows, fields)

    monkeypatch.setattr(bulk_update, "update", seen)
    made.initialize()
    assert written == ["t7"]


def test_a_large_set_is_written_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    # A server ends the transaction of who says nothing for long.
    monkeypatch.setattr(database, "_CHUNK", 4)
    inserts = [s for s in statements(lambda: initialized(10)) if _inserts(s, ScheduledTask)]
    assert len(inserts) == 3
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {
        f"t{number}" for number in range(10)
    }


def _inserts(sql: str, model: Any) -> bool:
    return sql.startswith("INSERT") and model._meta.db_table in sql


def test_what_is_due_is_found_by_when_it_is_to_be_considered() -> None:
    made = initialized(5)
    ScheduledTask.objects.filter(name="t3").update(
        wake_at=made.now - timedelta(minutes=1), boot_at=made.now
    )
    assert [claim.task_name for claim in claim(made).claims] == ["t3"]


# --- indexes ---


_TABLES = [model._meta.db_table for model in (ScheduledTask, TaskRun)]
_READS_ALL = re.compile(rf"(Seq Scan on|SCAN) ({'|'.join(_TABLES)})( +\(cost|$)")


@pytest.fixture
def as_never_counted(db: None) -> None:
    """Let no plan depend on how many rows of other tests PostgreSQL has counted, or keeps dead."""
    if connection.vendor == "mysql":
        pytest.skip("its plans are told by its statistics")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(_TABLES)} CASCADE")


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
        cursor.execute(f"ANALYZE {', '.join(_TABLES)}")
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


@pytest.mark.usefixtures("as_never_counted")
def test_every_look_of_a_pass_uses_an_index() -> None:
    made = initialized(40)
    started, ended = one_pass(made)
    said = [*started, *ended, *statements(lambda: peek(made.member))]
    looks = [sql for sql in said if sql.startswith("SELECT")]
    looks = [sql for sql in looks if any(table in sql for table in _TABLES)]
    assert len(looks) >= 4
    with _among_many_tasks():
        plans = "\n".join(map(_plan, looks))
    assert "ddc_task_wake" in plans
    assert [line for line in plans.splitlines() if _READS_ALL.search(line)] == []


@pytest.mark.usefixtures("as_never_counted")
def test_an_idle_look_reads_none_of_the_runs_that_are_over() -> None:
    made = initialized(2)
    write_history(made, 500)
    [look] = statements(lambda: peek(made.member))
    with _among_many_tasks():
        plan = _plan(look)
    # Both columns narrow it down; what is only filtered was read.
    found = [line for line in plan.splitlines() if "cancel_requested_at" in line]
    assert found
    assert all("instance_id" in line and "Filter" not in line for line in found)
    assert "ddc_run_to_end" in plan


def _reaped(made: Deployment) -> object:
    with guard.locked(made.member) as held:
        assert held is not None
        return recovery._runs_of_the_dead(held, [])


def _forgotten(made: Deployment) -> object:
    return pruning.prune_surplus(made.member, "t0", 3990)


@pytest.mark.usefixtures("as_never_counted")
@pytest.mark.skipif(not is_postgresql, reason="its planner knows how many rows it last counted")
@pytest.mark.parametrize(
    ("work", "index"), [(_reaped, "ddc_run_one_at_a_time"), (_forgotten, "ddc_run_history")]
)
def test_what_runs_and_what_a_task_has_run_is_found_though_no_row_was_ever_counted(
    work: Callable[[Deployment], object], index: str
) -> None:
    made = initialized(40)
    write_history(made, 4000)
    said = statements(lambda: work(made))
    looks = [sql for sql in said if sql.startswith("SELECT") and "running_slot" in sql]
    assert looks
    for look in looks:
        plan = _plan(look)
        found = [line for line in plan.splitlines() if "Index" in line and "_run_" in line]
        assert found and all(index in line or "ddc_run_once" in line for line in found), plan
        assert "running_slot IS" not in plan, plan


def _forgotten_by_age(made: Deployment) -> object:
    return pruning.prune_old(made.member, made.now - timedelta(minutes=10))


def _forgotten_by_number(made: Deployment) -> object:
    return pruning.prune_surplus(made.member, "t0", 5)


def _paused(made: Deployment) -> object:
    return operator_actions.pause(["t0"], Act("somebody", made.now))


def _asked_to_run(made: Deployment) -> object:
    return operator_actions.request_run(["t0"], Act("somebody", made.now))


@pytest.mark.usefixtures("as_never_counted")
@pytest.mark.parametrize("work", [_forgotten_by_age, _forgotten_by_number, _paused, _asked_to_run])
def test_an_act_and_a_batch_of_forgetting_find_their_rows_by_indexes(
    work: Callable[[Deployment], object],
) -> None:
    made = initialized(40)
    write_history(made, 50)
    said = [sql for sql in statements(lambda: work(made)) if sql.startswith("SELECT")]
    looks = [sql for sql in said if any(table in sql for table in _TABLES)]
    assert looks
    with _among_many_tasks():
        plans = "\n".join(map(_plan, looks))
    assert [line for line in plans.splitlines() if _READS_ALL.search(line)] == []
