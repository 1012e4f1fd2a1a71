"""What each operation costs, counted in statements and rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.store import (
    bulk_update,
    database,
    liveness,
    operator_actions,
    pruning,
)
from django_declarative_cron.store.operator_actions import Act

from .conftest import Deployment
from .statements import (
    claim,
    further,
    initialized,
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
