"""The seal: what is as it was is not fetched, and whatever is not is noticed."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from django_declarative_cron.core.decide import BELIEVABLE
from django_declarative_cron.core.reconcile import Plan
from django_declarative_cron.models import (
    Outcome,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import guard, instances, seal, survey
from django_declarative_cron.store.guard import locked

from .conftest import Deployment, unchecked
from .statements import initialized, is_postgresql, statements

pytestmark = pytest.mark.django_db

FAR = timedelta(days=1)
OF_A_PLAN = ("name", "cron", "timezone", "retry_delay", "digest", "origin")


@pytest.fixture
def left() -> Deployment:
    """Give a deployment of three tasks whose only process has left."""
    made = initialized(3)
    instances.leave(made.member, made.now)
    made.member = replace(made.member, instance=uuid.uuid4())
    return made


@pytest.fixture
def sealed(left: Deployment) -> Deployment:
    if not is_postgresql:
        pytest.skip("the database takes no seal")
    return left


def _fetches_rows(made: Deployment) -> bool:
    """Initialise; tell whether any task's row was fetched."""
    cron = f'"{ScheduledTask._meta.db_table}"."cron"'
    return any(sql.startswith("SELECT") and cron in sql for sql in statements(made.initialize))


def _rows() -> list[dict[str, Any]]:
    return list(ScheduledTask.objects.order_by("name").values(*OF_A_PLAN))


def test_a_set_that_is_sealed_is_recognised_without_its_rows(sealed: Deployment) -> None:
    assert SchedulerState.objects.get().seal is not None
    assert not _fetches_rows(sealed)
    sealed.change("t1", cron="5 5 5 5 *")
    assert _fetches_rows(sealed)
    sealed.restart()
    assert not _fetches_rows(sealed)


def test_what_was_asked_before_another_made_the_deployment_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = Deployment(3), Deployment(3)
    lock, others = guard._lock, [first]

    def locked_late(*asked: Any, **how: Any) -> Any:
        found = lock(*asked, **how)
        while others:
            others.pop().initialize()
        return found

    monkeypatch.setattr(guard, "_lock", locked_late)
    second.initialize()
    assert not others
    taken = SchedulerState.objects.get().seal
    assert (taken is not None) == is_postgresql
    monkeypatch.undo()
    instances.leave(first.member, first.now)
    second.restart()
    assert SchedulerState.objects.get().seal == taken


@pytest.mark.parametrize("heard", ["infinity", "-infinity"])
def test_a_heartbeat_that_is_no_instant_keeps_nobody_from_starting(
    sealed: Deployment, heard: str
) -> None:
    sealed.initialize()
    table = SchedulerInstance._meta.db_table
    with unchecked(SchedulerInstance, "heartbeat_at"):
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET heartbeat_at = %s, stopped_at = NULL", [heard])
        sealed.restart()
    assert SchedulerInstance.objects.filter(pk=sealed.member.instance).exists()


def test_tasks_from_outside_are_beside_the_seal(sealed: Deployment) -> None:
    row = ScheduledTask.objects.get(name="t1")
    row.pk, row.name, row.origin = None, "posted", "http"
    row.save(force_insert=True)
    assert not _fetches_rows(sealed)


@pytest.mark.parametrize("kept", [None, 7])
def test_rows_that_are_not_sealed_are_compared_once(sealed: Deployment, kept: int | None) -> None:
    taken = SchedulerState.objects.get().seal
    SchedulerState.objects.update(seal=kept)
    assert _fetches_rows(sealed)
    assert SchedulerState.objects.get().seal == taken
    sealed.restart()
    assert not _fetches_rows(sealed)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", "another"),
        ("cron", "0 0 29 2 * "),
        ("timezone", "Etc/UTC"),
        ("retry_delay", timedelta(minutes=6)),
        ("retry_delay", None),
        ("digest", "0" * 64),
        ("origin", "http"),
    ],
)
def test_whatever_was_written_by_somebody_else_is_noticed(
    left: Deployment, column: str, value: object
) -> None:
    before = _rows()
    assert ScheduledTask.objects.filter(name="t1").update(**{column: value}) == 1
    assert _rows() != before
    left.initialize()
    assert _rows() == before


def test_a_row_that_is_gone_or_doubled_is_noticed(left: Deployment) -> None:
    before = _rows()
    ScheduledTask.objects.filter(name="t1").delete()
    left.initialize()
    assert _rows() == before
    row = ScheduledTask.objects.get(name="t1")
    # A second time too: it is not sealed with what did not belong there.
    for _ in range(2):
        row.pk, row.name = None, "t1b"
        row.save(force_insert=True)
        left.initialize()
        assert _rows() == before


def _task(**values: Any) -> Callable[[Deployment], object]:
    def write(made: Deployment) -> object:
        known = {"wake_at": FAR, **values}
        said = {k: made.now + v if isinstance(v, timedelta) else v for k, v in known.items()}
        return ScheduledTask.objects.filter(name="t1").update(**said)

    return write


def _run(**values: Any) -> Callable[[Deployment], object]:
    def write(made: Deployment) -> object:
        known: dict[str, Any] = {"outcome": Outcome.RUNNING, "running_slot": "t1", **values}
        return TaskRun.objects.create(
            scheduler=SchedulerState.objects.get(),
            task_name="t1",
            scheduled_for=made.now,
            reason="due",
            **known,
        )

    return write


def _instance(**values: Any) -> Callable[[Deployment], object]:
    def write(made: Deployment) -> object:
        return SchedulerInstance.objects.update(**values)

    return write


def _elsewhere(made: Deployment) -> object:
    """Let everything be to do in another deployment."""
    _run()(made)
    other = SchedulerState.objects.create(deployment="elsewhere")
    TaskRun.objects.update(scheduler=other)
    long_ago = datetime(1500, 1, 1, tzinfo=UTC)
    SchedulerInstance.objects.create(
        scheduler=other, pid=1, started_at=long_ago, heartbeat_at=long_ago
    )
    row = ScheduledTask.objects.get(name="t1")
    row.pk, row.scheduler, row.orphaned, row.wake_at = None, other, True, made.now + FAR
    return row.save(force_insert=True)


def _own(made: Deployment) -> object:
    made.member = replace(made.member, instance=SchedulerInstance.objects.get().pk)
    return made.member


TO_DO = {
    "interrupted": _task(orphaned=True),
    "owed": _task(boot_at=FAR),
    "requested": _task(run_requested_at=FAR),
    "discharged ahead": _task(discharged_at=FAR),
    "registered ahead": _task(registered_at=FAR),
    "pending": _task(pending_retry_until=FAR),
    "set aside": _task(origin="http", broken_reason="its type is not here"),
    "lost run": _task(running_run=77),
    "run of nobody": _run(),
    "silent": _instance(heartbeat_at="1500-01-01T00:00Z", stopped_at=None),
    "the same again": _own,
}
NOT_TO_DO = {
    "nothing": _task(),
    "no instants": _task(discharged_at=None, wake_at=None),
    "discharged just now by another clock": _task(discharged_at=BELIEVABLE),
    "registered just now by another clock": _task(registered_at=BELIEVABLE),
    "posted": _task(origin="http"),
    "pending, and awake": _task(pending_retry_until=FAR, wake_at=None),
    "set aside in settings": _task(broken_reason="gone"),
    "a run that waits": _run(outcome=Outcome.WAITING),
    "a run that has ended": _run(outcome=Outcome.SUCCEEDED, running_slot=None),
    "a run of an external worker": _run(reservation=uuid.uuid4()),
    "heard of": _instance(stopped_at=None),
    "silent since it left": _instance(heartbeat_at="1500-01-01T00:00Z"),
    "elsewhere": _elsewhere,
}


@pytest.mark.parametrize("case", [*TO_DO, *NOT_TO_DO])
def test_the_database_sees_what_is_to_be_done_as_a_comparison_sees_it(
    sealed: Deployment, case: str
) -> None:
    (TO_DO | NOT_TO_DO)[case](sealed)
    with locked(sealed.member) as held:
        assert held is not None
        asked = held, sealed.member, sealed.now
        seen = seal.look(*asked)
        compared = survey._compared(held, sealed.member, sealed.declarations, sealed.now)
    assert (seen.is_calm, compared.is_calm) == (case in NOT_TO_DO,) * 2


def test_what_is_to_be_done_is_done_where_all_rows_are_sealed(sealed: Deployment) -> None:
    _task(orphaned=True)(sealed)
    with locked(sealed.member) as held:
        assert held is not None
        found = survey.survey(held, sealed.member, sealed.declarations, sealed.now)
    assert found.plan == Plan(unchanged=sealed.declarations)
    sealed.initialize()
    assert ScheduledTask.objects.get(name="t1").wake_at == sealed.now


def test_a_set_is_sealed_without_the_rows_of_other_deployments(sealed: Deployment) -> None:
    before = SchedulerState.objects.get().seal
    _elsewhere(sealed)
    # As another set: it is sealed anew.
    SchedulerState.objects.filter(deployment="default").update(digest="", seal=None)
    sealed.initialize()
    assert SchedulerState.objects.get(deployment="default").seal == before
