"""Registering a set: the first state of its tasks, and how it is kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import digest_of_set
from django_declarative_cron.core.reconcile import Plan
from django_declarative_cron.models import (
    RegistrationPart,
    RegistrationSet,
    ScheduledTask,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import database, reconcile, registration_sets
from django_declarative_cron.store.guard import LockedDeployment

from ..timeouts import TIMEOUT
from .conftest import Deployment, Stranger, claim, nothing

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


# --- sets too large for one row: kept in parts, which other sets share ---


TASKS = 40


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Give a deployment whose set has forty tasks, where five are many."""
    monkeypatch.setattr(registration_sets, "PART", 5)
    made = Deployment(TASKS)
    made.initialize()
    return made


def _change(made: Deployment, **cron_of: str) -> None:
    for name, cron in cron_of.items():
        made.change(name, cron=cron)
    made.initialize()


def _of_newest() -> dict[str, Any]:
    newest = RegistrationSet.objects.order_by("-generation")[0]
    found = registration_sets.of_set("default", newest)
    assert len(found) == len({each["name"] for each in found})
    return {each["name"]: each for each in found}


def test_a_small_set_is_in_its_own_row() -> None:
    Deployment(3).initialize()
    assert [task["name"] for task in RegistrationSet.objects.get().tasks] == ["t0", "t1", "t2"]
    assert RegistrationPart.objects.count() == 0


def test_a_task_that_begins_anew_as_it_is_claimed_is_of_a_generation_that_comes_once() -> None:
    made = Deployment(3)
    made.initialize()
    made.owe_all()
    ScheduledTask.objects.filter(name="t1").update(cron="1 1 1 1 *")
    assert len(claim(made).claims) == 2
    newest = RegistrationSet.objects.order_by("-generation")[0]
    assert {name for name, task in _of_newest().items() if task["fresh"]} == {"t1"}
    assert SchedulerState.objects.get().generation == newest.generation == 2
    _change(made, t2="2 2 2 2 *")
    assert SchedulerState.objects.get().generation == 3


def test_a_large_set_is_kept_in_parts_and_read_as_a_whole(made: Deployment) -> None:
    row = RegistrationSet.objects.get()
    assert row.tasks == []
    assert len(row.parts) == RegistrationPart.objects.count() > 4
    found = _of_newest()
    assert found.keys() == {f"t{number}" for number in range(TASKS)}
    assert all(task["fresh"] for task in found.values())
    assert found["t7"]["cron"] == "0 0 29 2 *"


def test_the_next_set_shares_the_parts_in_which_nothing_changed(made: Deployment) -> None:
    before = set(RegistrationPart.objects.values_list("digest", flat=True))
    _change(made, t7="5 5 5 5 *")
    written = set(RegistrationPart.objects.values_list("digest", flat=True)) - before
    # The one that is fresh, and those that were with it.
    assert 1 <= len(written) <= 2
    found = _of_newest()
    assert found.keys() == {f"t{number}" for number in range(TASKS)}
    assert {name for name, task in found.items() if task["fresh"]} == {"t7"}
    assert found["t7"]["cron"] == "5 5 5 5 *"


def test_a_part_goes_with_the_last_set_that_has_it(made: Deployment) -> None:
    _change(made, t7="5 5 5 5 *")
    RegistrationSet.objects.order_by("generation")[0].delete()
    registration_sets.forget_parts(made.member)
    used = {digest for digest, _ in RegistrationSet.objects.get().parts}
    assert set(RegistrationPart.objects.values_list("digest", flat=True)) == used
    assert _of_newest().keys() == {f"t{number}" for number in range(TASKS)}


def test_a_part_that_is_lost_leaves_a_hole_that_is_seen(made: Deployment) -> None:
    row = RegistrationSet.objects.get()
    RegistrationPart.objects.filter(digest=row.parts[0][0]).delete()
    found = registration_sets.of_set("default", row)
    assert found.count(None) == 1
    assert 0 < len(found) - 1 < TASKS
    assert registration_sets.of_set("default", RegistrationSet(parts=[7, ["a"]])) == [None, None]


def test_parts_are_shared_as_they_are_stored_by_now(made: Deployment) -> None:
    if not connection.features.has_select_for_update:
        pytest.skip("a writer of this database is alone")
    with CaptureQueriesContext(connection) as asked:
        _change(made, t7="5 5 5 5 *")
    table = RegistrationPart._meta.db_table
    looks = [q["sql"] for q in asked if q["sql"].startswith("SELECT") and table in q["sql"]]
    assert len(looks) == 1
    assert looks[0].endswith("FOR UPDATE")
