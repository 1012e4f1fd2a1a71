"""Retention: what is forgotten, and what never is."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from django_declarative_cron.core.events import TaskRunStarted
from django_declarative_cron.core.options import Options
from django_declarative_cron.models import SchedulerState, TaskRun
from django_declarative_cron.runtime.housekeeping import EVERY, Housekeeping
from django_declarative_cron.store import pruning
from django_declarative_cron.store.database import DatabaseNow
from django_declarative_cron.store.guard import Member

NOW = datetime(2024, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def member(db: None) -> Member:
    SchedulerState.objects.create(deployment="default")
    SchedulerState.objects.create(deployment="other")
    return Member(
        using="default",
        deployment="default",
        instance=uuid.uuid4(),
        digest="",
        lease=timedelta(seconds=15),
        renew=timedelta(seconds=5),
        database_time=DatabaseNow(),
    )


def _runs(name: str, outcomes: str, *, age: int, deployment: str = "default") -> list[int]:
    """Make runs, oldest first: s(ucceeded), f(ailed), m(issed), r(unning)."""
    words = {"s": "succeeded", "f": "failed", "m": "missed", "r": "running"}
    scheduler = SchedulerState.objects.get(deployment=deployment)
    made = []
    for number, letter in enumerate(outcomes):
        at = NOW - age * DAY + number * timedelta(minutes=1)
        run = TaskRun.objects.create(
            scheduler=scheduler,
            task_name=name,
            scheduled_for=at,
            finished_at=None if letter == "r" else at,
            outcome=words[letter],
            reason="due",
            running_slot=name if letter == "r" else None,
        )
        made.append(run.pk)
    return made


def _left() -> set[int]:
    return set(TaskRun.objects.values_list("pk", flat=True))


def test_the_old_go_and_the_last_success_and_failure_stay(member: Member) -> None:
    old = _runs("t", "sfsfmm", age=100)
    young = _runs("t", "m", age=1)
    assert pruning.prune_old(member, NOW - 90 * DAY) == 4
    assert _left() == {old[2], old[3], *young}
    assert pruning.prune_old(member, NOW - 90 * DAY) == 0


def test_a_running_one_and_other_deployments_are_left_alone(member: Member) -> None:
    mine = _runs("t", "r", age=100)
    other = _runs("t", "mmm", age=100, deployment="other")
    assert pruning.prune_old(member, NOW) == 0
    assert pruning.prune_surplus(member, "t", 0) == 0
    assert _left() == {*mine, *other}


def test_beyond_the_newest_ones_the_rest_goes(member: Member) -> None:
    runs = _runs("t", "f" + "s" * 9, age=1)
    unrelated = _runs("u", "sss", age=1)
    assert pruning.prune_surplus(member, "t", 4) == 5
    assert _left() == {runs[0], *runs[-4:], *unrelated}
    assert pruning.prune_surplus(member, "t", 4) == 0


def test_batches_are_bounded_and_go_on_until_all_is_done(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 10)
    _runs("t", "m" * 25 + "s", age=100)
    assert [pruning.prune_old(member, NOW - 90 * DAY) for _ in range(4)] == [10, 10, 5, 0]


def test_a_leader_looks_for_surplus_at_every_so_manieth_run(member: Member) -> None:
    _runs("t", "s" * 8, age=1)
    keeping = Housekeeping(Options(HISTORY_MAX_RUNS=3))
    started = TaskRunStarted(
        at=NOW, task_name="t", scheduled_time=NOW, actual_time=NOW, run_count=EVERY + 1
    )
    keeping.note([started])
    keeping.step(member, NOW)
    assert len(_left()) == 8
    keeping.note([TaskRunStarted(at=NOW, task_name="t", scheduled_time=NOW, actual_time=NOW)])
    keeping.step(member, NOW)
    assert len(_left()) == 3


def test_ages_are_looked_at_once_a_minute(member: Member) -> None:
    keeping = Housekeeping(Options(HISTORY_MAX_AGE=90 * DAY))
    _runs("t", "mm", age=100)
    keeping.step(member, NOW)
    assert _left() == set()
    keeping.step(member, NOW)
    _runs("t", "mm", age=100)
    keeping.step(member, NOW + timedelta(seconds=30))
    assert len(_left()) == 2
    keeping.step(member, NOW + timedelta(seconds=60))
    assert _left() == set()
