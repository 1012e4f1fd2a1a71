"""The watch over a deployment outlives its watchers, and no outage (P36)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.declarations.declaration import digest_of_set
from django_declarative_cron.models import SchedulerInstance, SchedulerState, TaskRun
from django_declarative_cron.store import claims, liveness, reconcile, recovery
from django_declarative_cron.store.guard import Candidacy, Member, Role, peek
from django_declarative_cron.store.liveness import Process
from django_declarative_cron.testing import ManualClock

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
        values: dict[str, Any] = {
            "using": "default",
            "deployment": "default",
            "instance": uuid.uuid4(),
            "digest": digest_of_set([]),
            "lease": timedelta(seconds=15),
            "renew": timedelta(seconds=5),
            "database_time": clock.database_time(),
        }
        member = Member(**{**values, **changes})
        reconcile.reconcile(member, Process("here", 1), [], clock.now())
        return member

    return come


def claim(member: Member, now: datetime, since: float) -> claims.Claimed:
    return claims.claim_due(member, {}, now, reaping=True, candidacy=Candidacy((at(since), now)))


def state() -> SchedulerState:
    return SchedulerState.objects.get()


def watched() -> tuple[datetime | None, datetime | None]:
    row = state()
    return row.watched_since, row.watched_until


def run_of(member: Member) -> TaskRun:
    return TaskRun.objects.create(
        scheduler=state(),
        task_name="t",
        scheduled_for=START,
        started_at=START,
        outcome="running",
        reason="due",
        instance_id=member.instance,
        running_slot="t",
    )


def test_a_leader_keeps_its_watch_in_the_row_with_each_renewal(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    leader = comes()
    assert watched() == (None, None)
    clock.advance(at(5))
    liveness.heartbeat(leader, (at(1), at(4)))
    assert watched() == (at(1), at(5))
    clock.advance(at(10))
    assert claim(leader, at(10), 7).role is Role.LEADING
    assert watched() == (at(1), at(10))
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


@pytest.mark.parametrize(
    ("watches_of_another", "since", "outcome"),
    [
        ([(1, 8)], 0, "interrupted"),
        ([(1, 6)], 12, "running"),  # Nobody reached the database between 6 and 12.
        ([], 12, "running"),
    ],
)
def test_who_takes_the_lead_goes_on_with_what_others_watched(
    comes: Callable[..., Member],
    clock: ManualClock,
    watches_of_another: list[tuple[int, int]],
    since: int,
    outcome: str,
) -> None:
    """A leader's machine is lost, and one takes over that has only just come."""
    leader = comes()
    liveness.heartbeat(leader, (at(0), at(0)))
    run = run_of(leader)
    for begin, end in watches_of_another:
        another = comes()
        clock.advance(at(end))
        liveness.heartbeat(another, (at(begin), at(end)))
    clock.advance(at(12))
    new = comes()
    clock.advance(at(15))
    claimed = claim(new, at(15), 12)
    assert claimed.role is Role.LEADING
    run.refresh_from_db()
    assert run.outcome == outcome
    assert watched() == (at(since), at(15))


def test_after_an_outage_silence_counts_from_its_end(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    leader, silent = comes(), comes()
    for second in range(0, 31, 5):
        clock.advance(at(second))
        liveness.heartbeat(leader, (at(0), at(second)))
        liveness.heartbeat(silent, (at(0), at(second)))
    run = run_of(silent)
    for second, outcome in ((60, "running"), (74, "running"), (75, "interrupted")):
        clock.advance(at(second))
        claim(leader, at(second), 60)
        run.refresh_from_db()
        assert (second, run.outcome) == (second, outcome)


def test_who_is_asked_to_stop_does_not_take_the_lead_that_it_gave_up(
    comes: Callable[..., Member], clock: ManualClock
) -> None:
    leader = comes()
    liveness.stop_requested(leader, clock.now())
    stopping = Candidacy(stands=lambda: False)
    claimed = claims.claim_due(leader, {}, clock.now(), reaping=False, candidacy=stopping)
    assert claimed.role is Role.STANDBY
    assert state().leader_id is None
    another = comes(digest="of another set")
    found = recovery.has_living_holder(another, leader.digest, None, None, clock.now())
    assert found  # It lives, and lets its runs end.
