"""The decision itself: values in, a value out; no database, no clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_declarative_cron.core import events
from django_declarative_cron.core.decide import Decision, decide, settle
from django_declarative_cron.core.next_run import BELIEVABLE
from django_declarative_cron.core.overlap import POLICIES, ActiveRun, Policy
from django_declarative_cron.core.retry import FixedDelay
from django_declarative_cron.core.schedule import Schedule
from django_declarative_cron.core.state import Story, TaskState, apply
from django_declarative_cron.cron import parse

RETRY = FixedDelay(timedelta(minutes=5))


def at(time: str) -> datetime:
    return datetime.fromisoformat(f"2024-01-01T{time}").replace(tzinfo=UTC)


def schedule(cron: str = "0 * * * *", zone: str = "UTC") -> Schedule:
    return Schedule(parse(cron), ZoneInfo(zone))


REGISTERED = TaskState(name="t", registered_at=at("09:30"))
RAN = replace(
    REGISTERED,
    last_attempt_at=at("10:00"),
    last_success_at=at("10:00"),
    discharged_at=at("10:00"),
    occurrence_at=at("10:00"),
    freed_at=at("10:00"),
    attempt=1,
    run_count=1,
)
FAILED = replace(RAN, last_success_at=None, pending_retry_until=at("10:05"), failures=1)


def decided(
    state: TaskState,
    now: str,
    cron: str = "0 * * * *",
    policy: Policy = "coalesce",
    active: Sequence[ActiveRun] = (),
) -> Decision:
    return decide(state, schedule(cron), RETRY, at(now), policy, active)


LATE_RETRY = replace(FAILED, pending_retry_until=at("11:30"))
INTERRUPTED = replace(RAN, orphaned=True)
AT_ITS_MINUTE = replace(REGISTERED, registered_at=at("10:00:20"), boot_at=at("10:00"))
REQUESTED = replace(RAN, run_requested_at=at("10:10"))
PAUSED = replace(RAN, paused_since=at("10:10"))


@pytest.mark.requirement("001 Task State Model/1", "004 Stateful/2")
@pytest.mark.parametrize(
    ("state", "now", "reason", "occurrence", "attempt"),
    [
        pytest.param(RAN, "11:00:00", "due", "11:00", 1, id="an occurrence"),
        pytest.param(RAN, "13:20:00", "due", "13:00", 1, id="the newest of many"),
        pytest.param(REGISTERED, "10:00:00", "due", "10:00", 1, id="never run"),
        pytest.param(FAILED, "10:05:00", "retry", "10:00", 2, id="a retry, inclusive"),
        pytest.param(FAILED, "11:02:00", "retry", "11:00", 1, id="a retry that meets a newer one"),
        pytest.param(LATE_RETRY, "11:00:00", "due", "11:00", 1, id="before the retry"),
        pytest.param(INTERRUPTED, "10:01:30", "orphaned", "10:00", 2, id="interrupted"),
        pytest.param(INTERRUPTED, "12:01:30", "orphaned", "12:00", 1, id="and one was missed"),
        pytest.param(AT_ITS_MINUTE, "10:00:50", "boot", "10:00", 1, id="the first minute"),
        pytest.param(REQUESTED, "10:10:01", "manual", "10:10:01", 1, id="a person asked"),
        pytest.param(
            *(replace(REQUESTED, paused_since=at("10:05")), "11:10:00", "manual", "11:10", 1),
            id="a person asked, under a pause",
        ),
    ],
)
def test_what_starts(
    state: TaskState, now: str, reason: str, occurrence: str, attempt: int
) -> None:
    start = decided(state, now).start
    assert start is not None
    assert (start.reason, start.scheduled_time, start.attempt) == (reason, at(occurrence), attempt)


@pytest.mark.requirement("001 Task State Model/1")
@pytest.mark.parametrize(
    ("state", "now", "wake"),
    [
        pytest.param(RAN, "10:30:00", "11:00", id="nothing due"),
        pytest.param(RAN, "10:00:00", "11:00", id="its own minute again"),
        pytest.param(RAN, "09:57:00", "11:00", id="the clock stepped back a little"),
        pytest.param(FAILED, "10:04:59", "10:05", id="the retry is ahead"),
        pytest.param(replace(RAN, running=True), "11:00:00", None, id="it runs"),
        pytest.param(PAUSED, "12:00:00", None, id="paused"),
        pytest.param(replace(PAUSED, paused_until=at("18:00")), "12:00:00", "18:00", id="until"),
    ],
)
def test_what_waits_and_until_when(state: TaskState, now: str, wake: str | None) -> None:
    decision = decided(state, now)
    assert (decision.start, decision.events) == (None, ())
    assert decision.wake_at == (None if wake is None else at(wake))


def test_what_is_missed_is_told_in_one_event_before_the_start() -> None:
    skipped, started = decided(RAN, "13:20:00").events
    assert isinstance(skipped, events.TaskSkipped)
    assert (skipped.reason, skipped.outcome, skipped.count) == ("no_scheduler", "missed", 2)
    assert (skipped.scheduled_from, skipped.scheduled_time) == (at("11:00"), at("12:00"))
    assert isinstance(started, events.TaskRunStarted)


def test_what_fell_under_the_own_run_is_told_apart_from_what_was_missed() -> None:
    state = replace(RAN, freed_at=at("12:30"))
    coalesced, missed, _ = decided(state, "15:20:00").events
    assert isinstance(coalesced, events.TaskSkipped)
    assert isinstance(missed, events.TaskSkipped)
    assert (coalesced.reason, coalesced.count) == ("coalesced", 2)
    assert (missed.reason, missed.count) == ("no_scheduler", 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_registration_that_ends_in_the_next_minute_owes_one_boot_run(policy: Policy) -> None:
    (started,) = decided(AT_ITS_MINUTE, "10:01:00", "* * * * *", policy).events
    assert isinstance(started, events.TaskRunStarted)
    assert (started.reason, started.scheduled_time) == ("boot", at("10:01"))


def test_a_boot_run_that_waits_is_owed_no_more() -> None:
    active = [ActiveRun(run=1, scheduled_for=at("09:59"))]
    state = replace(AT_ITS_MINUTE, running=True)
    (waits,) = decided(state, "10:01:00", "* * * * *", "enqueue", active).events
    assert isinstance(waits, events.TaskRunWaiting)
    assert (waits.reason, waits.scheduled_time) == ("boot", at("10:01"))
    assert apply(waits, state).boot_at is None


def test_a_boot_obligation_that_nobody_met_in_time_is_told_as_missed() -> None:
    missed, started = decided(AT_ITS_MINUTE, "10:02:00", "0,2 * * * *").events
    assert isinstance(missed, events.TaskSkipped)
    assert (missed.scheduled_time, missed.count) == (at("10:00"), 1)
    assert isinstance(started, events.TaskRunStarted)
    assert (started.reason, started.scheduled_time) == ("due", at("10:02"))


def test_a_mark_far_ahead_is_set_back_and_one_believable_is_not() -> None:
    ahead = replace(RAN, discharged_at=at("18:00"))
    (reset,) = decided(ahead, "10:30:00").events
    assert isinstance(reset, events.TaskHighWaterMarkReset)
    near = replace(RAN, discharged_at=at("10:30") + BELIEVABLE)
    assert decided(near, "10:30:00").events == ()


instants = st.datetimes(min_value=datetime(2023, 12, 1), max_value=datetime(2024, 4, 1)).map(
    lambda naive: naive.replace(tzinfo=UTC)
)
maybe = st.none() | instants
states = st.builds(
    TaskState,
    name=st.just("t"),
    registered_at=instants,
    last_attempt_at=maybe,
    last_success_at=maybe,
    pending_retry_until=maybe,
    discharged_at=maybe,
    occurrence_at=maybe,
    attempt=st.integers(0, 5),
    failures=st.integers(0, 5),
    freed_at=maybe,
    boot_at=st.none() | st.just(datetime(2023, 11, 30, tzinfo=UTC)),
    orphaned=st.booleans(),
    paused_since=maybe,
    paused_until=maybe,
    run_requested_at=maybe,
    running=st.booleans(),
)
crons = st.sampled_from(["* * * * *", "0 * * * *", "30 2 * * *", "0 0 1 * 1", "0 0 29 2 *"])
zones = st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"])


@pytest.mark.requirement(
    "001 Task State Model/1",
    "001 Deterministic Behavior/1",
    "001 Deterministic Behavior/2",
    "003 Testable Invariants/5",
)
@given(states, crons, zones, instants)
def test_every_decision_keeps_the_rules(
    state: TaskState, cron: str, zone: str, now: datetime
) -> None:
    bound = schedule(cron, zone)
    decision = decide(state, bound, RETRY, now)
    folded = state
    for event in decision.events:
        folded = apply(event, folded)
    assert folded == decision.state
    assert decide(state, bound, RETRY, now) == decision
    starts = [e for e in decision.events if isinstance(e, events.TaskRunStarted)]
    assert starts == ([decision.start] if decision.start else [])
    assert not (state.running and starts)
    if not any(isinstance(e, events.TaskHighWaterMarkReset) for e in decision.events):
        assert decision.state.mark >= state.mark
    if starts and starts[0].reason == "due":
        assert state.mark < starts[0].scheduled_time <= now
    if not decision.state.running and decision.start is None and decision.wake_at is not None:
        again = decide(decision.state, bound, RETRY, now)
        assert again.start is None
        assert again.events == ()


def test_a_delay_that_leaves_the_calendar_ends_at_its_last_day() -> None:
    late = FixedDelay(timedelta(days=5_000_000)).latest_retry_at(at("10:00"))
    assert late == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("freed", "dated"), [(-1, 0), (0, 0), (0.5, 0.5), (15, 15), (16, 0), (7200, 0)]
)
def test_a_start_is_dated_no_earlier_than_the_end_before_it(freed: float, dated: float) -> None:
    """A pass may be older than an end that was recorded while it waited for the database."""
    now = at("10:05")
    state = replace(
        RAN,
        freed_at=now + timedelta(seconds=freed),
        run_requested_at=at("10:04"),
        discharged_at=at("10:00"),
    )
    start = decide(state, schedule(), RETRY, now).start
    assert start is not None
    assert start.actual_time == now + timedelta(seconds=dated)


@pytest.mark.parametrize(
    ("now", "wake"), [("09:55:00", "11:00"), ("09:54:59", "09:54:59"), ("08:00:30", "08:00:30")]
)
def test_what_ended_after_the_clock_was_set_back_does_not_wait_for_the_old_time(
    now: str, wake: str
) -> None:
    ended = settle(Story(RAN), schedule(), at(now))
    assert ended.wake_at == at(wake)
    again = decided(ended.state, now)
    assert again.start is None
    is_believed = at("10:00") - at(now) <= BELIEVABLE
    assert again.state.mark == (at("10:00") if is_believed else at(now))
    assert again.wake_at is not None and again.wake_at > at(now)


@pytest.mark.parametrize(("begun", "starts"), [("10:50", False), ("09:50", True)])
def test_only_a_run_that_was_in_the_way_makes_an_occurrence_younger(
    begun: str, starts: bool
) -> None:
    state = TaskState(
        "t", at("08:00"), last_attempt_at=at(begun), freed_at=at("10:58"), run_count=1
    )
    window = timedelta(minutes=15)
    late = decide(state, schedule("0 10 * * *"), RETRY, at("11:00"), catch_up_window=window)
    assert (late.start and late.start.scheduled_time) == (at("10:00") if starts else None)
    assert ([getattr(each, "reason", "") for each in late.events] == ["too_late"]) is not starts
