"""What a process may believe without asking, and what it asks before it calls a run."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from django_declarative_cron import Scheduler
from django_declarative_cron.models import TaskRun
from django_declarative_cron.runtime.fencing import Fence, LeaseValidity, ObservedWindow
from django_declarative_cron.store import liveness, results
from django_declarative_cron.store.guard import peek
from django_declarative_cron.testing import ManualClock

from ..store.conftest import Deployment
from .conftest import FIVE_MINUTES, NEVER_TODAY, Heard

LEASE = timedelta(seconds=15)


@pytest.fixture
def clock() -> ManualClock:
    """Give a clock that stands still."""
    return ManualClock(datetime(2024, 1, 1, tzinfo=UTC))


def _passes(clock: ManualClock, seconds: float) -> None:
    clock.advance(clock.now() + timedelta(seconds=seconds))


def test_trust_counts_from_when_the_renewal_began(clock: ManualClock) -> None:
    validity = LeaseValidity(clock)
    assert not validity.holds(LEASE)
    began = validity.moment()
    _passes(clock, 3)
    validity.renew(began, LEASE)
    _passes(clock, 11.9)
    assert validity.holds(LEASE)
    _passes(clock, 0.1)
    assert not validity.holds(LEASE)
    assert validity.holds(2 * LEASE)


def test_a_sleep_that_the_monotonic_clock_does_not_see_ends_trust(clock: ManualClock) -> None:
    validity = LeaseValidity(clock)
    validity.renew(validity.moment(), LEASE)
    clock.leap(clock.now() + timedelta(hours=1))
    assert not validity.holds(LEASE)


def test_a_clock_that_is_set_back_lengthens_no_trust(clock: ManualClock) -> None:
    validity = LeaseValidity(clock)
    validity.renew(validity.moment(), LEASE)
    clock.leap(clock.now() - timedelta(hours=1))
    _passes(clock, 14)
    assert validity.holds(LEASE)
    _passes(clock, 1)
    assert not validity.holds(LEASE)


def test_trust_that_is_renewed_in_time_has_not_lapsed(clock: ManualClock) -> None:
    validity = LeaseValidity(clock)
    for _ in range(3):
        validity.renew(validity.moment(), LEASE)
        _passes(clock, 14)
    assert validity.lapses == 0
    _passes(clock, 1)
    validity.renew(validity.moment(), LEASE)
    assert validity.lapses == 1


def test_runs_of_before_a_lapse_are_asked_for_though_trust_holds_again(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process that was stopped goes on: it is heard of, then a thread takes up a run."""
    asked: list[int] = []
    monkeypatch.setattr(results, "is_open", lambda member, run: bool(asked.append(run)))
    member = Mock(longest_silence=LEASE)
    validity = LeaseValidity(clock)
    fence = Fence(clock, validity, Mock())
    validity.renew(validity.moment(), LEASE)
    before = fence.lapses
    assert fence.admits(member, 1, before)
    _passes(clock, 20)
    validity.renew(validity.moment(), LEASE)
    assert not fence.admits(member, 1, before)
    assert fence.admits(member, 2, fence.lapses)
    assert asked == [1]


@pytest.mark.parametrize("has_row", [True, False])
def test_who_was_silent_is_heard_of_before_it_asks_for_a_run(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch, has_row: bool
) -> None:
    """Or another instance could find it dead between the answer and the call."""
    deeds: list[str] = []

    def vouch(member: Any, *, is_mute: bool) -> bool:
        assert not is_mute
        deeds.append("vouch")
        return has_row

    def is_open(member: Any, run: int) -> bool:
        deeds.append("is_open")
        return True

    monkeypatch.setattr(liveness, "vouch", vouch)
    monkeypatch.setattr(results, "is_open", is_open)
    fence = Fence(clock, LeaseValidity(clock), Mock())
    assert fence.admits(Mock(longest_silence=LEASE), 1, 0) is has_row
    assert deeds == ["vouch", "is_open"][: 1 + has_row]


def _lose_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseValidity, "holds", lambda self, span: False)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_run_that_was_taken_over_before_its_call_is_never_called(
    scheduler: Scheduler,
    heard: Heard,
    run_now: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    """As after a pause between the commit of a claim and the call."""
    called = []

    def callback() -> None:
        called.append(kind)

    async def coroutine() -> None:
        called.append(kind)

    asked = results.is_open

    def takes_over(member: Any, run: int) -> bool:
        TaskRun.objects.filter(pk=run).update(outcome="interrupted", running_slot=None)
        return asked(member, run)

    monkeypatch.setattr(results, "is_open", takes_over)
    _lose_trust(monkeypatch)
    task = {"sync": callback, "async": coroutine}[kind]
    scheduler.initialize([("t", NEVER_TODAY, task, FIVE_MINUTES)])
    run_now("t")
    heard.wait_for("TaskRunStarted")
    assert scheduler.stop()
    assert called == []


def test_a_run_that_is_still_its_own_is_called_after_the_question(
    scheduler: Scheduler, heard: Heard, run_now: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [OperationalError("no answer")]
    asked = results.is_open

    def answers_at_last(member: Any, run: int) -> bool:
        if answers:
            raise answers.pop()
        return asked(member, run)

    monkeypatch.setattr(results, "is_open", answers_at_last)
    _lose_trust(monkeypatch)
    scheduler.initialize([("t", NEVER_TODAY, lambda: None, FIVE_MINUTES)])
    run_now("t")
    heard.wait_for("TaskRunCompleted")
    (failure,) = heard.of("PersistenceFailed")
    assert failure.doing == "asking for a run before it is called"


def test_a_leader_that_reaches_no_database_believes_in_its_lead_for_a_lease(
    scheduler: Scheduler, heard: Heard, run_now: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = threading.Event()
    believes = threading.Event()
    believes.set()
    monkeypatch.setattr(LeaseValidity, "holds", lambda self, span: believes.is_set())

    def look(member: Any) -> Any:
        if away.is_set():
            raise OperationalError("no answer")
        return peek(member)

    monkeypatch.setattr("django_declarative_cron.runtime.engine.peek", look)
    scheduler.initialize([("t", NEVER_TODAY, lambda: None, FIVE_MINUTES)])
    (gained,) = heard.wait_for("LeadershipGained")
    away.set()
    heard.wait_for("PersistenceFailed")
    assert heard.of("LeadershipLost") == []
    believes.clear()
    (lost,) = heard.wait_for("LeadershipLost")
    away.clear()
    again = heard.wait_for("LeadershipGained", 2)[-1]
    assert gained.term == lost.term == again.term


def test_an_observed_window_lasts_only_without_a_gap(clock: ManualClock) -> None:
    member, window = Deployment(0).member, ObservedWindow()
    assert window.watched is None
    for at, refused, since in (
        (0, False, 0),
        (1, False, 0),
        (6, False, 0),
        (7, True, 0),  # One connection was ended, and another one opened.
        (12, True, 0),
        (18, False, 18),  # It was kept from looking for longer than others may be silent.
        (19, False, 18),
        (25, True, 25),
        (24, False, 24),  # The database's clock was set back,
        (4000, False, 4000),  # or the machine slept.
    ):
        if refused:
            window.interrupt()
        window.extend(member, clock.now() + timedelta(seconds=at))
        assert window.watched == tuple(
            clock.now() + timedelta(seconds=each) for each in (since, at)
        )
