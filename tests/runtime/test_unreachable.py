"""A database that cannot be reached in whatever way: outlived, told of truly, nothing doubled.

The scheduler's connections lead through a network of the test; the test's own was open
before and is not concerned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any, Protocol

import pytest
from django.db import connection

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import probes
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.store import database, silent_connections

from ..timeouts import wait_until
from . import proxy
from .conftest import Heard
from .proxy import Proxy

_HERE = {
    "postgresql": connection.settings_dict["HOST"].startswith("/"),
    "mysql": "unix_socket" in connection.settings_dict.get("OPTIONS", {}),
}

pytestmark = pytest.mark.skipif(
    not _HERE.get(connection.vendor), reason="it meddles with a server of the tests' own"
)

_calls: Counter[tuple[str, str, int]] = Counter()


def fail(run: Run) -> None:
    """Fail, so as to be called again a second later."""
    _calls[run.task_name, run.scheduled_for.isoformat(), run.attempt] += 1
    raise RuntimeError("as intended")


class Trouble(Protocol):
    """What befalls a database, and its end; a driver says one of these words of it."""

    words: tuple[str, ...]

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Silence:
    """No answer and no error; what is sent is lost, or arrives in the end."""

    words = ("OperationalError",)

    def __init__(self, network: Proxy, *, losing: bool) -> None:
        self._network, self._losing = network, losing

    def begin(self) -> None:
        self._network.go_silent(losing=self._losing)

    def end(self) -> None:
        self._network.recover()


class NoSuchName:
    """Connections end, and the host's name cannot be resolved any more."""

    words = ("resolve", "Unknown server host", "Unknown MySQL server host")

    def __init__(self, network: Proxy) -> None:
        self._network = network

    def begin(self) -> None:
        connection.settings_dict["HOST"] = "database.invalid"
        self._network.cut()

    def end(self) -> None:
        connection.settings_dict["HOST"] = "127.0.0.1"


class TooMany:
    """Connections end, and the server has no place for another one."""

    words = ("too many connections", "Too many connections")

    _ROLE = "ddc_somebody"
    _LEAST = 10

    def __init__(self, network: Proxy) -> None:
        self._network = network
        self._others = ExitStack()
        connection.settings_dict["USER"] = self._ROLE
        self._run(*self._MADE[connection.vendor])

    def begin(self) -> None:
        if connection.vendor == "mysql":
            for _ in range(self._LEAST):
                other = connection.copy()
                other.settings_dict.update(self._network.around)
                other.ensure_connection()
                self._others.enter_context(closing(other))
            self._before = self._ask("SELECT @@max_connections")
            self._run(f"SET GLOBAL max_connections = {self._LEAST}")
        else:
            self._run(f"ALTER ROLE {self._ROLE} CONNECTION LIMIT 0")
        self._network.cut()

    def end(self) -> None:
        if connection.vendor == "mysql":
            self._run(f"SET GLOBAL max_connections = {self._before}")
            self._others.close()
        else:
            self._run(f"ALTER ROLE {self._ROLE} CONNECTION LIMIT -1")

    _MADE = {
        # Who may do everything is let in all the same.
        "postgresql": (
            f"DO $$ BEGIN CREATE ROLE {_ROLE} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {_ROLE}",
            f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {_ROLE}",
        ),
        "mysql": (
            f"CREATE USER IF NOT EXISTS {_ROLE}@localhost",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO {_ROLE}@localhost",
        ),
    }

    @staticmethod
    def _run(*statements: str) -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    @staticmethod
    def _ask(sql: str) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]


TROUBLES: dict[str, Callable[[Proxy], Trouble]] = {
    "silence": lambda network: Silence(network, losing=True),
    "a cable pulled for a moment": lambda network: Silence(network, losing=False),
    "no such host": NoSuchName,
    "too many connections": TooMany,
}


@pytest.fixture
def network(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Let all new connections lead through a network; this thread's own is open already."""
    monkeypatch.setattr(silent_connections, "STEP", 0.05)
    monkeypatch.setattr(silent_connections, "PATIENCE", 20)
    monkeypatch.setattr(silent_connections, "watchdog", silent_connections.Watchdog())
    monkeypatch.setattr(database, "watchdog", silent_connections.watchdog)
    monkeypatch.setattr(database, "IDLE", 2)
    _calls.clear()
    connection.ensure_connection()
    settings = connection.settings_dict
    kept = {key: settings[key] for key in ("HOST", "PORT", "OPTIONS", "USER")}
    with proxy.before(settings) as (made, through):
        through["OPTIONS"]["connect_timeout"] = 2
        settings.update(through)
        try:
            yield made
        finally:
            settings.update(kept)


def _runs() -> int:
    return TaskRun.objects.filter(outcome="failed").count()


def _is_told(heard: Heard, words: tuple[str, ...]) -> bool:
    told = [event.error for event in heard.of("PersistenceFailed")]
    return any(word in error for error in told for word in words)


@pytest.mark.parametrize("kind", TROUBLES)
def test_a_database_that_cannot_be_reached_is_outlived_and_nothing_is_doubled(
    kind: str, network: Proxy, heard: Heard
) -> None:
    trouble, scheduler = TROUBLES[kind](network), Scheduler()
    scheduler.initialize([(f"t{n}", "* * * * *", fail, timedelta(0)) for n in range(3)])
    try:
        wait_until(lambda: _runs() >= 3, "runs before")
        trouble.begin()
        try:
            wait_until(lambda: not probes.report(scheduler).ready, "it knows")
            told, before = probes.report(scheduler), _runs()
            assert told.live and "the database refused the newest pass" in told.line
            wait_until(lambda: _is_told(heard, trouble.words), f"one of {trouble.words}")
        finally:
            trouble.end()
        wait_until(lambda: _runs() >= before + 6, "runs afterwards")
        wait_until(lambda: probes.report(scheduler).ready, "ready again")
    finally:
        assert scheduler.stop()
    rows = TaskRun.objects.exclude(started_at=None)
    started = Counter((row.task_name, row.scheduled_for.isoformat(), row.attempt) for row in rows)
    assert started == _calls
    assert set(started.values()) == {1}
    assert not TaskRun.objects.filter(outcome="running").exists()
