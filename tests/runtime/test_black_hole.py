"""A network that goes silent without an error: outlived, told of truly, and nothing doubled."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime import health
from django_declarative_cron.runtime.work import Run
from django_declarative_cron.store import database, limits, stall

from .. import proxy
from ..proxy import Proxy
from .conftest import PATIENCE, Heard

pytestmark = pytest.mark.skipif(
    connection.vendor == "sqlite" or connection.settings_dict["HOST"].startswith("127."),
    reason="there is no network between, or one that is not ours",
)

_calls: Counter[tuple[str, str, int]] = Counter()


def fail(run: Run) -> None:
    """Fail, so as to be called again a second later."""
    _calls[run.task_name, run.scheduled_for.isoformat(), run.attempt] += 1
    raise RuntimeError("as intended")


@pytest.fixture
def network(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Let all new connections lead through a network; this thread's own is open already."""
    monkeypatch.setattr(stall, "STEP", 0.05)
    monkeypatch.setattr(stall, "PATIENCE", 20)
    monkeypatch.setattr(stall, "watchdog", stall.Watchdog())
    monkeypatch.setattr(database, "watchdog", stall.watchdog)
    monkeypatch.setattr(limits, "IDLE", 2)
    _calls.clear()
    connection.ensure_connection()
    settings = connection.settings_dict
    kept = {key: settings[key] for key in ("HOST", "PORT", "OPTIONS")}
    with proxy.before(settings) as (made, through):
        through["OPTIONS"]["connect_timeout"] = 2
        settings.update(through)
        try:
            yield made
        finally:
            settings.update(kept)


def _wait_until(is_so: object, what: str) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE * 50)):
        if is_so():  # type: ignore[operator]
            return
        pause.wait(0.02)
    raise AssertionError(f"it never came: {what}")


def _runs() -> int:
    return TaskRun.objects.filter(outcome="failed").count()


@pytest.mark.parametrize("losing", [True, False])
def test_a_silent_network_is_outlived_and_nothing_is_doubled(
    losing: bool, network: Proxy, heard: Heard
) -> None:
    scheduler = Scheduler()
    scheduler.initialize([(f"t{n}", "* * * * *", fail, timedelta(0)) for n in range(3)])
    try:
        _wait_until(lambda: _runs() >= 3, "runs before")
        network.go_silent(losing=losing)
        _wait_until(lambda: not health.report(scheduler).ready, "it knows")
        told = health.report(scheduler)
        assert told.live and "the database refused the newest pass" in told.line
        before = _runs()
        network.recover()
        _wait_until(lambda: _runs() >= before + 6, "runs afterwards")
        _wait_until(lambda: health.report(scheduler).ready, "ready again")
    finally:
        network.recover()
        assert scheduler.stop()
    rows = TaskRun.objects.exclude(started_at=None)
    started = Counter((run.task_name, run.scheduled_for.isoformat(), run.attempt) for run in rows)
    assert started == _calls
    assert set(started.values()) == {1}
    assert not TaskRun.objects.filter(outcome="running").exists()
    assert len(heard.of("PersistenceFailed")) >= 1
