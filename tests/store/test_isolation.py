"""Projects that ask for more isolation than Django's default: what is old decides nothing.

Under a snapshot, a plain read shows what was stored when the transaction first looked. Ours
look at the deployment's locked row first; a caller's may have looked long before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import guard, manual_runs, operator_actions, results
from django_declarative_cron.store.database import is_conflict
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.store.results import Result

from .. import threads as threads
from ..threads import Elsewhere
from .conftest import TIMEOUT, Deployment, Stranger, claim

LEVELS = {
    "postgresql": ["REPEATABLE_READ", "SERIALIZABLE"],
    "mysql": ["repeatable read", "serializable"],
}

pytestmark = pytest.mark.skipif(
    connection.vendor not in LEVELS, reason="there is but one isolation level"
)


def _option(level: str) -> Any:
    if connection.vendor == "mysql":
        return level
    from psycopg import IsolationLevel

    return IsolationLevel[level]


@pytest.fixture(params=LEVELS.get(connection.vendor, [""]))
def isolated(request: pytest.FixtureRequest, transactional_db: None) -> Iterator[None]:
    """Let the project ask for an isolation level."""
    before = connection.settings_dict["OPTIONS"]
    connection.close()
    connection.settings_dict["OPTIONS"] = {**before, "isolation_level": _option(request.param)}
    yield
    connection.close()
    connection.settings_dict["OPTIONS"] = before


@pytest.fixture
def elsewhere(isolated: None) -> Iterator[Elsewhere[Any]]:
    """Do things in another thread, which keeps its own connection."""
    with threads.elsewhere() as submit:
        yield submit


class Request:
    """What a web process does under ``ATOMIC_REQUESTS``: look at something, act later."""

    def __init__(self) -> None:
        self._transaction = transaction.atomic()

    def begin(self) -> None:
        """Look at what is stored."""
        self._transaction.__enter__()
        assert ScheduledTask.objects.get(name="t1").running_run is None

    def act(self, deed: Callable[[], object]) -> str:
        """Act in the same transaction; tell how it ended."""
        try:
            deed()
        except OperationalError as error:
            assert is_conflict(error), error
            self._transaction.__exit__(type(error), error, error.__traceback__)
            return "refused"
        except manual_runs.AlreadyRunningError as error:
            self._transaction.__exit__(type(error), error, error.__traceback__)
            return "told that it runs"
        self._transaction.__exit__(None, None, None)
        return "done"


def test_an_act_in_a_transaction_that_looked_before_takes_nothing_back(
    deployment: Deployment, elsewhere: Elsewhere[Any]
) -> None:
    request, act = Request(), Act(author="an operator", at=deployment.now)
    elsewhere(request.begin).result(TIMEOUT)
    # Where looking is locking, the task waits for the request, and nothing can go wrong.
    started = {each.task_name: each.run for each in claim(deployment).claims}
    ended = elsewhere(lambda: request.act(lambda: operator_actions.pause(["t1"], act))).result(
        TIMEOUT
    )
    row = ScheduledTask.objects.get(name="t1")
    assert row.running_run == started.get("t1")
    assert row.run_count == ("t1" in started)
    assert (row.paused_since is not None) == (ended == "done")
    # MySQL's locking reads show what is stored; PostgreSQL does not mix them with a snapshot.
    assert ended in ("done", "refused")


def test_a_run_in_the_foreground_is_not_started_beside_one_that_began_since(
    deployment: Deployment, elsewhere: Elsewhere[Any]
) -> None:
    request, act = Request(), Act(author="an operator", at=deployment.now)
    elsewhere(request.begin).result(TIMEOUT)
    is_running = "t1" in {each.task_name for each in claim(deployment).claims}
    declared = deployment.by_name["t1"]

    def run_now() -> object:
        return manual_runs.start_now(deployment.member, Process("here", 1), declared, act)

    ended = elsewhere(lambda: request.act(run_now)).result(TIMEOUT)
    assert ended in (("told that it runs", "refused") if is_running else ("done",))
    assert TaskRun.objects.filter(task_name="t1", outcome="running").count() == 1


def test_who_waited_for_the_lock_sees_what_was_claimed_meanwhile(
    deployment: Deployment, elsewhere: Elsewhere[Any], stranger: Stranger
) -> None:
    with guard.locked(deployment.member):
        second = elsewhere(lambda: claim(deployment).claims)
        stranger.wait_for_a_waiter()
        first = claim(deployment).claims
    assert (len(first), second.result(TIMEOUT)) == (3, [])
    assert TaskRun.objects.count() == 3


def test_who_waited_for_the_lock_records_nothing_a_second_time(
    deployment: Deployment, elsewhere: Elsewhere[Any], stranger: Stranger
) -> None:
    ended = deployment.now + timedelta(seconds=1)
    first = [Result(c.run, c.task_name, ended, succeeded=True) for c in claim(deployment).claims]
    later = [replace(result, succeeded=False, error="late") for result in first]
    with guard.locked(deployment.member):
        second = elsewhere(lambda: results.record(deployment.member, later, ended))
        stranger.wait_for_a_waiter()
        results.record(deployment.member, first, ended)
    assert len(second.result(TIMEOUT).events) == 3
    assert set(TaskRun.objects.values_list("outcome", "error")) == {("succeeded", "")}
    assert set(ScheduledTask.objects.values_list("failures", "running_run")) == {(0, None)}
