"""The guard: one evaluating transaction after another, one leader, growing terms, signs of life."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import claims, guard, liveness, reconcile, recovery, results
from django_declarative_cron.store.guard import Candidacy, Member, Role, peek
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.testing import ManualClock

from ..timeouts import TIMEOUT
from .conftest import Deployment, Stranger


@pytest.fixture
def first(deployment: Deployment) -> Member:
    """Return the instance that leads; three tasks are due."""
    return deployment.member


@pytest.fixture
def join(deployment: Deployment) -> Callable[..., Member]:
    """Let another instance initialise the same set, and stand by."""

    def come(**changes: Any) -> Member:
        member = replace(deployment.member, instance=uuid.uuid4(), **changes)
        found = reconcile.reconcile(
            member, Process("there", 2), deployment.declarations, deployment.now
        )
        assert found.role is Role.STANDBY
        return member

    return come


def _claim(deployment: Deployment, member: Member, **grounds: Any) -> claims.Claimed:
    now = datetime.now(UTC)
    return claims.claim_due(member, deployment.by_name, now, **{"reaping": False, **grounds})


def _role(member: Member) -> Role:
    with guard.locked(member) as held:
        assert held is not None
        return guard.assume_role(held)


InThread = Callable[[Callable[[], object]], threading.Thread]


@pytest.fixture
def run_in_thread() -> Iterator[InThread]:
    """Run functions in threads of their own, each with its own connection."""
    started: list[threading.Thread] = []

    def run(function: Callable[[], object]) -> threading.Thread:
        def body() -> None:
            try:
                function()
            finally:
                connections.close_all()

        started.append(threading.Thread(target=body))
        started[-1].start()
        return started[-1]

    yield run
    for thread in started:
        thread.join(TIMEOUT)


@pytest.mark.requirement("001 Override Atomicity/1", "002 CRON-21")
def test_evaluating_transactions_happen_one_after_another(
    first: Member, join: Callable[..., Member], run_in_thread: InThread
) -> None:
    second, inside, waiting = join(), threading.Event(), threading.Event()
    order = []

    def hold() -> None:
        with guard.locked(first) as held:
            assert held is not None
            inside.set()
            # The other one is at the lock now, or will be; either way it comes after this.
            assert waiting.wait(TIMEOUT)
            order.append("first")

    def follow() -> None:
        assert inside.wait(TIMEOUT)
        waiting.set()
        with guard.locked(second):
            order.append("second")

    for thread in [run_in_thread(hold), run_in_thread(follow)]:
        thread.join(TIMEOUT)
    assert order == ["first", "second"]


@pytest.mark.requirement("001 Deterministic Behavior/2", "003 Test Methodology/5", "002 CRON-21")
def test_of_two_that_claim_at_once_one_starts_everything_and_one_nothing(
    deployment: Deployment, join: Callable[..., Member], run_in_thread: InThread
) -> None:
    both = [deployment.member, join()]
    SchedulerState.objects.update(leader=None, lease_expires_at=None)
    ready, found = threading.Barrier(2, timeout=TIMEOUT), list[claims.Claimed]()

    def claim(member: Member) -> None:
        ready.wait()
        found.append(_claim(deployment, member))

    for thread in [run_in_thread(partial(claim, each)) for each in both]:
        thread.join(TIMEOUT)
    assert sorted(len(each.claims) for each in found) == [0, 3]
    assert {each.role for each in found} == {Role.LEADING, Role.STANDBY}
    assert TaskRun.objects.filter(outcome="running").count() == 3


def test_a_term_grows_with_every_change_of_the_leader(
    first: Member, join: Callable[..., Member]
) -> None:
    second = join()
    term = SchedulerState.objects.get().term
    guard.release(first)
    assert _role(second) is Role.LEADING
    assert SchedulerState.objects.get().term == term + 1
    assert _role(first) is Role.STANDBY


@pytest.mark.requirement("002 CRON-22", "002 CRON-S05")
def test_a_lease_that_ran_out_is_taken_over_and_one_that_holds_is_not(
    first: Member, join: Callable[..., Member]
) -> None:
    second = join()
    for ends, role in ((1, Role.STANDBY), (-1, Role.LEADING)):
        expires = datetime.now(UTC) + timedelta(hours=ends)
        SchedulerState.objects.update(lease_expires_at=expires)
        assert _role(second) is role


def test_an_older_set_is_superseded_by_a_newer_one(deployment: Deployment, first: Member) -> None:
    deployment.change("t0", cron="1 1 1 1 *")
    deployment.initialize()
    assert _role(deployment.member) is Role.LEADING
    assert _role(first) is Role.SUPERSEDED
    seen = peek(first)
    assert seen is not None
    assert seen.role(first) is Role.SUPERSEDED


@pytest.mark.requirement("002 CRON-23")
def test_a_heartbeat_renews_the_lease_of_the_leader_only(
    first: Member, join: Callable[..., Member]
) -> None:
    second, long_ago = join(), datetime(2020, 1, 1, tzinfo=UTC)
    SchedulerState.objects.update(lease_expires_at=long_ago)
    assert liveness.heartbeat(second)
    assert SchedulerState.objects.get().lease_expires_at == long_ago
    assert liveness.heartbeat(first)
    expires = SchedulerState.objects.get().lease_expires_at
    assert expires is not None and expires > datetime.now(UTC)


@pytest.mark.requirement("001 Parallel Execution/3")
def test_one_running_row_for_a_task_is_all_the_database_takes(deployment: Deployment) -> None:
    values: dict[str, Any] = {
        "scheduler": SchedulerState.objects.get(),
        "task_name": "t0",
        "outcome": "running",
        "reason": "due",
        "running_slot": "t0",
    }
    TaskRun.objects.create(scheduled_for=deployment.now, **values)
    with pytest.raises(IntegrityError):
        TaskRun.objects.create(scheduled_for=deployment.now + timedelta(minutes=1), **values)


def test_a_task_whose_run_has_no_row_is_freed_at_the_next_initialisation(
    deployment: Deployment,
) -> None:
    ScheduledTask.objects.filter(name="t1").update(running_run=987_654, wake_at=None)
    deployment.restart()
    row = ScheduledTask.objects.get(name="t1")
    assert (row.running_run, row.wake_at is None) == (None, False)


# --- signs of life ---


def test_vouching_is_a_sign_of_life_and_no_renewal(first: Member) -> None:
    before = datetime.now(UTC) - timedelta(seconds=10)
    SchedulerInstance.objects.update(heartbeat_at=before)
    SchedulerState.objects.update(lease_expires_at=before)
    for _ in range(2):
        assert liveness.vouch(first)
        row = SchedulerInstance.objects.get()
        assert row.heartbeat_at > before
        assert row.mute_since == before
    assert SchedulerState.objects.get().lease_expires_at == before
    assert liveness.vouch(first, is_mute=False)
    assert SchedulerInstance.objects.get().mute_since is None
    assert liveness.heartbeat(first)


def test_vouching_brings_back_who_was_only_silent(first: Member) -> None:
    heard = datetime.now(UTC) - timedelta(hours=1)
    SchedulerInstance.objects.update(heartbeat_at=heard, stopped_at=heard + timedelta(minutes=1))
    assert liveness.vouch(first)
    row = SchedulerInstance.objects.get()
    assert row.stopped_at is None
    assert [since for since, _ in row.lapses] == [heard.isoformat()]


@pytest.mark.parametrize("sign", [liveness.vouch, liveness.give_up])
@pytest.mark.parametrize("end", ["leaves", "gives itself up", "never came"])
def test_no_sign_of_life_or_death_changes_anything_of_who_went(
    first: Member, end: str, sign: Callable[[Member], object]
) -> None:
    if end == "leaves":
        liveness.leave(first, datetime.now(UTC))
    elif end == "gives itself up":
        liveness.give_up(first)
    else:
        first = replace(first, instance=uuid.uuid4())
    before = list(SchedulerInstance.objects.values())
    assert not sign(first)
    assert list(SchedulerInstance.objects.values()) == before


def _silent(first: Member) -> Candidacy:
    """Let an instance be silent for longer than any may, observed by another one."""
    now = datetime.now(UTC)
    heard = now - 2 * first.longest_silence
    SchedulerInstance.objects.filter(id=first.instance).update(heartbeat_at=heard)
    SchedulerState.objects.update(lease_expires_at=heard)
    return Candidacy((now - timedelta(hours=3), now))


@pytest.mark.parametrize("is_heard", [True, False])
def test_who_is_heard_of_again_before_it_is_found_keeps_its_runs(
    deployment: Deployment, first: Member, join: Callable[..., Member], is_heard: bool
) -> None:
    second = join()
    runs = [claim.run for claim in _claim(deployment, first).claims]
    watched = _silent(first)
    if is_heard:
        assert liveness.vouch(first)
    assert _claim(deployment, second, reaping=True, candidacy=watched).role is Role.LEADING
    assert liveness.vouch(first)
    assert len(runs) == 3
    assert [results.is_open(first, run) for run in runs] == [is_heard] * 3


def test_who_is_just_being_found_is_heard_of_after_its_runs_have_ended(
    deployment: Deployment,
    first: Member,
    join: Callable[..., Member],
    run_in_thread: InThread,
    stranger: Stranger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    second = join()
    [run, *_] = [claim.run for claim in _claim(deployment, first).claims]
    watched, answers, interrupt = _silent(first), [], recovery.interrupt

    def ask() -> None:
        answers.append(liveness.vouch(first) and results.is_open(first, run))

    threads: list[threading.Thread] = []

    def interrupts(*given: Any) -> Any:
        threads.append(run_in_thread(ask))
        if connection.vendor != "sqlite":  # It does not show who waits for its one lock.
            stranger.wait_for_a_waiter()
        assert answers == []
        return interrupt(*given)

    monkeypatch.setattr(recovery, "interrupt", interrupts)
    assert _claim(deployment, second, reaping=True, candidacy=watched).role is Role.LEADING
    [asking] = threads
    asking.join(TIMEOUT)
    assert answers == [False]


def test_death_may_be_later_than_the_loss_of_the_lead(
    deployment: Deployment, join: Callable[..., Member]
) -> None:
    second = join(dead_after=timedelta(minutes=2))
    _claim(deployment, deployment.member)
    mine = TaskRun.objects.filter(instance=deployment.member.instance)
    for silent, outcome in ((1, "running"), (3, "interrupted")):
        now = datetime.now(UTC)
        heard = now - timedelta(minutes=silent)
        SchedulerInstance.objects.update(heartbeat_at=heard)
        SchedulerState.objects.update(lease_expires_at=heard)
        watched = Candidacy((now - timedelta(hours=3), now))
        assert _claim(deployment, second, reaping=True, candidacy=watched).role is Role.LEADING
        assert set(mine.values_list("outcome", flat=True)) == {outcome}


# --- the watch over a deployment outlives its watchers, and no outage (P36) ---

START = datetime(2024, 1, 1, 10, 0, 30, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def comes(db: None, clock: ManualClock) -> Callable[..., Member]:
    """Let an instance come and initialise the empty set, whose lease is 15 s."""

    def come(**changes: Any) -> Member:
        made = replace(Deployment(0).member, database_time=clock.database_time())
        member = replace(made, **changes)
        reconcile.reconcile(member, Process("here", 1), [], clock.now())
        return member

    return come


def _watched() -> tuple[datetime | None, datetime | None]:
    row = SchedulerState.objects.get()
    return row.watched_since, row.watched_until


def test_a_leader_keeps_its_watch_in_the_row_with_each_renewal(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    leader = comes()
    assert _watched() == (None, None)
    clock.advance(at(5))
    liveness.heartbeat(leader, (at(1), at(4)))
    assert _watched() == (at(1), at(5))
    clock.advance(at(10))
    grounds = Candidacy((at(7), at(10)))
    claimed = claims.claim_due(leader, {}, at(10), reaping=True, candidacy=grounds)
    assert claimed.role is Role.LEADING
    assert _watched() == (at(1), at(10))
    seen = peek(leader)
    assert seen is not None
    assert seen.watched == (at(1), at(10))


def test_everybody_keeps_his_watch_in_his_own_row(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    comes()
    standby = comes()
    mine = SchedulerInstance.objects.filter(id=standby.instance)
    clock.advance(at(12))
    for watch, since in (
        ((at(3), at(12)), at(3)),
        ((at(3), at(6)), at(12)),  # It has not looked for too long.
        ((at(3), at(7)), at(3)),
        (None, at(12)),
    ):
        liveness.heartbeat(standby, watch)
        assert mine.get().watched_since == since
    liveness.heartbeat(standby, (at(3), at(12)))
    liveness.vouch(standby)
    assert mine.get().watched_since == at(12)


def test_who_is_asked_to_stop_does_not_take_the_lead_that_it_gave_up(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    leader = comes()
    liveness.stop_requested(leader, clock.now())
    stopping = Candidacy(stands=lambda: False)
    claimed = claims.claim_due(leader, {}, clock.now(), reaping=False, candidacy=stopping)
    assert claimed.role is Role.STANDBY
    assert SchedulerState.objects.get().leader_id is None
    another = comes(digest="of another set")
    found = recovery.has_living_holder(another, leader.digest, None, None, clock.now())
    assert found  # It lives, and lets its runs end.


# --- the poll ---


@pytest.mark.requirement("001 Real-time bounds/3")
def test_the_idle_look_is_one_query_and_sees_what_is_there(
    first: Member, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        seen = peek(first)
    assert seen is not None
    row = SchedulerState.objects.get()
    assert (seen.leader, seen.term, seen.digest) == (first.instance, row.term, row.digest)
    assert seen.lease_expires_at == row.lease_expires_at
    assert seen.next_wake == ScheduledTask.objects.order_by("wake_at")[0].wake_at
    assert abs((seen.database_now - datetime.now(UTC)).total_seconds()) < 60
    assert not seen.is_vacant
    assert not seen.shows_silence(first, None)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["50 % off", "%s", "it's", 'a "b"', "back\\slash"])
def test_a_deployment_is_looked_at_by_its_name_whatever_is_in_it(name: str) -> None:
    made = Deployment(1)
    made.initialize()
    assert peek(replace(made.member, deployment=name)) is None
    made.member = replace(made.member, deployment=name)
    made.initialize()
    seen = peek(made.member)
    assert seen is not None
    assert (seen.leader, seen.digest) == (made.member.instance, made.member.digest)
