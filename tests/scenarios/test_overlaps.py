"""Overlap (002 Overlap Policies): what becomes of an occurrence while a run is active."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from .conftest import SECOND, Start, act, entry, job, restart, scheduler_of
from .observed import names, of, runs, utc

STARTED = "scheduled_for outcome"


def minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


def every_five(
    policy: str, outcomes: str | Job = "ok", lasts: int = 0, **keys: Any
) -> dict[str, Any]:
    """Declare a task that is due every five minutes; its runs last some minutes."""
    said = {"name": "t", "cron": "*/5 * * * *", "overlap_policy": policy, **keys}
    return entry(outcomes=outcomes, lasts=minutes(lasts), **said)


def accounts(sim: Simulation) -> list[tuple[str, str, int]]:
    """Return what became of each occurrence: outcome or reason, the newest, and how many."""
    rows = runs(sim, "outcome reason scheduled_for count")
    return [
        (reason if outcome in ("skipped", "missed") else outcome, newest, count)
        for outcome, reason, newest, count in rows
    ]


def greatest_overlap(sim: Simulation) -> int:
    """Return how many runs went on at the same time at most."""
    edges = []
    for run in sim.runs("t"):
        if run.started_at is not None:
            edges += [(run.started_at, 1), (run.finished_at or sim.now, -1)]
    now, most = 0, 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


# --- skip ---


@pytest.mark.requirement("002 CRON-18", "002 CRON-19")
@pytest.mark.parametrize("is_default", [True, False])
def test_p53_cron_19_skip_loses_what_falls_into_a_run(start: Start, is_default: bool) -> None:
    registration = every_five("skip", lasts=12)
    if is_default:
        del registration["overlap_policy"]
    sim = start("10:01", registration)
    sim.advance_to(utc("10:21"))
    assert accounts(sim) == [
        ("succeeded", "10:05", 1),
        ("overlap_skip", "10:10", 1),
        ("overlap_skip", "10:15", 1),
        ("running", "10:20", 1),
    ]
    first, skipped, *_ = sim.runs("t")
    assert skipped.detail == {"blocked_by": first.pk}
    assert sim.task("t").next_run_at == utc("10:25")
    assert greatest_overlap(sim) == 1


def test_skip_accounts_for_a_run_that_ended_while_nobody_looked(start: Start) -> None:
    sim = start("10:01", every_five("skip", lasts=12))
    sim.advance_to(utc("10:05"))
    sim.jump_to(utc("10:31"))
    assert accounts(sim) == [
        ("succeeded", "10:05", 1),
        ("overlap_skip", "10:15", 2),
        ("held_up", "10:25", 2),
        ("running", "10:30", 1),
    ]


def test_a_pending_retry_is_not_active(start: Start) -> None:
    retried = every_five("skip", job("fail ok", 10 * SECOND), retry_delay=minutes(10))
    sim = start("10:01", retried)
    sim.advance_to(utc("10:11"))
    assert accounts(sim) == [("failed", "10:05", 1), ("succeeded", "10:10", 1)]
    assert sim.task("t").pending_retry_until is None


def test_a_person_waits_for_the_run_that_goes_on(start: Start) -> None:
    sim = start("10:01", every_five("skip", lasts=3))
    sim.advance_to(utc("10:06"))
    operator_actions.request_run(["t"], act(sim))
    sim.advance_to(utc("10:08:30"))
    assert runs(sim, "reason started_at") == [("due", "10:05"), ("manual", "10:08")]


# --- allow ---


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_allow_runs_beside_itself(start: Start) -> None:
    sim = start("10:01", every_five("allow", lasts=12))
    sim.advance_to(utc("10:16"))
    assert runs(sim, STARTED) == [(at, "running") for at in ("10:05", "10:10", "10:15")]
    assert sim.task("t").running_run == sim.runs("t")[2].pk
    sim.advance_to(utc("10:18"))
    assert runs(sim, "outcome") == ["succeeded", "running", "running"]
    assert sim.task("t").last_success_at == utc("10:17")
    assert greatest_overlap(sim) == 3


def test_allow_stays_running_until_its_last_run_has_ended(start: Start) -> None:
    once_long = job(lasts=minutes(12))
    sim = start("10:01", every_five("allow", once_long))
    sim.advance_to(utc("10:06"))
    once_long.duration = minutes(2)
    sim.advance_to(utc("10:13"))
    assert runs(sim, "outcome") == ["running", "succeeded"]
    assert sim.task("t").running_run == sim.runs("t")[0].pk


@pytest.mark.parametrize(
    ("outcomes", "later", "at", "after"),
    [
        ("fail", 7, "10:12:30", "running"),
        ("fail ok", 1, "10:14:30", "succeeded"),
    ],
    ids=["which goes on", "which has ended"],
)
def test_allow_does_not_try_a_run_again_that_another_has_overtaken(
    start: Start, outcomes: str, later: int, at: str, after: str
) -> None:
    first_long = job(outcomes, minutes(7))
    sim = start("10:01", every_five("allow", first_long, retry_delay=minutes(1)))
    sim.advance_to(utc("10:06"))
    first_long.duration = minutes(later)
    sim.advance_to(utc(at))
    assert runs(sim, "scheduled_for outcome detail") == [
        ("10:05", "failed", {"given_up": "overtaken"}),
        ("10:10", after, None),
    ]
    assert sim.task("t").pending_retry_until is None
    assert sim.task("t").failures == 1


def test_allow_keeps_the_retry_of_its_newest_run_when_an_older_one_fails_after_it(
    start: Start,
) -> None:
    first_long = job("fail fail ok", minutes(7))
    sim = start("10:01", every_five("allow", first_long, retry_delay=minutes(3)))
    sim.advance_to(utc("10:06"))
    first_long.duration = minutes(1)
    sim.advance_to(utc("10:13"))
    assert runs(sim, "outcome") == ["failed", "failed"]
    assert sim.task("t").pending_retry_until == utc("10:14")
    sim.advance_to(utc("10:14:30"))
    assert runs(sim, "reason attempt started_at")[2:] == [("retry", 2, "10:14")]


# --- cancel previous ---


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_cancel_previous_asks_each_at_the_next_occurrence(
    start: Start, told: list[Event]
) -> None:
    sim = start("10:01", every_five("cancel_previous", lasts=12))
    sim.advance_to(utc("10:10"))
    columns = "outcome started_at cancel_requested_at"
    assert runs(sim, columns) == [("running", "10:05", "10:10"), ("running", "10:10", None)]
    assert names(told)[-2:] == ["TaskRunCancelRequested", "TaskRunStarted"]
    sim.advance_to(utc("10:18"))
    # A virtual run does not hear that it is asked: it ends when it would have, and too late.
    assert runs(sim, columns) == [
        ("cancelled", "10:05", "10:10"),
        ("running", "10:10", "10:15"),
        ("running", "10:15", None),
    ]
    assert sim.task("t").running_run == sim.runs("t")[2].pk
    assert sim.task("t").last_success_at is None


def test_a_cancelled_run_that_fails_sets_no_retry(start: Start) -> None:
    cancelled = every_five("cancel_previous", "fail", lasts=7, retry_delay=minutes(1))
    sim = start("10:01", cancelled)
    sim.advance_to(utc("10:12:30"))
    old = sim.runs("t")[0]
    assert (old.outcome, bool(old.error)) == ("cancelled", True)
    assert sim.task("t").pending_retry_until is None
    assert sim.task("t").failures == 0


def test_cancel_previous_does_nothing_to_a_run_that_has_ended(start: Start) -> None:
    sim = start("10:01", every_five("cancel_previous", lasts=4))
    sim.advance_to(utc("10:11"))
    assert runs(sim, "outcome cancel_requested_at") == [("succeeded", None), ("running", None)]


# --- enqueue ---


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_enqueue_lets_each_occurrence_wait_for_its_turn(start: Start) -> None:
    sim = start("10:01", every_five("enqueue", lasts=8))
    sim.advance_to(utc("10:12"))
    first, second = sim.runs("t")
    assert (second.outcome, second.started_at) == ("waiting", None)
    assert second.detail == {"behind": first.pk}
    assert sim.task("t").waiting == 1
    sim.advance_to(utc("10:30"))
    assert runs(sim, "scheduled_for started_at outcome") == [
        ("10:05", "10:05", "succeeded"),
        ("10:10", "10:13", "succeeded"),
        ("10:15", "10:21", "succeeded"),
        ("10:20", "10:29", "running"),
        ("10:25", None, "waiting"),
        ("10:30", None, "waiting"),
    ]
    assert greatest_overlap(sim) == 1


@pytest.mark.requirement("002 CRON-S04")
def test_p53_cron_s04_more_than_two_waiting_are_warned_of(start: Start, told: list[Event]) -> None:
    sim = start("10:01", every_five("enqueue", lasts=60))
    sim.advance_to(utc("10:15"))
    assert "TaskBacklogGrowing" not in names(told)
    sim.advance_to(utc("10:20"))
    [warned] = of(told, events.TaskBacklogGrowing)
    assert (warned.level, warned.waiting) == ("WARNING", 3)


def test_the_line_survives_a_restart(start: Start) -> None:
    registration = every_five("enqueue", lasts=8)
    sim = start("10:01", registration)
    sim.advance_to(utc("10:11"))
    sim.stop()
    assert runs(sim, "outcome") == ["succeeded", "waiting"]
    sim.initialize([registration])
    sim.advance_to(utc("10:14"))
    assert runs(sim, STARTED) == [("10:05", "succeeded"), ("10:10", "running")]


def test_an_interrupted_run_goes_before_the_line(start: Start) -> None:
    registration = every_five("enqueue", lasts=8)
    sim = start("10:01", registration)
    sim.advance_to(utc("10:11"))
    restart(sim, registration, at="10:12")
    sim.advance_to(utc("10:22"))
    assert runs(sim, "scheduled_for reason attempt outcome") == [
        ("10:05", "due", 1, "interrupted"),
        ("10:10", "due", 1, "running"),
        ("10:05", "orphaned", 2, "succeeded"),
        ("10:15", "due", 1, "waiting"),
        ("10:20", "due", 1, "waiting"),
    ]
    assert greatest_overlap(sim) == 1


def test_a_retry_goes_before_the_line(start: Start) -> None:
    sim = start("10:01", every_five("enqueue", "fail ok", lasts=4, retry_delay=minutes(5)))
    sim.advance_to(utc("10:20"))
    assert runs(sim, "scheduled_for started_at attempt") == [
        ("10:05", "10:05", 1),
        ("10:10", "10:18", 1),
        ("10:05", "10:14", 2),
        ("10:15", None, 1),
        ("10:20", None, 1),
    ]


def test_a_pause_holds_the_line(start: Start) -> None:
    sim = start("10:01", every_five("enqueue", lasts=8))
    sim.advance_to(utc("10:11"))
    operator_actions.pause(["t"], act(sim))
    sim.advance_to(utc("10:27"))
    assert runs(sim, "outcome") == ["succeeded", "waiting"]
    operator_actions.resume(["t"], act(sim))
    sim.advance_to(utc("10:28"))
    assert accounts(sim) == [
        ("succeeded", "10:05", 1),
        ("running", "10:10", 1),
        ("disabled", "10:25", 3),
    ]


@pytest.mark.parametrize(
    "change", [{"cron": "0 * * * *"}, {"name": "u"}], ids=["override", "removal"]
)
def test_another_declaration_ends_those_that_wait(start: Start, change: dict[str, str]) -> None:
    sim = start("10:01", every_five("enqueue", lasts=8))
    sim.advance_to(utc("10:11"))
    sim.initialize([every_five("enqueue", lasts=8, **change)])
    sim.advance_to(utc("10:14"))
    assert runs(sim, "outcome started_at") == [("succeeded", "10:05"), ("cancelled", None)]
    assert sum(ScheduledTask.objects.values_list("waiting", flat=True)) == 0


@pytest.mark.beyond_the_theory
def test_runs_that_waited_are_each_dated_by_the_end_of_the_run_before(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = {"t": 0, "u": 3, "v": 1}
    sim = start("10:01", *(every_five("enqueue", lasts=8, name=name) for name in late))
    sim.advance_to(utc("10:12"))
    engine = scheduler_of(sim)._engine
    record = engine._record_results

    def ends_while_the_pass_waits(now: datetime) -> None:
        record(now)
        for name, seconds in late.items():
            ended = utc("10:13") + seconds * SECOND
            ScheduledTask.objects.filter(name=name, freed_at=utc("10:13")).update(freed_at=ended)

    monkeypatch.setattr(engine, "_record_results", ends_while_the_pass_waits)
    sim.advance_to(utc("10:14"))
    begun = [runs(sim, "started_at", name)[1] for name in late]
    assert begun == ["10:13", "10:13:03", "10:13:01"]


# --- each policy ---


@pytest.mark.parametrize("policy", POLICIES)
def test_p54_p62_an_interrupted_run_restarts_once_and_blocks_nothing(
    start: Start, policy: str
) -> None:
    registration = every_five(policy, lasts=3)
    sim = start("10:01", registration)
    sim.advance_to(utc("10:06"))
    restart(sim, registration, at="10:07")
    sim.advance_to(utc("10:12"))
    assert runs(sim, "reason attempt outcome started_at") == [
        ("due", 1, "interrupted", "10:05"),
        ("orphaned", 2, "succeeded", "10:07"),
        ("due", 1, "running", "10:10"),
    ]


@pytest.mark.parametrize(
    ("later", "restarted"),
    [(30, [("10:10", "orphaned", "running")]), (1, [])],
    ids=["the newest restarts", "none restarts whose successor has ended"],
)
def test_of_several_interrupted_runs(
    start: Start, later: int, restarted: list[tuple[str, str, str]]
) -> None:
    long = job(lasts=minutes(30))
    registration = every_five("allow", long)
    sim = start("10:01", registration)
    sim.advance_to(utc("10:06"))
    long.duration = minutes(later)
    sim.advance_to(utc("10:12"))
    restart(sim, registration, at="10:13")
    sim.advance_to(utc("10:14"))
    assert runs(sim, "scheduled_for reason outcome") == [
        ("10:05", "due", "interrupted"),
        ("10:10", "due", "interrupted" if restarted else "succeeded"),
        *restarted,
    ]
    assert not sim.task("t").orphaned


def test_a_cancelled_run_does_not_restart(start: Start) -> None:
    registration = every_five("cancel_previous", lasts=7)
    sim = start("10:01", registration)
    sim.advance_to(utc("10:05"))
    TaskRun.objects.update(cancel_requested_at=sim.now)
    restart(sim, registration, at="10:06")
    sim.advance_to(utc("10:09"))
    assert runs(sim, "outcome") == ["interrupted"]


@pytest.mark.requirement("002 CRON-25")
@pytest.mark.parametrize("policy", POLICIES)
def test_cron_25_after_a_pause_of_the_process_one_run_catches_up(start: Start, policy: str) -> None:
    sim = start("10:01", every_five(policy))
    sim.advance_to(utc("10:06"))
    sim.jump_to(utc("10:26"))
    assert accounts(sim)[1:] == [("held_up", "10:20", 3), ("succeeded", "10:25", 1)]


@pytest.mark.requirement("002 CRON-07")
@pytest.mark.parametrize("policy", POLICIES)
def test_cron_07_the_next_run_moves_on_with_each_occurrence_during_a_run(
    start: Start, policy: str
) -> None:
    sim = start("10:01", every_five(policy, lasts=60))
    sim.advance_to(utc("10:11"))
    # What coalesces is not looked at before the end of its run: 10:10 is still to be served.
    expected = utc("10:10") if policy == "coalesce" else utc("10:15")
    assert sim.task("t").next_run_at == expected


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("before", "after"), [("allow", "skip"), ("cancel_previous", "coalesce"), ("allow", "enqueue")]
)
def test_a_change_of_policy_leaves_no_two_runs_side_by_side(
    start: Start, before: str, after: str
) -> None:
    sim = start("10:01", every_five(before, lasts=12))
    sim.advance_to(utc("10:11"))
    assert greatest_overlap(sim) == 2
    sim.initialize([every_five(after, lasts=1)])
    sim.advance_to(utc("10:40"))
    started = [run for run in sim.runs("t") if run.started_at is not None]
    ends = [run.finished_at for run in started[:2]]
    assert all(run.started_at >= max(ends) for run in started[2:])  # type: ignore[type-var]
    assert len(started) > 3
