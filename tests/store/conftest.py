"""Instances of one deployment, their work and history, and somebody else in the same database."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import conf, theory
from django_declarative_cron.core.declarations.declaration import Declaration, digest_of_set
from django_declarative_cron.models import Outcome, ScheduledTask, TaskRun
from django_declarative_cron.store import claims, reconcile, results
from django_declarative_cron.store.database import DatabaseNow
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result
from django_declarative_cron.store.trace_builder import History
from django_declarative_cron.store.trace_reading import read
from django_declarative_cron.testing import Simulation
from django_declarative_cron.theory import Verdict

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


# --- the work of a pass, and the statements in which it is done ---


is_postgresql = connection.vendor == "postgresql"

_LIMITS = r"SET |SELECT set_config|UPDATE \S+ SET .?term.? = .*term.*< 0"
_AROUND = re.compile(rf"BEGIN|COMMIT|SAVEPOINT|RELEASE|{_LIMITS}")


def statements(act: Callable[[], object]) -> list[str]:
    """Give the statements of an act, but for what begins, ends and limits a transaction."""
    with CaptureQueriesContext(connection) as captured:
        act()
    said = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in said if not _AROUND.match(sql)]


def initialized(tasks: int) -> Deployment:
    made = Deployment(tasks)
    made.initialize()
    return made


def claim(made: Deployment) -> claims.Claimed:
    return claims.claim_due(made.member, made.by_name, made.now, reaping=False)


def record(made: Deployment, claimed: claims.Claimed) -> results.Recorded:
    ended = [Result(each.run, each.task_name, made.now, succeeded=True) for each in claimed.claims]
    return results.record(made.member, ended, made.now)


def one_pass(made: Deployment) -> tuple[list[str], list[str]]:
    """Give the statements in which all tasks start, and end."""
    tasks = len(made.declarations)
    made.owe_all()
    claimed: list[claims.Claimed] = []
    started = statements(lambda: claimed.append(claim(made)))
    assert len(claimed[0].claims) == tasks
    ended = statements(lambda: record(made, claimed[0]))
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == tasks
    return started, ended


def write_history(made: Deployment, runs: int) -> None:
    """Write so many successful runs of the first task, a minute after the other, up to now."""
    scheduler = ScheduledTask.objects.values_list("scheduler", flat=True)[0]
    ends = [made.now - timedelta(minutes=number) for number in range(runs)]
    TaskRun.objects.bulk_create(
        TaskRun(
            scheduler_id=scheduler,
            task_name="t0",
            scheduled_for=end,
            started_at=end,
            finished_at=end,
            outcome=Outcome.SUCCEEDED,
            reason="due",
            instance_id=made.member.instance,
        )
        for end in reversed(ends)
    )


def further(rows: int) -> int:
    """Return how many more statements two tables take where a database limits parameters."""
    limit = connection.features.max_query_params
    return 0 if limit is None else 2 * (rows * 60 // limit)


# --- histories made by the real engine, and what the judge says of their rows ---


LEASE = timedelta(seconds=15)
FIVE_MINUTES = timedelta(minutes=5)
HOURLY = "0 * * * *"
MINUTELY = "* * * * *"


def utc(text: str) -> datetime:
    """Read an instant; a bare time is on 2024-01-01."""
    return datetime.fromisoformat(text if "T" in text else f"2024-01-01T{text}").replace(tzinfo=UTC)


def start(at: str = "10:00:30", **options: Any) -> Simulation:
    return Simulation(utc(at), **options)


def act(sim: Simulation) -> Act:
    return Act(author="an operator", at=sim.now)


@dataclass(frozen=True)
class Judged:
    """A history that was told and judged."""

    told: History
    records: list[dict[str, Any]]
    verdict: Verdict

    @property
    def events(self) -> list[str]:
        """Name the records, without the registrations."""
        return [" ".join(filter(None, (r["event"], r.get("task")))) for r in self.records]

    @property
    def broken(self) -> list[tuple[str, str | None]]:
        return [(each.axiom, each.task) for each in self.verdict.violations]


def judged(sim: Simulation, since: str | None = None, *, living: bool = True) -> Judged:
    """Tell and judge the rows of a simulation; the instances that live give a sign of life."""
    for instance in instances(sim):
        if living and instance.scheduler is not None:
            instance.scheduler.beat()
    told = read(
        "default",
        "default",
        lease=LEASE,
        until=sim.now,
        since=None if since is None else utc(since),
        database_time=sim.clock.database_time(),
    )
    assert told is not None
    records = list(told.records())
    return Judged(told, records, theory.judge(records, pulses="made", set_back="hold"))


def instances(sim: Simulation) -> Sequence[Any]:
    return sim._instances
