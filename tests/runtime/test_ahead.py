"""A claim begins before its instant, is seen by nobody before it, and can be taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron import Scheduler
from django_declarative_cron.core import events
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.runtime import clock
from django_declarative_cron.runtime.ahead import LATE, LEAD, Ahead, Hold
from django_declarative_cron.runtime.clock import AWAKE, Moment, system_clock
from django_declarative_cron.runtime.hush import Hush
from django_declarative_cron.store import claims
from django_declarative_cron.store.guard import Standing
from django_declarative_cron.store.results import Result
from django_declarative_cron.testing import ManualClock

from ..store.conftest import Deployment
from ..threads import elsewhere
from ..timeouts import TIMEOUT
from .conftest import Heard

INSTANT = datetime(2024, 1, 1, 12, 0, tzinfo=UTC)
A_BIT = timedelta(milliseconds=1)
CALLED: list[datetime] = []


@dataclass
class Going:
    """A clock on which a wait ends when it likes, with what may happen meanwhile."""

    at: datetime
    meanwhile: Callable[[Going], None] = lambda clock: clock.go(10 * A_BIT)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0

    def go(self, span: timedelta) -> None:
        self.at += span

    def wait_closely(self, event: threading.Event, seconds: float) -> bool:
        self.meanwhile(self)
        return event.is_set()


def _end_of(waits: Iterator[int]) -> None:
    next(waits)


def _hold(clock: Going, stopping: threading.Event | None = None) -> Hold:
    return Hold(INSTANT, clock, stopping or threading.Event())  # type: ignore[arg-type]


def test_a_hold_ends_when_the_clock_shows_the_instant() -> None:
    clock = Going(INSTANT - LEAD)
    assert _hold(clock).ends_well()
    assert INSTANT <= clock.now() < INSTANT + 10 * A_BIT


def test_a_hold_for_an_instant_that_has_come_does_not_wait() -> None:
    clock = Going(INSTANT)
    assert _hold(clock).ends_well() and clock.now() == INSTANT


def test_what_is_held_while_the_clock_is_set_back_is_taken_back() -> None:
    clock = Going(INSTANT - LEAD, lambda clock: clock.go(timedelta(hours=-1)))
    assert not _hold(clock).ends_well()


def test_what_is_held_while_a_stop_is_asked_for_is_taken_back() -> None:
    stopping = threading.Event()
    clock = Going(INSTANT - LEAD, lambda _: stopping.set())
    assert not _hold(clock, stopping).ends_well()
    assert not _hold(Going(INSTANT), stopping).ends_well()


@pytest.mark.parametrize(("late", "is_well"), [(LATE - A_BIT, True), (LATE, False)])
def test_what_is_held_while_the_process_is_halted_is_taken_back(
    late: timedelta, is_well: bool
) -> None:
    clock = Going(INSTANT - A_BIT, lambda clock: clock.go(A_BIT + late))
    assert _hold(clock).ends_well() is is_well


def test_a_claim_that_took_long_itself_is_not_begun_anew() -> None:
    assert _hold(Going(INSTANT + 2 * LATE)).ends_well()


def test_a_hold_does_not_wait_for_a_clock_that_stands_still() -> None:
    waits = iter(range(5))
    clock = Going(INSTANT - A_BIT, lambda _: _end_of(waits))  # A sixth wait is an error.
    assert not _hold(clock).ends_well()
    assert not list(waits)


def _ahead(left: timedelta, lead: timedelta = LEAD) -> Ahead:
    clock, stopping = ManualClock(INSTANT - left), threading.Event()
    made = Ahead(clock, stopping, Hush(clock, lambda: None, stopping))
    made.lead = lead
    return made


def test_a_claim_begins_ahead_of_an_instant_that_is_near() -> None:
    for left in (LEAD, A_BIT):
        found = _ahead(left).hold(INSTANT)
        assert found is not None and found.instant == INSTANT
    assert _ahead(LEAD + A_BIT).hold(INSTANT) is None
    assert _ahead(timedelta(0)).hold(INSTANT) is None
    assert _ahead(A_BIT).hold(None) is None
    assert _ahead(A_BIT, lead=timedelta(0)).hold(INSTANT) is None


def test_what_can_wait_waits_from_the_beginning_of_a_claim_on() -> None:
    ahead = _ahead(LEAD)
    assert not ahead._hush.is_on
    ahead.hold(INSTANT)
    assert ahead._hush.is_on


def test_a_close_wait_is_no_shorter_than_asked_and_ends_with_its_event() -> None:
    event, began = threading.Event(), time.perf_counter()
    assert not system_clock.wait_closely(event, 2 * AWAKE)
    assert time.perf_counter() - began >= 2 * AWAKE
    event.set()
    assert system_clock.wait_closely(event, 2 * TIMEOUT)
    assert not system_clock.wait_closely(threading.Event(), -1.0)
    assert time.perf_counter() - began < TIMEOUT


def test_a_close_wait_ends_where_somebody_has_stopped_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter(range(10**6))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: 0.0 * next(looks))
    monkeypatch.setattr(clock, "_LOOKS", 1000)
    assert not system_clock.wait_closely(threading.Event(), AWAKE)
    assert next(looks) == 1001


def test_of_two_passes_one_at_least_writes_results() -> None:
    ahead = _ahead(LEAD)
    near = [INSTANT - number * A_BIT for number in range(4)]
    assert [ahead.hold(each) is None for each in near] == [False, True, False, True]


def test_what_was_taken_back_is_not_held_for_the_same_instant_again() -> None:
    ahead = _ahead(A_BIT)
    assert [ahead.hold(INSTANT) is None for _ in range(4)] == [False, True, True, True]


def test_a_loop_sleeps_to_the_beginning_of_the_claim_and_then_to_the_instant() -> None:
    ahead, lead = _ahead(A_BIT), LEAD.total_seconds()
    assert ahead.seconds_before(10.0) == 10.0 - lead
    assert ahead.seconds_before(lead) == lead
    assert ahead.seconds_before(-1.0) == -1.0


@pytest.mark.parametrize("is_ahead", [True, False])
def test_results_that_a_claim_ahead_left_are_written_at_once(
    monkeypatch: pytest.MonkeyPatch, is_ahead: bool
) -> None:
    engine = Scheduler(clock=ManualClock(INSTANT - A_BIT))._engine
    later, now = INSTANT + timedelta(minutes=1), INSTANT - A_BIT
    monkeypatch.setattr(engine, "_hold", lambda: _hold(Going(now)) if is_ahead else None)
    monkeypatch.setattr(engine, "_evaluate", lambda *_: later)
    assert engine.tick(Moment(0.0, now)) == later
    engine._calls._waiting = [Result(1, "a", now, succeeded=True)]
    assert engine.tick(Moment(0.0, now)) == (now if is_ahead else later)


@pytest.mark.parametrize(
    ("standing", "is_stopping", "waits"),
    [
        (Standing.LEADING, False, True),
        (Standing.LEADING, True, False),
        (Standing.STANDBY, False, False),
        (Standing.SUPERSEDED, False, False),
    ],
)
def test_results_make_way_only_for_what_this_instance_starts(
    monkeypatch: pytest.MonkeyPatch, standing: Standing, is_stopping: bool, waits: bool
) -> None:
    engine, made_way = Scheduler(clock=ManualClock(INSTANT - A_BIT))._engine, list[bool]()
    monkeypatch.setattr(
        engine._recording, "write", lambda now, instant: made_way.append(instant == INSTANT)
    )
    engine.standing, engine._known_wake = standing, INSTANT
    if is_stopping:
        engine.stopping.set()
    engine.tick(Moment(0.0, INSTANT - A_BIT))
    assert made_way == [waits]


# --- in the database ---


@pytest.fixture
def deployment(transactional_db: None) -> Deployment:
    """Give a deployment of three tasks that are all due."""
    made = Deployment(3)
    made.initialize()
    made.owe_all()
    return made


def _claim(deployment: Deployment, hold: claims.Hold) -> claims.Claimed:
    return claims.claim_due(
        deployment.member, deployment.by_name, deployment.now, reaping=False, hold=hold
    )


def test_nobody_sees_a_start_before_it_is_to_be_committed(deployment: Deployment) -> None:
    seen: list[int] = []

    def hold(_: object) -> bool:
        with elsewhere() as submit:
            seen.append(submit(TaskRun.objects.count).result(TIMEOUT))
        return True

    assert len(_claim(deployment, hold).claims) == 3
    assert (seen, TaskRun.objects.count()) == ([0], 3)


def test_what_a_commit_would_check_is_checked_before_the_instant(deployment: Deployment) -> None:
    said: list[str] = []

    def hold(_: object) -> bool:
        said.extend(query["sql"] for query in captured.captured_queries)
        return True

    with CaptureQueriesContext(connection) as captured:
        _claim(deployment, hold)
    checks = [sql for sql in said if "CONSTRAINTS" in sql]
    is_late = connection.vendor == "postgresql"  # The others check at once, or as it is written.
    assert checks == (said[-1:] if is_late else [])
    after = [query["sql"] for query in captured.captured_queries[len(said) :]]
    assert [sql for sql in after if sql.split()[0] not in ("COMMIT", "SET")] == []


def test_a_row_that_refers_to_nothing_is_looked_for_at_the_instant(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(using: str) -> None:
        raise claims.IntegrityError("a key is not there")

    monkeypatch.setattr(claims.database, "check_now", refuse)
    with pytest.raises(claims.WithdrawnError):
        _claim(deployment, lambda _: pytest.fail("it cannot be committed"))
    assert not TaskRun.objects.exists()


def test_what_is_taken_back_leaves_nothing_behind_and_is_claimed_again(
    deployment: Deployment,
) -> None:
    before = list(ScheduledTask.objects.order_by("pk").values())
    with pytest.raises(claims.WithdrawnError):
        _claim(deployment, lambda _: False)
    assert not TaskRun.objects.exists()
    assert list(ScheduledTask.objects.order_by("pk").values()) == before
    assert len(_claim(deployment, lambda _: True).claims) == 3


def test_a_task_whose_run_may_end_meanwhile_is_left_for_the_instant(
    deployment: Deployment,
) -> None:
    _claim(deployment, lambda _: True)
    # As a task is looked at whose occurrences do not coalesce with its run.
    ScheduledTask.objects.update(wake_at=deployment.now)
    assert _claim(deployment, lambda _: pytest.fail("nothing is to be held")).considered == 0
    at_the_instant = claims.claim_due(
        deployment.member, deployment.by_name, deployment.now, reaping=False
    )
    assert at_the_instant.considered == 3


def test_what_ends_where_nothing_is_due_is_committed_at_the_instant_too(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    _claim(deployment, lambda _: True)
    ended = events.LeadershipGained(at=deployment.now, term=1, instance="")
    monkeypatch.setattr(claims.dead, "expire", lambda *_: [ended])
    with pytest.raises(claims.WithdrawnError):
        _claim(deployment, lambda _: False)
    claimed = _claim(deployment, lambda _: True)
    assert (claimed.considered, claimed.events) == (0, [ended])


def test_a_row_that_spoils_the_batch_is_looked_for_at_the_instant(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise claims.DataError("a value is too long")

    with monkeypatch.context() as patch:
        patch.setattr(claims, "write_starts", refuse)
        with pytest.raises(claims.WithdrawnError):
            _claim(deployment, lambda _: True)
    assert not ScheduledTask.objects.exclude(broken_reason="").exists()


def note() -> None:
    """Note when it is called."""
    CALLED.append(datetime.now(UTC))


def test_what_is_claimed_ahead_is_called_at_its_instant(
    scheduler: Scheduler, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    CALLED.clear()
    well, ends_well = threading.Event(), Hold.ends_well

    def held(hold: Hold) -> bool:
        ended = ends_well(hold)
        well.set()
        return ended

    monkeypatch.setattr(Hold, "ends_well", held)
    each_second = {"cron": "* * * * * *", "callback": note, "overlap_policy": "coalesce"}
    scheduler.initialize([{**each_second, "name": "a"}])
    assert well.wait(TIMEOUT)
    started = heard.wait_for("TaskRunStarted")
    heard.wait_for("TaskRunCompleted")
    for event, called in zip(started, CALLED, strict=False):
        assert event.scheduled_time <= event.actual_time <= called
