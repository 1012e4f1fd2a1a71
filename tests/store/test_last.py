"""The last write of a transaction takes a look and the commit with it, where that can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import InternalError
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.fields import timezone_is_dropped
from django_declarative_cron.models import Outcome, ScheduledTask, SchedulerState, TaskRun
from django_declarative_cron.store import (
    autopause,
    claims,
    columns,
    guard,
    limits,
    outbox,
    planned,
    results,
)
from django_declarative_cron.store.endings import Result
from django_declarative_cron.store.peek import Peek, peek

from .conftest import Deployment, Stranger, unchecked

needs_several = pytest.mark.skipif(
    not limits.takes_several(connection), reason="each statement goes alone"
)


def claim(made: Deployment, **more: Any) -> claims.Claimed:
    return claims.claim_due(made.member, made.by_name, made.now, reaping=False, **more)


def record(made: Deployment, claimed: claims.Claimed) -> results.Recorded:
    ended = [
        Result(each.run, each.task_name, made.now, succeeded=True, task_key=each.task_key)
        for each in claimed.claims
    ]
    return results.record(made.member, ended, made.now, looks=True)


def passes(made: Deployment, number: int) -> None:
    """Let all tasks start and end so often, a minute after the other."""
    for _ in range(number):
        made.now += timedelta(minutes=1)
        made.owe_all()
        claimed = claim(made)
        assert len(claimed.claims) == 3
        assert record(made, claimed).held == []


def texts(act: Callable[[], object]) -> list[str]:
    """Give what is sent, but for what Django says of the beginning and the end."""
    with CaptureQueriesContext(connection) as captured:
        act()
    said = [query["sql"] for query in captured.captured_queries]
    return [sql for sql in said if sql not in ("BEGIN", "COMMIT")]


def same(one: Peek | None, other: Peek | None) -> bool:
    """Tell whether two looks have seen the same, at different times."""
    assert one is not None
    assert other is not None
    return one == replace(other, database_now=one.database_now)


@needs_several
def test_starts_and_results_end_their_transactions_and_are_looked_at(
    deployment: Deployment, stranger: Stranger
) -> None:
    claimed: list[claims.Claimed] = []
    started = texts(lambda: claimed.append(claim(deployment)))
    assert [sql.endswith("; COMMIT") for sql in started] == [False, True]
    assert same(claimed[0].seen, peek(deployment.member))
    assert claimed[0].seen is not None
    assert claimed[0].seen.next_wake is None
    recorded = record(deployment, claimed[0])
    assert same(recorded.seen, peek(deployment.member))
    assert recorded.seen is not None
    assert recorded.seen.next_wake is not None
    # Nobody is kept from what was committed.
    stranger.hold("schedulerstate", deployment=deployment.member.deployment)
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == 3


def test_what_waits_for_its_instant_is_committed_after_it(
    deployment: Deployment, stranger: Stranger
) -> None:
    seen: list[int] = []

    def hold(found: list[claims.Claim]) -> bool:
        seen.append(len(found))
        return False

    with pytest.raises(claims.WithdrawnError):
        claim(deployment, hold=hold)
    assert seen == [3]
    assert not TaskRun.objects.exists()


def test_in_a_transaction_of_somebody_else_nothing_is_ended(deployment: Deployment) -> None:
    with transaction.atomic():
        claimed = claim(deployment)
        assert connection.in_atomic_block
        assert (len(claimed.claims), claimed.seen) == (3, None)
        transaction.set_rollback(True)
    assert not TaskRun.objects.exists()


@needs_several
def test_where_more_is_due_nobody_looks(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "BATCH", 2)
    first, second = claim(deployment), claim(deployment)
    assert (len(first.claims), first.more, first.seen) == (2, True, None)
    assert (len(second.claims), second.more) == (1, False)
    assert same(second.seen, peek(deployment.member))


@needs_several
@pytest.mark.parametrize(
    ("module", "name", "said"),
    [(outbox, "asks_nothing", False), (autopause, "is_to_note", True)],
)
def test_what_is_told_in_a_transaction_comes_before_its_end(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, said: bool
) -> None:
    monkeypatch.setattr(module, name, lambda *_: said)
    claimed: list[claims.Claimed] = []
    started = texts(lambda: claimed.append(claim(deployment)))
    recorded = texts(lambda: record(deployment, claimed[0]))
    # Nobody is told of a start by a pause.
    assert any(sql.endswith("COMMIT") for sql in started) is (module is autopause)
    assert not any(sql.endswith("COMMIT") for sql in recorded)
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == 3


@needs_several
def test_nothing_is_started_whose_commit_is_refused(deployment: Deployment) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$"
            "BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23503'; END $$;"
            f"CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {TaskRun._meta.db_table}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    try:
        claimed = claim(deployment)
        assert claimed.claims == []
        assert not TaskRun.objects.exists()
        # As where a statement is refused: each is tried alone, and set aside.
        assert ScheduledTask.objects.exclude(broken_reason="").count() == 3
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")


@needs_several
def test_nothing_is_said_in_a_transaction_that_has_ended(deployment: Deployment) -> None:
    row = ScheduledTask.objects.get(name="t0")
    row.run_count = 7
    with pytest.raises(InternalError, match="has ended"), guard.locked(deployment.member) as held:
        assert held is not None
        columns.update("default", ([row], ["run_count"]), last=held.last(str))
        SchedulerState.objects.update(release="never written")
    assert ScheduledTask.objects.get(name="t0").run_count == 7
    assert SchedulerState.objects.get().release != "never written"
    with guard.locked(deployment.member) as held:
        assert held is not None
        held.row.release = "written"
        held.save_later(["release"])
        # That is still to be written, so the end is not there yet.
        columns.update("default", ([row], ["run_count"]), last=held.last(str))
    assert SchedulerState.objects.get().release == "written"


@needs_several
def test_what_was_committed_is_told_also_where_the_look_behind_it_cannot_be_read(
    deployment: Deployment,
) -> None:
    if timezone_is_dropped(connection):
        pytest.skip("the server counts, and refuses the whole text")
    with unchecked(ScheduledTask, "wake_at"):
        with connection.cursor() as cursor:
            # No driver reads that.
            cursor.execute(
                f"UPDATE {ScheduledTask._meta.db_table} SET wake_at = 'infinity' WHERE name = 't2'"
            )
        claimed = claim(deployment)
    assert [each.task_name for each in claimed.claims] == ["t0", "t1"]
    assert claimed.seen is None
    assert (connection.in_atomic_block, connection.get_autocommit()) == (False, True)
    started = TaskRun.objects.filter(outcome=Outcome.RUNNING)
    assert {each.run for each in claimed.claims} == {run.pk for run in started}


@needs_several
def test_only_its_own_text_ends_a_transaction_whatever_is_put_around_statements(
    deployment: Deployment,
) -> None:
    asked: list[str] = []

    def around(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT 1"):
            return execute(sql, *rest)
        asked.append(sql)
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return execute(f"/* by a tool */ {sql} /* for it */", *rest)

    with connection.execute_wrapper(around):
        claimed = claim(deployment)
        recorded = record(deployment, claimed)
    assert asked[1].endswith("; COMMIT")
    assert (len(claimed.claims), recorded.held) == (3, [])
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == 3


@needs_several
def test_what_each_pass_says_is_kept_by_the_session_until_it_forgets(
    deployment: Deployment,
) -> None:
    connection.close()
    for _ in range(3):
        peek(deployment.member)
    passes(deployment, 4)
    said = texts(lambda: passes(deployment, 1))
    executed = [sql.count("EXECUTE declarative_cron_") for sql in said]
    # The deployment's row and what is due; starts and a look; three rows; both kinds and a look.
    assert [number for number in executed if number] == [2, 2, 3, 3]
    assert not [sql for sql in said if "PREPARE" in sql]
    for forget in ("DISCARD ALL", "DEALLOCATE ALL"):
        with connection.cursor() as cursor:
            cursor.execute(forget)
        passes(deployment, 2)
    assert TaskRun.objects.filter(outcome=Outcome.SUCCEEDED).count() == 3 * 9
    assert not [sql for sql in texts(lambda: passes(deployment, 1)) if "EXECUTE" in sql]


@needs_several
def test_a_session_keeps_no_more_than_some_statements(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.close()
    for _ in range(3):
        peek(deployment.member)
    monkeypatch.setattr(planned, "_MOST", 3)
    monkeypatch.setattr(planned, "_COUNTED", 4)
    with transaction.atomic():
        for number in range(4):
            said = [planned.with_places(connection, f"SELECT {number}, %s") for _ in range(3)]
            assert said[:2] == [f"SELECT {number}, %s"] * 2
            assert said[2].startswith("PREPARE") is (number < 2)
        session = planned._sessions[connection.connection]
        assert len(session.kept) == 3
        for number in range(10):
            planned.with_places(connection, f"SELECT -{number}, %s")
        assert len(session.answers) <= 5
    connection.close()
