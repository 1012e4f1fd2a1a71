"""Our transactions: limited in their waits, alike in every project, done again after conflicts."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.utils import InternalError
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.management.cli import runscheduler_output
from django_declarative_cron.models import SchedulerState, TaskOverride, TaskRun
from django_declarative_cron.runtime.connections import clean_up, renew
from django_declarative_cron.store import (
    claims,
    database,
    guard,
    liveness,
    operator_actions,
    silent_connections,
)
from django_declarative_cron.store.database import is_conflict, is_lock_timeout, spoils_connection
from django_declarative_cron.store.operator_actions import Act

from ..threads import elsewhere
from .conftest import TIMEOUT, WAITING, Deployment, Stranger, claim

postgres = pytest.mark.skipif(connection.vendor != "postgresql", reason="it is about PostgreSQL")


def said(kind: type[Exception], code: str | int | None = None, attribute: str = "sqlstate") -> Any:
    """Make an error as Django raises it around a driver's."""
    if isinstance(code, int):
        return kind(code, "as MySQL says it")
    cause = sqlite3.Error("a driver's")
    if code is not None:
        setattr(cause, attribute, code)
    error = kind("as Django says it")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "is_held", "is_to_be_repeated", "is_spoilt"),
    [
        (said(OperationalError, "55P03"), True, False, False),
        (said(OperationalError, "55P03", "pgcode"), True, False, False),
        (said(OperationalError, 1205), True, False, False),
        (said(OperationalError, "SQLITE_BUSY_SNAPSHOT", "sqlite_errorname"), True, False, False),
        (said(OperationalError, "40P01"), False, True, False),
        (said(OperationalError, "40001"), False, True, False),
        (said(OperationalError, 1213), False, True, False),
        (said(IntegrityError), False, False, False),
        (said(DataError, "22001"), False, False, False),
        (said(InternalError, "25006"), False, False, True),
        (said(OperationalError, "57P01"), False, False, True),
        (said(OperationalError, "53100"), False, False, True),
        (said(OperationalError, 2006), False, False, True),
        (said(OperationalError), False, False, True),
        (said(InterfaceError), False, False, True),
        (RuntimeError("none of a database's"), False, False, False),
    ],
)
def test_refusals_are_told_apart(
    error: Exception, is_held: bool, is_to_be_repeated: bool, is_spoilt: bool
) -> None:
    assert is_lock_timeout(error) is is_held
    assert is_conflict(error) is is_to_be_repeated
    assert spoils_connection(error) is is_spoilt


def _ask(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


@contextmanager
def _as_configured(**settings: Any) -> Iterator[None]:
    """Let the project's entry in DATABASES say something else, in new connections."""
    before = {key: connection.settings_dict[key] for key in settings}
    connection.close()
    connection.settings_dict.update(settings)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


@postgres
def test_limits_hold_inside_a_transaction_and_leave_nothing_behind(deployment: Deployment) -> None:
    names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
    before = [_ask(f"SHOW {name}") for name in names]
    with guard.locked(deployment.member):
        assert [_ask(f"SHOW {name}") for name in names] == ["5s", "10s", "15s"]
    assert [_ask(f"SHOW {name}") for name in names] == before
    # In the caller's own transaction nothing is limited.
    with transaction.atomic(), guard.locked(deployment.member):
        assert [_ask(f"SHOW {name}") for name in names] == before


@postgres
@pytest.mark.parametrize(
    ("lease", "tasks", "longest"),
    [(12.5, 0, "12500ms"), (60, 0, "15s"), (12.5, 1500, "14s"), (12.5, 100_000, "15s")],
)
def test_who_is_halted_keeps_the_row_no_longer_than_a_lease(
    lease: float, tasks: int, longest: str, deployment: Deployment
) -> None:
    member = replace(deployment.member, lease=timedelta(seconds=lease))
    for creates in (True, False):
        with guard.locked(member, create=creates, tasks=tasks):
            assert _ask("SHOW idle_in_transaction_session_timeout") == longest


@postgres
def test_nor_does_who_brings_a_set_or_acts_as_a_person(
    deployment: Deployment, settings: Any
) -> None:
    settings.DECLARATIVE_CRON = {"LEASE": 12.5, "RENEW": 5}
    deployment.member = replace(deployment.member, lease=timedelta(seconds=12.5))
    assert _idle_in(deployment.restart) == {"12503ms"}
    act = Act(author="an operator", at=deployment.now)
    assert _idle_in(lambda: operator_actions.pause(["t0", "t1"], act)) == {"12502ms"}


def _idle_in(act: Callable[[], object]) -> set[str]:
    """Give for how long a transaction of an act may do nothing."""
    with CaptureQueriesContext(connection) as captured:
        act()
    said = re.compile("idle_in_transaction_session_timeout', '([^']*)'")
    return {longest for query in captured for longest in said.findall(query["sql"])}


@postgres
@pytest.mark.parametrize(
    "act",
    [
        liveness.heartbeat,
        lambda member: liveness.stop_requested(member, datetime.now(UTC)),
        lambda member: liveness.leave(member, datetime.now(UTC)),
        liveness.give_up,
    ],
)
def test_who_is_halted_as_it_says_that_it_lives_or_goes_keeps_no_row_for_longer(
    act: Callable[[guard.Member], object], deployment: Deployment
) -> None:
    member = replace(deployment.member, lease=timedelta(seconds=12.5))
    with CaptureQueriesContext(connection) as captured:
        act(member)
    limited = [q["sql"] for q in captured if "idle_in_transaction_session_timeout" in q["sql"]]
    assert limited
    assert [sql for sql in limited if "'12500ms'" not in sql] == []


mysql = pytest.mark.skipif(connection.vendor != "mysql", reason="it is about MariaDB and MySQL")


@mysql
@pytest.mark.parametrize("fails", [True, False])
def test_the_wait_for_locks_is_put_back(deployment: Deployment, fails: bool) -> None:
    waits = "innodb_lock_wait_timeout", "wait_timeout"
    before = [_ask(f"SELECT @@{wait}") for wait in waits]
    with suppress(LookupError), guard.locked(deployment.member):
        assert (
            [_ask(f"SELECT @@{wait}") for wait in waits] == [database.LOCK, database.IDLE] != before
        )
        if fails:
            raise LookupError
    assert [_ask(f"SELECT @@{wait}") for wait in waits] == before


@pytest.mark.skipif(connection.vendor == "sqlite", reason="a file has no server to let go")
def test_the_server_lets_go_of_the_row_of_who_is_halted(
    deployment: Deployment, stranger: Stranger
) -> None:
    member = replace(deployment.member, lease=timedelta(seconds=1))
    with pytest.raises(DatabaseError), guard.locked(member) as held:
        assert held is not None
        stranger.hold("schedulerstate", deployment=member.deployment)
        held.row.save(using=member.using)
    connection.close()
    stranger.let_go()
    with guard.locked(deployment.member) as again:
        assert again is not None


@postgres
@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
def test_what_is_read_under_the_lock_is_what_is_stored_by_then(
    level: str, deployment: Deployment, stranger: Stranger
) -> None:
    from psycopg import IsolationLevel

    options = {**connection.settings_dict["OPTIONS"], "isolation_level": IsolationLevel[level]}
    with _as_configured(OPTIONS=options):
        with guard.locked(deployment.member):
            assert _ask("SHOW transaction_isolation") == "read committed"
        started = claim(deployment)
        assert len(started.claims) == 3


def test_without_autocommit_everything_is_committed_all_the_same(
    deployment: Deployment, stranger: Stranger
) -> None:
    with _as_configured(AUTOCOMMIT=False):
        SchedulerState.objects.count()
        assert liveness.heartbeat(deployment.member)
        started = claim(deployment)
        assert len(started.claims) == 3
        assert not connection.get_autocommit()
    assert TaskRun.objects.filter(outcome="running").count() == 3


def test_without_autocommit_nothing_of_a_callback_reaches_the_next_one(
    deployment: Deployment,
) -> None:
    with _as_configured(AUTOCOMMIT=False, CONN_MAX_AGE=None):
        connection.ensure_connection()
        transaction.set_autocommit(False)  # A database in memory has kept its connection.
        User.objects.create(username="pending")
        clean_up()
        User.objects.create(username="committed")
        connection.commit()
    assert [user.username for user in User.objects.all()] == ["committed"]


@postgres
def test_without_autocommit_a_scheduler_that_greets_leaves_no_transaction_open(
    deployment: Deployment,
) -> None:
    with _as_configured(AUTOCOMMIT=False):
        connection.ensure_connection()
        assert runscheduler_output._following(deployment.member.deployment, deployment.member.using)
        assert connection.connection.info.transaction_status.name == "IDLE"
        assert _ask("SELECT 1")
        assert connection.connection.info.transaction_status.name == "INTRANS"


def test_without_autocommit_what_ended_a_connection_is_told(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_autocommit(value: bool, **_: Any) -> None:
        if not value:
            raise OperationalError("the connection is lost")

    with _as_configured(AUTOCOMMIT=False):
        connection.ensure_connection()
        transaction.set_autocommit(False)
        with monkeypatch.context() as patched:
            patched.setattr(connection, "set_autocommit", set_autocommit)
            with (
                pytest.raises(OperationalError, match=r"^terminated$"),
                database.committing(connection),
            ):
                raise OperationalError("terminated")


def test_without_autocommit_whatever_fails_leaves_it_as_it_was(deployment: Deployment) -> None:
    with _as_configured(AUTOCOMMIT=False):
        connection.ensure_connection()
        transaction.set_autocommit(False)
        with pytest.raises(KeyError), database.direct(deployment.member.using):
            raise KeyError
        assert not connection.get_autocommit()


class Refusal:
    """Let the database refuse some statement so many times."""

    def __init__(self, error: Exception, times: int, text: str) -> None:
        self.error, self.left, self.text = error, times, text

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if self.left and self.text in sql:
            self.left -= 1
            raise self.error
        return execute(sql, *rest)


@pytest.mark.parametrize("code", ["40P01", "40001", 1213])
def test_a_transaction_that_had_to_give_in_is_done_again(
    code: str | int, deployment: Deployment
) -> None:
    refusal = Refusal(said(OperationalError, code), 3, "INSERT INTO")
    with connection.execute_wrapper(refusal):
        claimed = claim(deployment)
    assert refusal.left == 0
    assert len(claimed.claims) == TaskRun.objects.filter(outcome="running").count() == 3


@pytest.fixture
def conflicts(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Collect the errors that made a transaction begin again."""
    found: list[BaseException] = []

    def seen(error: BaseException) -> bool:
        found.extend([error] if is_conflict(error) else [])
        return is_conflict(error)

    monkeypatch.setattr(database, "is_conflict", seen)
    return found


@pytest.mark.skipif(
    connection.vendor not in WAITING, reason="of one lock nobody waits for a second"
)
def test_a_claim_that_has_to_end_a_deadlock_is_made_again(
    deployment: Deployment, stranger: Stranger, conflicts: list[BaseException]
) -> None:
    # MySQL spares who has written more, PostgreSQL who has no limit of their own to look after.
    stranger.look_for_no_deadlocks()
    operator_actions.request_run(["t1"], Act(author="an operator", at=deployment.now))
    stranger.hold("taskoverride", task_name="t1")
    stranger.write_much()

    def hold_and_let_go() -> None:
        stranger.hold("schedulerstate", deployment="default")
        stranger.let_go()

    with elsewhere() as by_stranger, elsewhere() as by_claim:

        def close_the_circle(execute: Any, sql: str, *rest: Any) -> Any:
            """Let the stranger wait for us before we wait for the stranger."""
            if not waits and sql.startswith("UPDATE") and "taskoverride" in sql:
                waits.append(by_stranger(hold_and_let_go))
                stranger.wait_for_a_waiter()
            return execute(sql, *rest)

        def claimed() -> list[claims.Claim]:
            with connection.execute_wrapper(close_the_circle):
                return claim(deployment).claims

        waits: list[Future[None]] = []
        started = by_claim(claimed).result(TIMEOUT)
        waits[0].result(TIMEOUT)
    assert len(started) == TaskRun.objects.filter(outcome="running").count() == 3
    assert TaskOverride.objects.get().ended_at is not None
    assert conflicts


def test_for_ever_it_is_not_done_again(deployment: Deployment) -> None:
    refusal = Refusal(said(OperationalError, "40001"), 100, "INSERT INTO")
    with connection.execute_wrapper(refusal), pytest.raises(OperationalError):
        claim(deployment)
    assert refusal.left == 95
    assert not TaskRun.objects.exists()


@postgres
def test_a_connection_that_goes_silent_is_cut_off(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silent_connections, "STEP", 0.02)
    monkeypatch.setattr(silent_connections, "PATIENCE", 5)
    monkeypatch.setattr(silent_connections, "watchdog", silent_connections.Watchdog())
    monkeypatch.setattr(database, "watchdog", silent_connections.watchdog)
    with pytest.raises(OperationalError) as refused, database.direct("default"):
        _ask("SELECT pg_sleep(60)")
    renew(refused.value)
    ended = "SELECT bool_and(pg_terminate_backend(pid, 1000)) FROM pg_stat_activity"
    asleep = "query LIKE '%pg_sleep%' AND datname = current_database()"
    assert _ask(f"{ended} WHERE {asleep} AND pid <> pg_backend_pid()")


@postgres
def test_a_server_that_became_read_only_is_not_asked_again_on_the_same_connection(
    deployment: Deployment,
) -> None:
    before = _ask("SELECT pg_backend_pid()")
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    with pytest.raises(InternalError) as refused:
        liveness.heartbeat(deployment.member)
    renew(refused.value)
    assert liveness.heartbeat(deployment.member)
    assert _ask("SELECT pg_backend_pid()") != before
