"""A database that refuses any statement, or whose answer is lost: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.backends.signals import connection_created
from django.db.utils import InterfaceError, InternalError

from django_declarative_cron.core.events import Event, PersistenceFailed
from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.testing import Simulation
from django_declarative_cron.theory import check

from .conftest import SECOND, task
from .observed import utc

pytestmark = [pytest.mark.beyond_the_theory, pytest.mark.usefixtures("transactional_db")]

AT_ELEVEN = "* 11 * * *"
START = utc("10:59:30")
MINUTES = [utc(f"11:0{minute}") for minute in range(3)]


class _Driver(Exception):
    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def _error(kind: type[Exception], sqlstate: str) -> Exception:
    error = kind("as Django says it")
    error.__cause__ = _Driver(sqlstate)
    return error


REFUSALS = {
    "backend terminated": _error(OperationalError, "57P01"),
    "read-only after a failover": _error(InternalError, "25006"),
    "disk full": _error(OperationalError, "53100"),
    "deadlock": _error(OperationalError, "40P01"),
    "row held": _error(OperationalError, "55P03"),
    "connection closed": InterfaceError("connection already closed"),
}


READ_ONLY = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET default_transaction_read_only = on",
}


class Fault:
    """Count statements or commits, and refuse one of them."""

    def __init__(self, at: int | None, error: Exception) -> None:
        self.count, self._at, self._error = 0, at, error

    def here(self) -> None:
        """Be the next one; raise where it is the one."""
        self.count += 1
        if self.count - 1 == self._at:
            raise self._error

    def statement(self, execute: Callable[..., Any], *rest: Any) -> Any:
        """Refuse before the statement."""
        self.here()
        return execute(*rest)

    @contextmanager
    def in_answers(self) -> Iterator[None]:
        """Lose the word that a transaction was committed."""
        commit = connection.commit

        def answered() -> None:
            commit()
            self.here()

        connection.commit = answered  # type: ignore[method-assign]
        try:
            yield
        finally:
            del connection.commit


def _three_minutes(fault: Fault, *, answers: bool = False) -> Simulation:
    sim = Simulation(start=START)
    outcomes = {"good": "ok", "bad": "fail"}
    sim.initialize([task(name, AT_ELEVEN, outcomes[name], 10 * SECOND) for name in outcomes])
    meddling = fault.in_answers() if answers else connection.execute_wrapper(fault.statement)
    with meddling:
        sim.advance_to(MINUTES[-1] + 45 * SECOND)
    sim.advance_to(MINUTES[-1] + 55 * SECOND)
    return sim


def _require_all_in_order(sim: Simulation) -> None:
    for name, outcome in (("good", "succeeded"), ("bad", "failed")):
        runs = sim.runs(name)
        assert [run.scheduled_for for run in runs] == MINUTES, name
        assert {run.outcome for run in runs} == {outcome}, name
        assert [start.replace(second=0, microsecond=0) for start in sim.starts(name)] == MINUTES
    assert not TaskRun.objects.filter(running_slot__isnull=False).exists()
    assert check(sim.trace()) == []


@pytest.mark.parametrize("at", range(12))
def test_a_commit_whose_answer_is_lost_is_neither_forgotten_nor_repeated(at: int) -> None:
    sim = _three_minutes(Fault(at, REFUSALS["backend terminated"]), answers=True)
    _require_all_in_order(sim)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a file is filled up")
def test_a_disk_that_is_full_is_outlived(told: list[Event]) -> None:
    """The claims of one minute do not fit; they are made once there is room."""
    with connection.cursor() as cursor:
        # Pages that tests before this one freed would have room for the claims.
        cursor.execute("VACUUM")
    sim = Simulation(start=START)
    names = [f"{'long ' * 40}{number}" for number in range(40)]
    sim.initialize([task(name, AT_ELEVEN) for name in names])
    sim.advance_to(MINUTES[0] + 30 * SECOND)

    def fill_up(sender: object, connection: Any, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA page_count")
            cursor.execute(f"PRAGMA max_page_count = {cursor.fetchone()[0]}")

    # A refusal like this one is answered with a new connection, which is limited as well.
    connection_created.connect(fill_up)
    connection.close()
    try:
        sim.advance_to(MINUTES[1] + 10 * SECOND)
        refused = [event.error for event in told if isinstance(event, PersistenceFailed)]
        assert "full" in refused[0]
        assert {len(sim.runs(name)) for name in names} == {1}
    finally:
        connection_created.disconnect(fill_up)
        connection.close()
    sim.advance_to(MINUTES[2] + 10 * SECOND)
    for name in names:
        assert [run.scheduled_for for run in sim.runs(name)] == MINUTES
        assert {run.outcome for run in sim.runs(name)} == {"succeeded"}


@pytest.mark.skipif(connection.vendor not in READ_ONLY, reason="it has another word for it")
def test_a_database_that_is_read_only_for_a_minute_is_outlived(told: list[Event]) -> None:
    sim = Simulation(start=START)
    sim.initialize([task("t", AT_ELEVEN)])
    sim.advance_to(MINUTES[0] + 30 * SECOND)

    def refuse_writes(sender: object, connection: Any, **_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(READ_ONLY[connection.vendor])

    connection_created.connect(refuse_writes)
    connection.close()
    try:
        sim.advance_to(MINUTES[1] + 10 * SECOND)
        refused = [event.error for event in told if isinstance(event, PersistenceFailed)]
        assert refused
        assert all("read" in error and "only" in error for error in refused)
        assert len(sim.runs("t")) == 1
    finally:
        connection_created.disconnect(refuse_writes)
        connection.close()
    sim.advance_to(MINUTES[2] + 10 * SECOND)
    assert [run.scheduled_for for run in sim.runs("t")] == MINUTES
    assert check(sim.trace()) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", REFUSALS)
def test_whichever_statement_is_refused_every_occurrence_runs_once(kind: str) -> None:
    counted = Fault(None, REFUSALS[kind])
    _require_all_in_order(_three_minutes(counted))
    assert counted.count > 15
    # Each kind at statements of its own; all of them together at every one.
    for at in range(list(REFUSALS).index(kind), counted.count, len(REFUSALS)):
        SchedulerState.objects.all().delete()
        _require_all_in_order(_three_minutes(Fault(at, REFUSALS[kind])))
