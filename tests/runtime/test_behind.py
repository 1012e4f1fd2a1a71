"""A look that went behind a write stands for the next one, while nobody is known to have acted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from django.db import connection

from django_declarative_cron import Scheduler, signals
from django_declarative_cron.core import events
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime import engine
from django_declarative_cron.runtime.behind import Behind
from django_declarative_cron.runtime.work import succeeded
from django_declarative_cron.store import limits, overrides
from django_declarative_cron.store.guard import Member
from django_declarative_cron.store.overrides import Act
from django_declarative_cron.store.peek import Peek
from django_declarative_cron.testing import ManualClock
from django_declarative_cron.testing.jobs import Queue

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ENDED = events.TaskRunCompleted(at=NOON, task_name="t", duration=0.0, run=1)


def test_it_is_given_once_to_who_looked_unless_somebody_was_told_since() -> None:
    mine, other = cast(Member, object()), cast(Member, object())
    seen, behind = cast(Peek, object()), Behind()
    behind.keep(mine, seen, [ENDED])
    assert (behind.take(mine), behind.take(mine)) == (seen, None)
    behind.keep(mine, seen, [])
    assert behind.take(other) is None
    behind.keep(mine, seen, [])
    behind.keep(mine, None, [])
    assert behind.take(mine) is None
    behind.keep(mine, seen, [])
    behind.forget()
    assert behind.take(mine) is None

    def receive(**_: object) -> None:
        """May do anything."""

    for signal in (
        signals.signal_of(events.TaskRunCompleted),
        signals.TOLD_OUTSIDE["job_completed"],
    ):
        signal.connect(receive)
        try:
            behind.keep(mine, seen, [ENDED])
            assert behind.take(mine) is None
        finally:
            signal.disconnect(receive)


class Desk:
    """A scheduler that is let through its passes by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.queue, self.looks = ManualClock(NOON - MINUTE / 2), Queue(), 0
        real = engine.peek

        def peek(member: Any) -> Any:
            self.looks += 1
            return real(member)

        monkeypatch.setattr(engine, "peek", peek)
        self.scheduler = Scheduler(background=False, clock=self.clock, runner=self.queue)
        each = ("* * * * *", lambda: None, 5 * MINUTE)
        self.scheduler.initialize([("t", *each), ("rare", "0 0 29 2 *", *each[1:])])
        for _ in range(3):
            self.scheduler.tick()
            self.end_runs()

    def tick(self) -> int:
        """Pass, and give how often the database was asked for a look of its own."""
        self.looks = 0
        self.scheduler.tick()
        return self.looks

    def end_runs(self) -> None:
        for work in self.queue.waiting:
            work.done(succeeded(work, self.clock.now(), 0.0))
        self.queue.waiting.clear()


@pytest.fixture
def desk(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made = Desk(monkeypatch)
    yield made
    made.end_runs()
    made.scheduler.stop()


def test_a_pass_that_starts_or_records_needs_no_look_of_its_own(desk: Desk) -> None:
    alone = 0 if limits.takes_several(connection) else 1
    for minute in range(3):
        desk.clock.advance(NOON + minute * MINUTE)
        assert (desk.tick(), len(desk.queue.waiting)) == (alone, 1)
        desk.end_runs()
        assert (desk.tick(), len(desk.queue.waiting)) == (alone, 0)
        assert desk.tick() == 1
        assert desk.scheduler.next_wake() == NOON + (minute + 1) * MINUTE
    assert TaskRun.objects.filter(outcome="succeeded").count() == 4


def test_what_a_receiver_does_is_seen_in_the_same_pass(desk: Desk) -> None:
    def ask(**_: object) -> None:
        overrides.request_run(["rare"], Act("somebody", desk.clock.now()))

    desk.clock.advance(NOON)
    desk.tick()
    desk.end_runs()
    signal = signals.signal_of(events.TaskRunCompleted)
    signal.connect(ask)
    try:
        assert desk.tick() >= 1
    finally:
        signal.disconnect(ask)
    assert ScheduledTask.objects.get(name="rare").run_count == 1
    assert [work.run.task_name for work in desk.queue.waiting] == ["rare"]


def test_what_was_committed_before_a_tool_failed_is_called_in_the_next_pass(desk: Desk) -> None:
    def fail(execute: Any, sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if sql.endswith("COMMIT"):
            raise LookupError("of a tool that looks at what was sent")
        return answer

    desk.clock.advance(NOON)
    desk.tick()
    desk.end_runs()
    desk.tick()
    desk.clock.advance(NOON + MINUTE)
    if limits.takes_several(connection):
        with connection.execute_wrapper(fail), pytest.raises(LookupError):
            desk.tick()
        assert desk.queue.waiting == []
        assert TaskRun.objects.filter(outcome="running").count() == 1
    desk.tick()
    assert [work.run.task_name for work in desk.queue.waiting] == ["t"]
    assert TaskRun.objects.filter(outcome="running").count() == 1
    assert connection.get_autocommit()
