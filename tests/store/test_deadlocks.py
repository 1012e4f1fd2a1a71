"""Two connections that wait for each other: whoever has to give in does it all again."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.store import claims, database, operator_actions
from django_declarative_cron.store.database import is_conflict
from django_declarative_cron.store.operator_actions import Act

from ..threads import elsewhere
from .conftest import TIMEOUT, WAITING, Deployment, Stranger

pytestmark = pytest.mark.skipif(
    connection.vendor not in WAITING, reason="of one lock nobody waits for a second"
)


@pytest.fixture
def conflicts(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Collect the errors that made a transaction begin again."""
    found: list[BaseException] = []

    def seen(error: BaseException) -> bool:
        found.extend([error] if is_conflict(error) else [])
        return is_conflict(error)

    monkeypatch.setattr(database, "is_conflict", seen)
    return found


def test_a_claim_that_has_to_end_a_deadlock_is_made_again(
    deployment: Deployment, stranger: Stranger, conflicts: list[BaseException]
) -> None:
    # MySQL spares who has written more, PostgreSQL who has no limit of their own to look after.
    stranger.look_for_no_deadlocks()
    operator_actions.request_run(["t1"], Act(author="an operator", at=deployment.now))
    stranger.hold("taskoverride", task_name="t1")
    stranger.write_much()

    def hold_and_let_go() -> None:
        stranger.hold("schedulerstate", deployment="default")
        stranger.let_go()

    with elsewhere() as by_stranger, elsewhere() as by_claim:

        def close_the_circle(execute: Any, sql: str, *rest: Any) -> Any:
            """Let the stranger wait for us before we wait for the stranger."""
            if not waits and sql.startswith("UPDATE") and "taskoverride" in sql:
                waits.append(by_stranger(hold_and_let_go))
                stranger.wait_for_a_waiter()
            return execute(sql, *rest)

        def claim() -> list[claims.Claim]:
            with connection.execute_wrapper(close_the_circle):
                return claims.claim_due(
                    deployment.member, deployment.by_name, deployment.now, reaping=False
                ).claims

        waits: list[Future[None]] = []
        started = by_claim(claim).result(TIMEOUT)
        waits[0].result(TIMEOUT)
    assert len(started) == TaskRun.objects.filter(outcome="running").count() == 3
    assert TaskOverride.objects.get().ended_at is not None
    assert conflicts
