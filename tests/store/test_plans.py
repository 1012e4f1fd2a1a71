"""Indexes find the rows of every statement that is sent often, however many rows there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import guard, operator_actions, pruning, recovery
from django_declarative_cron.store.guard import peek
from django_declarative_cron.store.operator_actions import Act

from .conftest import Deployment
from .statements import initialized, is_postgresql, one_pass, statements, write_history

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor == "mysql", reason="its plans are told by its statistics"),
]

_TABLES = [model._meta.db_table for model in (ScheduledTask, TaskRun)]
_READS_ALL = re.compile(rf"(Seq Scan on|SCAN) ({'|'.join(_TABLES)})( +\(cost|$)")


@pytest.fixture(autouse=True)
def _as_never_counted(db: None) -> None:
    """Let no plan depend on how many rows of other tests PostgreSQL has counted, or keeps dead."""
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
