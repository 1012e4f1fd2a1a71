"""Rows that somebody else holds: what concerns them waits, and nothing else does."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import OperationalError, connection

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskOverride,
    TaskRun,
)
from django_declarative_cron.store import (
    claims,
    database,
    liveness,
    operator_actions,
    reconcile,
    results,
)
from django_declarative_cron.store.database import is_lock_timeout
from django_declarative_cron.store.guard import Candidacy
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result

from ..timeouts import TIMEOUT
from .conftest import Deployment, Stranger, claim

pytestmark = pytest.mark.usefixtures("impatient")

row_locks = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite locks the file, not rows"
)


def _names(started: list[claims.Claim]) -> set[str]:
    return {claim.task_name for claim in started}


def _results(deployment: Deployment, started: list[claims.Claim]) -> list[Result]:
    ended = deployment.now + timedelta(seconds=1)
    return [Result(each.run, each.task_name, ended, succeeded=True) for each in started]


@row_locks
def test_a_task_whose_row_is_held_starts_later_and_the_others_at_once(
    deployment: Deployment, stranger: Stranger
) -> None:
    stranger.hold("scheduledtask", name="t1")
    assert _names(claim(deployment).claims) == {"t0", "t2"}
    assert claim(deployment).claims == []
    stranger.let_go()
    assert _names(claim(deployment).claims) == {"t1"}


@row_locks
@pytest.mark.parametrize(("table", "column"), [("scheduledtask", "name"), ("taskrun", "task_name")])
def test_a_result_whose_row_is_held_waits_and_the_others_are_recorded(
    table: str, column: str, deployment: Deployment, stranger: Stranger
) -> None:
    waiting = _results(deployment, claim(deployment).claims)
    stranger.hold(table, **{column: "t1"})
    recorded = results.record(deployment.member, waiting, deployment.now)
    assert [each.task_name for each in recorded.held] == ["t1"]
    assert {event.task_name for event in recorded.events} == {"t0", "t2"}
    assert TaskRun.objects.get(outcome="running").task_name == "t1"
    stranger.let_go()
    recorded = results.record(deployment.member, recorded.held, deployment.now)
    assert (len(recorded.events), recorded.held) == (1, [])
    assert TaskRun.objects.filter(outcome="succeeded").count() == 3
    assert not ScheduledTask.objects.exclude(running_run=None).exists()


@row_locks
def test_a_row_that_cannot_be_left_out_holds_up_its_own_task_only(
    deployment: Deployment, stranger: Stranger
) -> None:
    operator_actions.request_run(["t1"], Act(author="an operator", at=deployment.now))
    stranger.hold("taskoverride", task_name="t1")
    assert _names(claim(deployment).claims) == {"t0", "t2"}
    stranger.let_go()
    assert _names(claim(deployment).claims) == {"t1"}
    assert TaskOverride.objects.get().ended_at is not None


@row_locks
@pytest.mark.parametrize(("table", "column"), [("scheduledtask", "name"), ("taskrun", "task_name")])
def test_a_run_of_the_dead_whose_row_is_held_is_found_later_and_the_others_at_once(
    table: str,
    column: str,
    deployment: Deployment,
    stranger: Stranger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A statement that waited for the row would wait for longer than the test allows.
    for limit in ("LOCK", "STATEMENT"):
        monkeypatch.setattr(database, limit, 2 * int(TIMEOUT))
    claim(deployment)
    heir = replace(deployment.member, instance=uuid4())
    reconcile.reconcile(heir, Process("here", 2), deployment.declarations, deployment.now)
    liveness.give_up(deployment.member)

    def take_over() -> set[str]:
        claimed = claims.claim_due(
            heir, deployment.by_name, deployment.now + timedelta(seconds=2), reaping=True
        )
        return _names(claimed.claims)

    if table == "taskrun" and os.environ.get("DDC_TEST_ISOLATION") and connection.vendor == "mysql":
        pytest.skip("gaps between rows are held as well: the others wait, too")
    stranger.hold(table, **{column: "t1"})
    began = time.monotonic()
    assert [take_over(), take_over()] == [{"t0", "t2"}, set()]
    assert time.monotonic() - began < TIMEOUT
    stranger.let_go()
    assert take_over() == {"t1"}
    assert SchedulerInstance.objects.get(id=deployment.member.instance).stopped_at is not None


@row_locks
def test_an_instance_whose_row_is_held_is_buried_later(
    deployment: Deployment, stranger: Stranger
) -> None:
    started = claim(deployment).claims
    dead, heir = deployment.member, replace(deployment.member, instance=uuid4())
    reconcile.reconcile(heir, Process("there", 2), deployment.declarations, deployment.now)
    liveness.give_up(dead)
    mine = SchedulerInstance.objects.filter(id=dead.instance)
    stranger.hold("schedulerinstance", pid=1)
    found = claims.claim_due(heir, deployment.by_name, deployment.now, reaping=True)
    assert _names(found.claims) == _names(started)
    assert mine.get().stopped_at is None
    stranger.let_go()
    claims.claim_due(heir, deployment.by_name, deployment.now, reaping=True)
    assert mine.get().stopped_at is not None


@row_locks
def test_whose_own_row_is_held_cannot_say_that_it_lives_and_is_not_taken_for_dead(
    deployment: Deployment, stranger: Stranger
) -> None:
    claim(deployment)
    heir = replace(deployment.member, instance=uuid4())
    reconcile.reconcile(heir, Process("here", 2), deployment.declarations, deployment.now)
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    first = SchedulerInstance.objects.filter(id=deployment.member.instance)
    first.update(heartbeat_at=hour_ago)
    stranger.hold("schedulerinstance", pid=1)
    with pytest.raises(OperationalError) as refused:
        liveness.heartbeat(deployment.member)
    assert is_lock_timeout(refused.value)
    lease = SchedulerState.objects.get().lease_expires_at
    assert lease is not None and lease > datetime.now(UTC) + timedelta(seconds=10)
    SchedulerState.objects.update(leader=None)
    candidacy = Candidacy((hour_ago, datetime.now(UTC)))

    def look() -> int:
        claims.claim_due(
            heir, deployment.by_name, deployment.now, reaping=True, candidacy=candidacy
        )
        return TaskRun.objects.filter(outcome="interrupted").count()

    assert (look(), first.get().stopped_at) == (0, None)
    stranger.let_go()
    assert (look(), first.get().stopped_at is None) == (3, False)


@row_locks
@pytest.mark.parametrize(
    ("table", "where", "named"),
    [
        ("scheduledtask", {"name": "t1"}, "rows of task 't1' are locked"),
        ("schedulerstate", {"deployment": "default"}, "rows of deployment 'default' are locked"),
    ],
)
def test_an_initialisation_says_which_rows_it_waited_for(
    table: str,
    where: dict[str, str],
    named: str,
    deployment: Deployment,
    stranger: Stranger,
) -> None:
    stranger.hold(table, **where)
    for name in ("t0", "t1", "t2"):
        deployment.change(name, cron="0 1 29 2 *")
    with pytest.raises(OperationalError, match=f"{named} by another transaction"):
        deployment.initialize()
    stranger.let_go()
    assert {row.cron for row in ScheduledTask.objects.all()} == {"0 0 29 2 *"}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="it is about SQLite's one lock")
def test_a_file_that_somebody_writes_to_is_waited_for_and_then_refused_clearly(
    deployment: Deployment, stranger: Stranger
) -> None:
    stranger.write()
    with pytest.raises(OperationalError) as refused:
        claim(deployment)
    assert is_lock_timeout(refused.value)
    with pytest.raises(OperationalError, match="another process kept the database file locked"):
        deployment.initialize()
    assert not TaskRun.objects.exists()
    stranger.let_go()
    started = claim(deployment).claims
    stranger.write()
    with pytest.raises(OperationalError):
        results.record(deployment.member, _results(deployment, started), deployment.now)
    stranger.let_go()
    assert liveness.heartbeat(deployment.member)
    recorded = results.record(deployment.member, _results(deployment, started), deployment.now)
    assert (len(recorded.events), recorded.held) == (3, [])
