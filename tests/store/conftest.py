"""Instances of one deployment, and somebody else who works in the same database."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration, digest_of_set
from django_declarative_cron.models import ScheduledTask
from django_declarative_cron.store import reconcile
from django_declarative_cron.store.database import DatabaseNow
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.liveness import Process

from ..timeouts import TIMEOUT

# The databases of all workers are on one server, so each looks at its own.
WAITING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx"
    " JOIN information_schema.processlist ON id = trx_mysql_thread_id"
    " WHERE trx_state = 'LOCK WAIT' AND db = DATABASE()",
}
_MUCH = 2000


def nothing() -> None:
    """Do nothing."""


@contextmanager
def unchecked(model: type[models.Model], column: str) -> Iterator[None]:
    """Let a column take any instant, as in a table that others have made."""
    if connection.vendor != "postgresql":
        yield
        return
    table, check = model._meta.db_table, f"{model._meta.db_table}_{column}_check"
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [check]
        )
        [definition] = cursor.fetchone()
        cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check}")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {table} ADD CONSTRAINT {check} {definition} NOT VALID")


class Deployment:
    """One deployment with an instance that leads it."""

    def __init__(self, tasks: int, **changes: Any) -> None:
        self.declarations = self.declare(*(f"t{n}" for n in range(tasks)))
        self.member = Member(
            using="default",
            deployment="default",
            instance=uuid.uuid4(),
            digest=digest_of_set(self.declarations),
            lease=timedelta(seconds=15),
            renew=timedelta(seconds=5),
            database_time=DatabaseNow(),
        )
        self.now = datetime.now(UTC)

    @staticmethod
    def declare(*names: str, cron: str = "0 0 29 2 *") -> list[Declaration]:
        return conf.declarations([(n, cron, nothing, timedelta(minutes=5)) for n in names])

    def initialize(self) -> None:
        reconcile.reconcile(self.member, Process("here", 1), self.declarations, self.now)

    def change(self, name: str, **changes: Any) -> None:
        """Declare something else for one name."""
        place = [declaration.name for declaration in self.declarations].index(name)
        self.declarations[place : place + 1] = self.declare(name, **changes)
        self.member = replace(self.member, digest=digest_of_set(self.declarations))

    def restart(self) -> None:
        """Initialise as another process, which leads in the place of one that left."""
        self.member = replace(self.member, instance=uuid.uuid4())
        self.initialize()

    def owe_all(self) -> None:
        """Let every task be due."""
        ScheduledTask.objects.update(wake_at=self.now, boot_at=self.now)

    @property
    def by_name(self) -> dict[str, Declaration]:
        return {declaration.name: declaration for declaration in self.declarations}


@pytest.fixture
def deployment(transactional_db: None) -> Deployment:
    """Give a deployment of three tasks that are all due."""
    made = Deployment(3)
    made.initialize()
    made.owe_all()
    return made


class Stranger:
    """A person at a database shell: locks rows and goes to lunch."""

    def __init__(self, own: BaseDatabaseWrapper) -> None:
        self._own = own

    def hold(self, table: str, **where: Any) -> None:
        """Lock rows of one of our tables until ``let_go``."""
        [(column, value)] = where.items()
        rows = f"SELECT id FROM django_declarative_cron_{table}"
        with self._own.cursor() as cursor:
            cursor.execute(f"{rows} WHERE {column} = %s", [value])
            [(key,)] = cursor.fetchall()
            # By key: a search for anything else may lock all that it reads.
            if self._own.get_autocommit():
                self._own.set_autocommit(False)
            cursor.execute(f"{rows} WHERE id = %s FOR UPDATE", [key])

    def look_for_no_deadlocks(self) -> None:
        """Leave it to the other one to find out that both wait for each other."""
        if self._own.vendor == "postgresql":
            with self._own.cursor() as cursor:
                cursor.execute("SET deadlock_timeout = '10min'")

    def write(self) -> None:
        """Hold SQLite's one write lock until ``let_go``."""
        self._own.set_autocommit(False)
        with self._own.cursor() as cursor:
            cursor.execute("UPDATE django_declarative_cron_schedulerstate SET term = term")

    def write_much(self) -> None:
        """Write in the open transaction what nobody else cares for."""
        rows = [(f"stranger-{number}", "", datetime.now(UTC)) for number in range(_MUCH)]
        with self._own.cursor() as cursor:
            cursor.executemany("INSERT INTO django_session VALUES (%s, %s, %s)", rows)

    def wait_for_a_waiter(self) -> None:
        """Return once some connection waits for a lock."""
        # In no transaction: there PostgreSQL shows what it has shown before.
        pause, onlooker = threading.Event(), connection.copy()
        with closing(onlooker), onlooker.cursor() as cursor:
            for _ in range(int(TIMEOUT * 5)):
                cursor.execute(WAITING[connection.vendor])
                if cursor.fetchone()[0]:
                    return
                # MariaDB looks anew only for who has not asked for a tenth of a second.
                pause.wait(0.15)
        raise AssertionError("nobody waits for a lock")

    def let_go(self) -> None:
        """End the open transaction."""
        self._own.rollback()
        self._own.set_autocommit(True)


@pytest.fixture
def stranger(transactional_db: None) -> Iterator[Stranger]:
    """Give somebody with a connection of their own."""
    own: BaseDatabaseWrapper = connection.copy()
    # A test may let them wait in another thread.
    own.inc_thread_sharing()
    yield Stranger(own)
    own.close()


@pytest.fixture
def impatient(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for locks as briefly as the database can say it."""
    monkeypatch.setattr("django_declarative_cron.store.database.LOCK", 1)
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 50")
    yield
    connection.close()
