"""Database connections: closed after each run, and outages, which are outlived and told truly."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.backends.signals import connection_created

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.monitoring.metrics import CachedQuery
from django_declarative_cron.runtime import probes
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.connections import Outage
from django_declarative_cron.runtime.runners import django_tasks, django_tasks_worker
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.store import database, manual_runs, silent_connections
from django_declarative_cron.testing import ManualClock

from ..timeouts import TIMEOUT, wait_until
from . import proxy
from .conftest import Heard, Live
from .proxy import Proxy

WORKERS = 4
ROUNDS = 5
OURS = 2  # The loop, and the heartbeat.


@pytest.fixture
def opened(transactional_db: None) -> Iterator[list[Any]]:
    """Collect the driver's connections that are made from now on; the test's own is open.

    The server would not do as a witness: what is closed here may live on there for a while.
    """
    connection.ensure_connection()
    found = list[Any]()

    def note(connection: Any, **_: object) -> None:
        found.append(connection.connection)

    connection_created.connect(note)
    yield found
    connection_created.disconnect(note)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="it asks the driver what is closed")
def test_p73_connections_do_not_pile_up(opened: list[Any], live: Live) -> None:
    live.configure(WORKERS=WORKERS)
    seen: list[int] = []

    def ask() -> None:
        assert User.objects.count() == 0
        seen.append(sum(not each.closed for each in list(opened)))

    def leaves_a_broken_transaction() -> None:
        transaction.set_autocommit(False)
        User.objects.create(username="nobody")

    names = [f"t{n}" for n in range(2 * WORKERS)]
    live.start(**dict.fromkeys(names, ask), broken=leaves_a_broken_transaction)
    for turn in range(1, ROUNDS + 1):
        live.ask(*names, "broken")
        live.until("TaskRunCompleted", turn * len(names))
        live.until("TaskRunFailed", turn)
    assert len(seen) == ROUNDS * len(names)
    assert min(seen) >= 1 and max(seen) <= WORKERS + OURS
    assert not User.objects.exists()


def test_threads_of_ours_connect_outside_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": True, "timeout": 5})
    found: list[Any] = []
    looked = threading.Event()

    def look(*args: Any) -> Any:
        found.append(connection.settings_dict["OPTIONS"])
        looked.set()
        return ()

    member: Any = SimpleNamespace(using="default")
    # A thread that leaves the pool has settings of its own from then on.
    scrape = threading.Thread(target=CachedQuery(look).get)
    scrape.start()
    scrape.join()
    monkeypatch.setattr(manual_runs, "requested", look)
    monkeypatch.setattr(django_tasks_worker, "EVERY", 0.01)
    looked.clear()
    ending = SimpleNamespace(asked=threading.Event())
    work: Any = SimpleNamespace(id=1, ending=ending)
    with django_tasks_worker.told_when_asked(work, member, system_clock):
        assert looked.wait(TIMEOUT)
    monkeypatch.setattr(django_tasks, "_still_waits", look)
    runner = django_tasks.TasksRunner(1, system_clock, lambda: member)
    monkeypatch.setattr(django_tasks, "_enqueue", lambda *given: None)
    handed: Any = SimpleNamespace(result=object(), work=work, again_at=0.0, since=0.0)
    looked.clear()
    runner._ask_for([handed], member)
    assert looked.wait(TIMEOUT)
    assert len(found) >= 3
    assert all(each == {"timeout": 5} for each in found)
    assert connection.settings_dict["OPTIONS"]["pool"], "that of the threads of the project"


@pytest.mark.parametrize("age", [0, 600, None])
def test_p73_a_connection_of_a_worker_is_closed_after_each_run(
    live: Live, monkeypatch: pytest.MonkeyPatch, age: int | None
) -> None:
    # The connections of all threads read the one dictionary.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    live.configure(WORKERS=1)
    seen: list[Any] = []

    def ask() -> None:
        assert User.objects.count() == 0
        seen.append(connection.connection)

    live.start(t=ask)
    for turn in (1, 2):
        live.ask("t")
        live.until("TaskRunCompleted", turn)
    assert seen[0] is not seen[1]


# --- the log of an outage ---


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2024, 1, 1, 10, tzinfo=UTC))


@pytest.fixture
def outage(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> Iterator[Outage]:
    with caplog.at_level(logging.INFO, logger="django_declarative_cron"):
        yield Outage(clock)


def _fails(outage: Outage, clock: ManualClock) -> None:
    outage.fails("evaluating", OSError("gone"), clock.now())


def test_five_minutes_of_refusals_are_told_in_eleven_lines(
    outage: Outage, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    told = []
    for second in range(301):
        _fails(outage, clock)
        told += [second] * (len(caplog.records) - len(told))
        clock.advance(clock.now() + timedelta(seconds=1))
    assert told == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    for _ in range(3):
        outage.ends()
    (recovered,) = caplog.records[10:]
    assert recovered.levelname == "INFO"
    assert recovered.getMessage() == "The database answers again after 301 refusals in 301 s."


@pytest.mark.parametrize(
    ("passes", "told"),
    [(1, ["ERROR"]), (2, ["ERROR", "INFO"] * 3)],
    ids=["between two refusals, is no recovery", "and another one, are one: what follows is new"],
)
def test_a_pass_that_succeeds(
    outage: Outage,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
    passes: int,
    told: list[str],
) -> None:
    for _ in range(3):
        _fails(outage, clock)
        for _ in range(passes):
            outage.ends()
    assert [record.levelname for record in caplog.records] == told


# --- a database that cannot be reached in whatever way ---

# The scheduler's connections lead through a network of the test; the test's own was open
# before and is not concerned.
_HERE = {
    "postgresql": connection.settings_dict["HOST"].startswith("/"),
    "mysql": "unix_socket" in connection.settings_dict.get("OPTIONS", {}),
}

_calls: Counter[tuple[str, str, int]] = Counter()


def fail(run: Run) -> None:
    """Fail, so as to be called again a second later."""
    _calls[run.task_name, run.scheduled_for.isoformat(), run.attempt] += 1
    raise RuntimeError("as intended")


class Trouble:
    """What befalls a database, and its end; a driver says one of these words of it."""

    words: tuple[str, ...] = ("OperationalError",)

    def __init__(self, network: Proxy) -> None:
        self._network = network

    def begin(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        self._network.recover()


class Silence(Trouble):
    """No answer and no error; what is sent is lost."""

    losing = True

    def begin(self) -> None:
        self._network.go_silent(losing=self.losing)


class PulledCable(Silence):
    """What is sent arrives in the end."""

    losing = False


class NoSuchName(Trouble):
    """Connections end, and the host's name cannot be resolved any more."""

    words = ("resolve", "Unknown server host", "Unknown MySQL server host")

    def begin(self) -> None:
        connection.settings_dict["HOST"] = "database.invalid"
        self._network.cut()

    def end(self) -> None:
        connection.settings_dict["HOST"] = "127.0.0.1"


class TooMany(Trouble):
    """Connections end, and the server has no place for another one."""

    words = ("too many connections", "Too many connections")

    _ROLE = "ddc_somebody"
    _LEAST = 10

    def __init__(self, network: Proxy) -> None:
        super().__init__(network)
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


@pytest.mark.skipif(
    not _HERE.get(connection.vendor), reason="it meddles with a server of the tests' own"
)
@pytest.mark.parametrize("kind", [Silence, PulledCable, NoSuchName, TooMany])
def test_a_database_that_cannot_be_reached_is_outlived_and_nothing_is_doubled(
    kind: type[Trouble], network: Proxy, heard: Heard
) -> None:
    trouble, scheduler = kind(network), Scheduler()
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
