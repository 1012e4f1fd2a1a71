"""Tasks that come at once: decided once where they are alike, and each for itself elsewhere."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import digest_of_set
from django_declarative_cron.core.reconcile import Plan
from django_declarative_cron.models import ScheduledTask, SchedulerState, TaskOverride, TaskRun
from django_declarative_cron.store import database, reconcile
from django_declarative_cron.store.guard import LockedDeployment

from ..timeouts import TIMEOUT
from .conftest import Deployment, Stranger, nothing

pytestmark = pytest.mark.django_db

FIVE = timedelta(minutes=5)
NOW = datetime(2026, 12, 1, 12, 0, 30, tzinfo=UTC)
SELDOM, ALWAYS = "0 0 29 2 *", "* * * * *"
NAMES = ("a", "b", "ran", "paused", "paused-too", "off", "c")
PAUSES = {"paused": NOW + FIVE, "paused-too": NOW + 2 * FIVE, "off": None}


def _work(word: str) -> None:
    """Do nothing."""


def _registered() -> dict[str, dict[str, Any]]:
    """Register tasks: one runs, some are paused; of those due in this minute, one has succeeded."""
    SchedulerState.objects.all().delete()
    made = Deployment(0)
    made.now = NOW
    made.initialize()
    state = SchedulerState.objects.get()
    run = {"scheduled_for": NOW - FIVE, "outcome": "running", "running_slot": "ran"}
    TaskRun.objects.create(
        scheduler=state, task_name="ran", instance_id=made.member.instance, **run
    )
    done = {"scheduled_for": NOW, "started_at": NOW, "outcome": "succeeded"}
    TaskRun.objects.create(scheduler=state, task_name="c-due", **done)
    pause = {"kind": TaskOverride.Kind.PAUSE, "author": "somebody", "created_at": NOW}
    for name, until in PAUSES.items():
        TaskOverride.objects.create(scheduler=state, task_name=name, until=until, **pause)
    tasks = [(name, SELDOM) for name in NAMES] + [(f"{name}-due", ALWAYS) for name in NAMES]
    made.declarations = conf.declarations([(name, cron, nothing, FIVE) for name, cron in tasks])
    made.member = replace(made.member, digest="another")
    made.initialize()
    return {row["name"]: row for row in ScheduledTask.objects.values()}


def test_the_first_state_of_a_task_follows_from_history_and_acts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(database, "_CHUNK", 2)
    together = _registered()
    assert len({row["id"] for row in together.values()}) == len(together) == 2 * len(NAMES)
    assert {name for name, row in together.items() if row["running_run"]} == {"ran"}
    paused = {name: row["paused_until"] for name, row in together.items() if row["paused_since"]}
    assert paused == PAUSES
    due = {name for name, row in together.items() if row["boot_at"]}
    assert due == {f"{name}-due" for name in NAMES if name != "c"}


@pytest.mark.django_db(transaction=True)
def test_who_comes_second_to_a_new_deployment_finds_what_the_first_has_made(
    monkeypatch: pytest.MonkeyPatch, stranger: Stranger
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("one writer at a time: the second looks when the first is done")
    for limit in ("LOCK", "STATEMENT", "IDLE"):
        monkeypatch.setattr(database, limit, 2 * int(TIMEOUT))
    first, second = Deployment(3), Deployment(0)
    second.declarations = second.declare("t1", "t2", "x")
    second.member = replace(second.member, digest=digest_of_set(second.declarations))
    found: list[bool] = []
    there, go = threading.Event(), threading.Event()

    def survey(held: LockedDeployment, *args: Any) -> tuple[Plan, bool]:
        found.append(held.is_new)
        there.set()
        assert go.wait(TIMEOUT)
        return real(held, *args)

    def initialize(deployment: Deployment) -> None:
        try:
            deployment.initialize()
        finally:
            connection.close()

    real = reconcile.survey
    monkeypatch.setattr(reconcile, "survey", survey)
    with ThreadPoolExecutor(2) as pool:
        try:
            done = [pool.submit(initialize, first)]
            assert there.wait(TIMEOUT)
            done.append(pool.submit(initialize, second))
            stranger.wait_for_a_waiter()
        finally:
            go.set()
        for each in done:
            each.result(TIMEOUT)
    assert found == [True, False]
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {"t1", "t2", "x"}
    assert SchedulerState.objects.get().generation == 2
