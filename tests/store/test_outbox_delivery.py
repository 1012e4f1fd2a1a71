"""Events are handed out in order, those of one task to one deliverer at a time."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from django_declarative_cron.core import events
from django_declarative_cron.models import OutboxEvent, SchedulerState
from django_declarative_cron.store import outbox
from django_declarative_cron.store.guard import Member

from .conftest import Deployment

HOLD = timedelta(seconds=30)
Put = Callable[..., None]


@pytest.fixture
def deployment(transactional_db: None) -> Deployment:
    made = Deployment(1)
    made.initialize()
    return made


@pytest.fixture
def member(deployment: Deployment) -> Member:
    """Give who leads."""
    return deployment.member


@pytest.fixture
def other(member: Member) -> Member:
    """Give another instance, which has just given up its lead and delivers what it still can."""
    return replace(member, instance=uuid.uuid4())


@pytest.fixture
def put(deployment: Deployment) -> Put:
    """Write events of tasks, each named by its place."""

    def write(*names: str, **fields: Any) -> None:
        state = SchedulerState.objects.get()
        already = Counter(OutboxEvent.objects.values_list("task_name", flat=True))
        for name in names:
            OutboxEvent.objects.create(
                scheduler=state,
                event_id=uuid.uuid4(),
                type="job.started",
                task_name=name,
                body=f"{name}{already[name]}",
                created_at=deployment.now,
                **fields,
            )
            already[name] += 1

    return write


def bodies(taken: list[list[OutboxEvent]]) -> list[list[str]]:
    return [[parcel.body for parcel in parcels] for parcels in taken]


def take(member: Member, tasks: int = 100) -> list[list[OutboxEvent]]:
    return outbox.take(member, HOLD, tasks, leaving=True)


def test_each_task_comes_as_a_whole_oldest_first(member: Member, put: Put) -> None:
    put("b", "a", "b", "a", "c")
    assert bodies(take(member)) == [["b0", "b1"], ["a0", "a1"], ["c0"]]


def test_of_one_task_come_so_many_at_once(
    member: Member, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_OF_ONE", 2)
    put("a", "a", "a", "b")
    taken = take(member)
    assert bodies(taken) == [["a0", "a1"], ["b0"]]
    outbox.give_back(member, [parcel for parcels in taken for parcel in parcels], [])
    assert bodies(take(member)) == [["a2"]]


def test_what_is_in_somebodys_hands_is_given_to_nobody_else(
    member: Member, other: Member, put: Put
) -> None:
    put("a", "a")
    taken = take(member)
    put("a", "b")
    assert bodies(take(other)) == [["b0"]]
    outbox.give_back(member, taken[0][:1], [])
    assert bodies(take(other)) == [["a1", "a2"]]


def test_only_the_leader_is_given_any(member: Member, other: Member, put: Put) -> None:
    put("a")
    assert outbox.take(other, HOLD, 100) == []
    assert bodies(outbox.take(member, HOLD, 100)) == [["a0"]]


def test_what_a_dead_process_had_in_its_hands_is_given_to_the_next(
    member: Member, other: Member, put: Put
) -> None:
    put("a", "a")
    (lost,) = outbox.take(member, timedelta(0), 100)
    assert bodies(take(other)) == [["a0", "a1"]]
    # It lived after all: what it says of them now changes nothing.
    outbox.give_back(member, lost, [(lost[1], "late", timedelta(0))])
    assert [(row.body, row.error) for row in OutboxEvent.objects.all()] == [("a0", ""), ("a1", "")]
    assert take(member) == []


def test_what_is_refused_waits_with_everything_behind_it(member: Member, put: Put) -> None:
    put("a", "a", "b")
    (first, _), (b,) = take(member)
    outbox.give_back(member, [b], [(first, "400 Bad Request", timedelta(hours=1))])
    assert take(member) == []
    row = OutboxEvent.objects.order_by("id")[0]
    assert (row.attempts, row.error) == (1, "400 Bad Request")
    OutboxEvent.objects.filter(pk=row.pk).update(next_attempt_at=row.created_at)
    ((again, _),) = take(member)
    assert (again.id, again.attempts) == (first.id, 1)


def test_what_is_refused_for_too_long_is_dead_lettered_and_the_next_goes_on(
    member: Member, deployment: Deployment, put: Put
) -> None:
    long_ago = deployment.now - timedelta(days=4)
    put("a", attempts=7, error="400 Bad Request")
    OutboxEvent.objects.update(refused_since=long_ago, next_attempt_at=deployment.now + HOLD)
    put("a")
    (told,) = outbox.tidy(member, timedelta(days=3), 10)
    assert isinstance(told, events.EventDeadLettered)
    assert (told.about, told.attempts, told.error) == ("a", 7, "400 Bad Request")
    assert bodies(take(member)) == [["a1"]]
    assert outbox.tidy(member, timedelta(days=3), 10) == []
    assert outbox.requeue(member.using, member.deployment) == 1
    outbox.give_back(member, [], [])
    assert bodies(take(member)) == [["a0", "a1"]]


def test_the_time_of_a_refused_event_counts_from_its_first_refusal(
    member: Member, deployment: Deployment, put: Put
) -> None:
    """An old event has it whole, and once more after somebody lets it be tried again."""
    three_days = timedelta(days=3)
    put("a")
    rows = OutboxEvent.objects.all()
    rows.update(created_at=deployment.now - timedelta(days=400))

    def refused() -> Any:
        ((parcel,),) = take(member)
        outbox.give_back(member, [], [(parcel, "400 Bad Request", timedelta(0))])
        assert outbox.tidy(member, three_days, 10) == []
        return rows.get().refused_since

    first = refused()
    assert refused() == first
    rows.update(refused_since=first - three_days - HOLD)
    assert len(outbox.tidy(member, three_days, 10)) == 1
    assert outbox.requeue(member.using, member.deployment) == 1
    assert refused() >= first


def test_what_was_never_tried_is_not_dead_lettered(
    member: Member, deployment: Deployment, put: Put
) -> None:
    put("a")
    OutboxEvent.objects.update(created_at=deployment.now - timedelta(days=400))
    assert outbox.tidy(member, timedelta(days=3), 10) == []
    assert bodies(take(member)) == [["a0"]]


def test_beyond_the_most_the_oldest_are_forgotten_and_that_is_told(
    member: Member, put: Put
) -> None:
    put("a", "b", "a", "c")
    (told,) = outbox.tidy(member, timedelta(days=3), 2)
    assert isinstance(told, events.EventsDropped)
    assert (told.count, told.most) == (2, 2)
    assert bodies(take(member)) == [["a1"], ["c0"]]


def test_who_does_not_lead_tidies_nothing(other: Member, put: Put) -> None:
    put("a", "a")
    assert outbox.tidy(other, timedelta(days=3), 1) == []
    assert OutboxEvent.objects.count() == 2


def test_while_nothing_waits_it_costs_two_statements(
    member: Member, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(2):
        assert take(member) == []


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite locks the file, not rows")
def test_who_looks_while_another_takes_passes_its_tasks_over(
    member: Member, other: Member, put: Put
) -> None:
    put("a", "a", "b")
    own: Any = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            table = OutboxEvent._meta.db_table
            first = OutboxEvent.objects.order_by("id")[0].pk
            cursor.execute(f"SELECT id FROM {table} WHERE id = %s FOR UPDATE", [first])
        assert bodies(take(other)) == [["b0"]]
    finally:
        own.rollback()
        own.close()
    assert bodies(take(member)) == [["a0", "a1"]]


@pytest.fixture
def deliverers(member: Member, other: Member) -> Iterator[Callable[[list[str]], None]]:
    """Let two deliver at the same time, until nothing is left."""

    def deliver(who: Member, seen: list[str]) -> None:
        try:
            for turn in range(1000):
                if not OutboxEvent.objects.exists():
                    return
                taken = take(who, tasks=2)
                for parcels in taken:
                    seen += [parcel.body for parcel in parcels[:2]]
                done = [parcel for parcels in taken for parcel in parcels[:2]]
                refused = [(done.pop(), "500", timedelta(0))] if done and turn % 3 == 0 else []
                outbox.give_back(who, done, refused)
        finally:
            connections.close_all()

    def run(seen: list[str]) -> None:
        threads = [
            threading.Thread(target=deliver, args=(who, seen), daemon=True)
            for who in (member, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)

    yield run


def test_two_at_once_lose_nothing_and_change_no_order(
    put: Put, deliverers: Callable[[list[str]], None]
) -> None:
    with transaction.atomic():
        put(*"abcde" * 8)
    seen: list[str] = []
    deliverers(seen)
    for name in "abcde":
        mine = [int(body[1:]) for body in seen if body[0] == name]
        assert mine == sorted(mine)
        assert set(mine) == set(range(8))
