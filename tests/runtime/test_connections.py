"""Database connections: closed after each run, and the log of an outage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.backends.signals import connection_created

from django_declarative_cron import Scheduler
from django_declarative_cron.monitoring.exporter import CachedQuery
from django_declarative_cron.runtime import connections
from django_declarative_cron.runtime.clock import system_clock
from django_declarative_cron.runtime.connections import Outage
from django_declarative_cron.runtime.runners import django_tasks, django_tasks_worker
from django_declarative_cron.store import manual_runs
from django_declarative_cron.testing import ManualClock

from ..timeouts import TIMEOUT
from .conftest import FIVE_MINUTES, NEVER_TODAY, Heard

RunNow = Callable[..., None]

WORKERS = 4
ROUNDS = 5
OURS = 2  # The loop, and the heartbeat.


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """Collect the driver's connections that are made from now on.

    The server would not do as a witness: what is closed here may live on there for a while.
    """
    found = list[Any]()

    def note(connection: Any, **_: object) -> None:
        found.append(connection.connection)

    connection_created.connect(note)
    yield found
    connection_created.disconnect(note)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="it asks the driver what is closed")
def test_p73_connections_do_not_pile_up(
    opened: list[Any],
    scheduler: Scheduler,
    heard: Heard,
    run_now: RunNow,
    settings: Any,
) -> None:
    settings.DECLARATIVE_CRON = {"WORKERS": WORKERS}
    scheduler._renew()
    seen: list[int] = []

    def ask() -> None:
        assert User.objects.count() == 0
        seen.append(sum(not each.closed for each in list(opened)))

    def leaves_a_broken_transaction() -> None:
        transaction.set_autocommit(False)
        User.objects.create(username="nobody")

    names = [f"t{n}" for n in range(2 * WORKERS)]
    callbacks = {**dict.fromkeys(names, ask), "broken": leaves_a_broken_transaction}
    scheduler.initialize([(n, NEVER_TODAY, c, FIVE_MINUTES) for n, c in callbacks.items()])
    for turn in range(1, ROUNDS + 1):
        run_now(*names, "broken")
        heard.wait_for("TaskRunCompleted", turn * len(names))
        heard.wait_for("TaskRunFailed", turn)
    assert len(seen) == ROUNDS * len(names)
    assert min(seen) >= 1 and max(seen) <= WORKERS + OURS
    assert not User.objects.exists()


def test_threads_of_ours_connect_outside_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": True, "timeout": 5})
    found: list[Any] = []

    def look() -> None:
        connections.leave_pool("default")
        found.append(connection.settings_dict["OPTIONS"])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [{"timeout": 5}]
    assert connection.settings_dict["OPTIONS"]["pool"]


def test_threads_that_ask_for_others_connect_outside_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


@pytest.mark.parametrize("age", [0, 600, None])
def test_p73_a_connection_of_a_worker_is_closed_after_each_run(
    scheduler: Scheduler,
    heard: Heard,
    run_now: RunNow,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    age: int | None,
) -> None:
    # The connections of all threads read the one dictionary.
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", age)
    settings.DECLARATIVE_CRON = {"WORKERS": 1}
    scheduler._renew()
    seen: list[Any] = []

    def ask() -> None:
        assert User.objects.count() == 0
        seen.append(connection.connection)

    scheduler.initialize([("t", NEVER_TODAY, ask, FIVE_MINUTES)])
    for turn in (1, 2):
        run_now("t")
        heard.wait_for("TaskRunCompleted", turn)
    assert seen[0] is not seen[1]


START = datetime(2024, 1, 1, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _all_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, logger="django_declarative_cron"):
        yield


def test_five_minutes_of_refusals_are_told_in_eleven_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    told = []
    for second in range(301):
        outage.fails("evaluating", OSError("gone"), clock.now())
        told += [second] * (len(caplog.records) - len(told))
        clock.advance(clock.now() + timedelta(seconds=1))
    assert told == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    for _ in range(3):
        outage.ends()
    (recovered,) = caplog.records[10:]
    assert recovered.levelname == "INFO"
    assert recovered.getMessage() == "The database answers again after 301 refusals in 301 s."


def test_a_pass_that_succeeds_between_two_refusals_is_no_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    for _ in range(3):
        outage.fails("looking after the registration set", OSError("gone"), clock.now())
        outage.ends()
    assert len(caplog.records) == 1


def test_the_next_outage_is_told_at_once_again(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock(START)
    outage = Outage(clock)
    for _ in range(2):
        outage.fails("evaluating", OSError("gone"), clock.now())
        outage.ends()
        outage.ends()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"] * 2
