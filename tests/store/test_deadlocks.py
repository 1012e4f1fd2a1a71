"""Two connections that wait for each other: whoever has to give in does it all again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections

from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.store import claims, database, overrides
from django_declarative_cron.store.faults import is_conflict
from django_declarative_cron.store.overrides import Act

from .conftest import PATIENCE, WAITING, Deployment, Stranger

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
    overrides.request_run(["t1"], Act(author="an operator", at=deployment.now))
    stranger.hold("taskoverride", task_name="t1")
    # Who has written more is spared by MySQL; who began to wait later, by PostgreSQL.
    stranger.write_much()
    with ThreadPoolExecutor(1) as pool:
        claim = pool.submit(
            lambda: claims.claim_due(
                deployment.member, deployment.by_name, deployment.now, reaping=False
            )
        )
        stranger.wait_for_a_waiter()
        stranger.hold("schedulerstate", deployment="default")
        stranger.let_go()
        started = claim.result(PATIENCE).claims
        pool.submit(connections.close_all).result(PATIENCE)
    assert len(started) == TaskRun.objects.filter(outcome="running").count() == 3
    assert TaskOverride.objects.get().ended_at is not None
    assert conflicts
