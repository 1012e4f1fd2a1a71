"""The guard: evaluating transactions one after another, one leader, growing terms."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from django_declarative_cron import conf
from django_declarative_cron.core.declarations.declaration import Declaration, digest_of_set
from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import claims, guard, liveness, reconcile, results
from django_declarative_cron.store.database import DatabaseNow
from django_declarative_cron.store.guard import Candidacy, Member, Role, peek
from django_declarative_cron.store.liveness import Process

from ..timeouts import TIMEOUT
from .conftest import Deployment


def _nothing() -> None:
    pass


@pytest.fixture
def declarations() -> list[Declaration]:
    return conf.declarations(
        [(f"t{n}", "* * * * *", _nothing, timedelta(minutes=5)) for n in range(20)]
    )


@pytest.fixture
def member(declarations: list[Declaration]) -> Callable[[], Member]:
    """Make instances that hold the same registration set."""

    def make(**changes: Any) -> Member:
        values: dict[str, Any] = {
            "using": "default",
            "deployment": "default",
            "instance": uuid.uuid4(),
            "digest": digest_of_set(declarations),
            "lease": timedelta(seconds=15),
            "renew": timedelta(seconds=5),
            "database_time": DatabaseNow(),
        }
        return Member(**{**values, **changes})

    return make


def _initialize(member: Member, declarations: list[Declaration]) -> Role:
    now = datetime.now(UTC)
    return reconcile.reconcile(member, Process("here", 1), declarations, now).role


def _after_a_watch() -> Candidacy:
    """Candidacy for the lead after hours without a gap."""
    now = datetime.now(UTC)
    return Candidacy((now - timedelta(hours=3), now))


@pytest.fixture
def threads() -> Iterator[Callable[..., threading.Thread]]:
    """Run functions in threads of their own, each with its own connection."""
    started: list[threading.Thread] = []

    def run(function: Callable[[], None]) -> threading.Thread:
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
    transactional_db: None,
    member: Callable[[], Member],
    declarations: list[Declaration],
    threads: Callable[..., threading.Thread],
) -> None:
    first, second = member(), member()
    _initialize(first, declarations)
    inside, order = threading.Event(), []

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

    waiting = threading.Event()
    both = [threads(hold), threads(follow)]
    for thread in both:
        thread.join(TIMEOUT)
    assert order == ["first", "second"]


@pytest.mark.requirement("001 Deterministic Behavior/2", "003 Test Methodology/5", "002 CRON-21")
def test_of_two_that_claim_at_once_one_starts_everything_and_one_nothing(
    transactional_db: None,
    member: Callable[[], Member],
    declarations: list[Declaration],
    threads: Callable[..., threading.Thread],
) -> None:
    both = [member(), member()]
    for each in both:
        _initialize(each, declarations)
    SchedulerState.objects.update(leader=None, lease_expires_at=None)
    ScheduledTask.objects.update(wake_at=datetime.now(UTC), boot_at=datetime.now(UTC))
    ready, results = threading.Barrier(2, timeout=TIMEOUT), {}
    by_name = {declaration.name: declaration for declaration in declarations}

    def claim(each: Member) -> Callable[[], None]:
        def go() -> None:
            ready.wait()
            now = datetime.now(UTC)
            results[each.instance] = claims.claim_due(each, by_name, now, reaping=False)

        return go

    for thread in [threads(claim(each)) for each in both]:
        thread.join(TIMEOUT)
    counts = sorted(len(claimed.claims) for claimed in results.values())
    assert counts == [0, 20]
    roles = {claimed.role for claimed in results.values()}
    assert roles == {Role.LEADING, Role.STANDBY}
    assert TaskRun.objects.filter(outcome="running").count() == 20


def test_a_term_grows_with_every_change_of_the_leader(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    first, second = member(), member()
    assert _initialize(first, declarations) is Role.LEADING
    assert _initialize(second, declarations) is Role.STANDBY
    term = SchedulerState.objects.get().term
    guard.release(first)
    with guard.locked(second) as held:
        assert held is not None
        assert guard.assume_role(held) is Role.LEADING
    assert SchedulerState.objects.get().term == term + 1
    with guard.locked(first) as held:
        assert held is not None
        assert guard.assume_role(held) is Role.STANDBY


@pytest.mark.requirement("002 CRON-22", "002 CRON-S05")
def test_a_lease_that_ran_out_is_taken_over_and_one_that_holds_is_not(
    transactional_db: None, member: Callable[..., Member], declarations: list[Declaration]
) -> None:
    # A lease also limits how long a transaction is idle: a short one ends on a busy machine.
    first, second = member(lease=timedelta(hours=1)), member()
    _initialize(first, declarations)
    assert _initialize(second, declarations) is Role.STANDBY
    for ends, role in ((1, Role.STANDBY), (-1, Role.LEADING)):
        expires = datetime.now(UTC) + timedelta(hours=ends)
        SchedulerState.objects.update(lease_expires_at=expires)
        with guard.locked(second) as held:
            assert held is not None
            assert guard.assume_role(held) is role


def test_an_older_set_is_superseded_by_a_newer_one(
    transactional_db: None, member: Callable[..., Member], declarations: list[Declaration]
) -> None:
    old = member()
    _initialize(old, declarations)
    newer = conf.declarations([("n", "* * * * *", _nothing, timedelta(minutes=5))])
    new = member(digest=digest_of_set(newer))
    assert _initialize(new, newer) is Role.LEADING
    with guard.locked(old) as held:
        assert held is not None
        assert guard.assume_role(held) is Role.SUPERSEDED
    seen = peek(old)
    assert seen is not None
    assert seen.role(old) is Role.SUPERSEDED


@pytest.mark.requirement("002 CRON-23")
def test_a_heartbeat_renews_the_lease_of_the_leader_only(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    first, second = member(), member()
    _initialize(first, declarations)
    _initialize(second, declarations)
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    SchedulerState.objects.update(lease_expires_at=long_ago)
    assert liveness.heartbeat(second)
    assert SchedulerState.objects.get().lease_expires_at == long_ago
    assert liveness.heartbeat(first)
    expires = SchedulerState.objects.get().lease_expires_at
    assert expires is not None
    assert expires > datetime.now(UTC)


@pytest.mark.requirement("001 Real-time bounds/3")
def test_the_idle_look_is_one_query_and_sees_what_is_there(
    transactional_db: None,
    member: Callable[[], Member],
    declarations: list[Declaration],
    django_assert_num_queries: Any,
) -> None:
    first = member()
    assert peek(first) is None
    _initialize(first, declarations)
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


@pytest.mark.requirement("001 Parallel Execution/3")
def test_one_running_row_for_a_task_is_all_the_database_takes(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    from django.db import IntegrityError

    _initialize(member(), declarations)
    state, now = SchedulerState.objects.get(), datetime.now(UTC)
    values: dict[str, Any] = {
        "scheduler": state,
        "task_name": "t0",
        "outcome": "running",
        "reason": "due",
        "running_slot": "t0",
    }
    TaskRun.objects.create(scheduled_for=now, **values)
    with pytest.raises(IntegrityError):
        TaskRun.objects.create(scheduled_for=now + timedelta(minutes=1), **values)


def test_silence_counts_only_for_who_has_watched_for_a_whole_lease(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    by_name = {declaration.name: declaration for declaration in declarations}
    first, second = member(), member()
    _initialize(first, declarations)
    ScheduledTask.objects.update(wake_at=datetime.now(UTC), boot_at=datetime.now(UTC))
    claims.claim_due(first, by_name, datetime.now(UTC), reaping=False)
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    SchedulerInstance.objects.update(heartbeat_at=hour_ago)
    SchedulerState.objects.update(lease_expires_at=hour_ago)
    assert _initialize(second, declarations) is Role.LEADING
    claims.claim_due(second, by_name, datetime.now(UTC), reaping=True)
    assert TaskRun.objects.filter(outcome="running", instance=first.instance).count() == 20
    claims.claim_due(second, by_name, datetime.now(UTC), reaping=True, candidacy=_after_a_watch())
    assert TaskRun.objects.filter(outcome="interrupted", instance=first.instance).count() == 20


def test_a_task_whose_run_has_no_row_is_freed_at_the_next_initialisation(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    _initialize(member(), declarations)
    ScheduledTask.objects.filter(name="t3").update(running_run=987_654, wake_at=None)
    _initialize(member(), declarations)
    row = ScheduledTask.objects.get(name="t3")
    assert (row.running_run, row.wake_at is None) == (None, False)


def test_vouching_is_a_sign_of_life_and_no_renewal(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    first = member()
    _initialize(first, declarations)
    before = datetime.now(UTC) - timedelta(seconds=10)
    SchedulerInstance.objects.update(heartbeat_at=before)
    SchedulerState.objects.update(lease_expires_at=before)
    for _ in range(2):
        assert liveness.vouch(first)
        row = SchedulerInstance.objects.get()
        assert row.heartbeat_at > before
        assert row.mute_since == before
    assert SchedulerState.objects.get().lease_expires_at == before
    assert liveness.heartbeat(first)
    assert SchedulerInstance.objects.get().mute_since is None


def test_vouching_brings_back_who_was_only_silent(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    first = member()
    _initialize(first, declarations)
    heard = datetime.now(UTC) - timedelta(hours=1)
    SchedulerInstance.objects.update(heartbeat_at=heard, stopped_at=heard + timedelta(minutes=1))
    assert liveness.vouch(first)
    row = SchedulerInstance.objects.get()
    assert row.stopped_at is None
    assert [since for since, _ in row.lapses] == [heard.isoformat()]


@pytest.mark.parametrize("end", ["leaves", "gives itself up", "never came"])
def test_vouching_brings_back_nobody_who_went(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration], end: str
) -> None:
    first, now = member(), datetime.now(UTC)
    if end != "never came":
        _initialize(first, declarations)
    if end == "leaves":
        liveness.leave(first, now)
    elif end == "gives itself up":
        liveness.give_up(first)
    before = list(SchedulerInstance.objects.values())
    assert not liveness.vouch(first)
    assert list(SchedulerInstance.objects.values()) == before


def test_who_has_left_in_order_is_not_counted_as_dead_afterwards(
    transactional_db: None, member: Callable[[], Member], declarations: list[Declaration]
) -> None:
    first = member()
    _initialize(first, declarations)
    liveness.leave(first, datetime.now(UTC))
    before = list(SchedulerInstance.objects.values())
    liveness.give_up(first)
    assert list(SchedulerInstance.objects.values()) == before


def test_death_may_be_later_than_the_loss_of_the_lead(
    transactional_db: None, member: Callable[..., Member], declarations: list[Declaration]
) -> None:
    by_name = {declaration.name: declaration for declaration in declarations}
    first, second = member(), member(dead_after=timedelta(minutes=2))
    for each in (first, second):
        _initialize(each, declarations)
    ScheduledTask.objects.update(wake_at=datetime.now(UTC), boot_at=datetime.now(UTC))
    claims.claim_due(first, by_name, datetime.now(UTC), reaping=False)
    for silent, outcome in (
        (timedelta(minutes=1), "running"),
        (timedelta(minutes=3), "interrupted"),
    ):
        SchedulerInstance.objects.update(heartbeat_at=datetime.now(UTC) - silent)
        SchedulerState.objects.update(lease_expires_at=datetime.now(UTC) - silent)
        now, candidacy = datetime.now(UTC), _after_a_watch()
        claimed = claims.claim_due(second, by_name, now, reaping=True, candidacy=candidacy)
        assert claimed.role is Role.LEADING
        assert set(
            TaskRun.objects.filter(instance=first.instance).values_list("outcome", flat=True)
        ) == {outcome}


def test_a_late_finisher_never_overwrites_a_newer_run(
    transactional_db: None,
    member: Callable[[], Member],
    declarations: list[Declaration],
    threads: Callable[..., threading.Thread],
) -> None:
    by_name = {declaration.name: declaration for declaration in declarations}
    first, second = member(), member()
    for each in (first, second):
        _initialize(each, declarations)
    ScheduledTask.objects.update(wake_at=datetime.now(UTC), boot_at=datetime.now(UTC))

    def claim_of_t0(who: Member) -> claims.Claim:
        claimed = claims.claim_due(who, by_name, datetime.now(UTC), reaping=True)
        [found] = [claim for claim in claimed.claims if claim.task_name == "t0"]
        return found

    old = claim_of_t0(first)
    liveness.give_up(first)
    new = claim_of_t0(second)
    assert (new.started.attempt, new.term) == (old.started.attempt + 1, old.term + 1)
    told: dict[str, list[str]] = {}
    done = threading.Event()

    def finish(who: Member, claim: claims.Claim, name: str, *, succeeded: bool) -> None:
        now = datetime.now(UTC)
        result = results.Result(claim.run, "t0", now, succeeded=succeeded)
        told[name] = [type(e).__name__ for e in results.record(who, [result], now).events]
        done.set()

    # The older one has the lock first, in a connection of its own.
    threads(lambda: finish(first, old, "late", succeeded=False))
    assert done.wait(TIMEOUT)
    finish(second, new, "newer", succeeded=True)
    finish(first, old, "again", succeeded=False)
    assert told == {
        "late": ["TaskRunResultDiscarded"],
        "newer": ["TaskRunCompleted"],
        "again": ["TaskRunResultDiscarded"],
    }
    runs = TaskRun.objects.filter(task_name="t0").order_by("id")
    assert list(runs.values_list("pk", "outcome")) == [
        (old.run, "interrupted"),
        (new.run, "succeeded"),
    ]
    task = ScheduledTask.objects.get(name="t0")
    assert task.pending_retry_until is None
    assert task.last_success_at is not None


# --- the poll ---


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


@pytest.mark.parametrize("given", [None, {}, {"EXTERNAL_WORKERS": False}, {"WORKERS": 3}])
@pytest.mark.parametrize("is_on", [True, False])
def test_whether_there_are_workers_outside_is_what_the_options_say(given: Any, is_on: bool) -> None:
    said = {**(given or {}), "EXTERNAL_WORKERS": True} if is_on else given
    with override_settings(DECLARATIVE_CRON=said):
        assert conf.external_workers() is conf.lenient_options().EXTERNAL_WORKERS is is_on
