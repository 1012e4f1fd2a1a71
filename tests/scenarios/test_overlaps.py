"""Overlap (002 Overlap Policies): what becomes of an occurrence while a run is active."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.core.events import Event
from django_declarative_cron.core.overlap import POLICIES
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.testing import Simulation
from django_declarative_cron.testing.callables import Job

from .conftest import Started, act, names, utc


def entry(job: Job, policy: str | None, **keys: Any) -> dict[str, Any]:
    policies = {} if policy is None else {"overlap_policy": policy}
    return {"name": "t", "cron": "*/5 * * * *", "callback": job, **policies, **keys}


def told_of(sim: Simulation) -> list[tuple[str, datetime, int]]:
    """Give what became of each occurrence: outcome or reason, the newest, and how many."""
    return [
        (
            run.reason if run.outcome in ("skipped", "missed") else run.outcome,
            run.scheduled_for,
            run.count,
        )
        for run in sim.runs("t")
    ]


def greatest_overlap(sim: Simulation) -> int:
    """Give how many runs went on at the same time at most."""
    edges = []
    for run in sim.runs("t"):
        if run.started_at is not None:
            edges.append((run.started_at, 1))
            edges.append((run.finished_at or sim.now, -1))
    now, most = 0, 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


@pytest.mark.requirement("002 CRON-18", "002 CRON-19")
@pytest.mark.parametrize("policy", [None, "skip"])
def test_p53_cron_19_skip_loses_what_falls_into_a_run(
    simulation: Started, policy: str | None
) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=12)), policy)])
    sim.advance_to("2024-01-01T10:21:00Z")
    first = sim.runs("t")[0]
    assert told_of(sim) == [
        ("succeeded", utc("10:05"), 1),
        ("overlap_skip", utc("10:10"), 1),
        ("overlap_skip", utc("10:15"), 1),
        ("running", utc("10:20"), 1),
    ]
    assert sim.runs("t")[1].detail == {"blocked_by": first.pk}
    assert sim.task("t").next_run_at == utc("10:25")
    assert greatest_overlap(sim) == 1


def test_skip_accounts_for_a_run_that_ended_while_nobody_looked(simulation: Started) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=12)), "skip")])
    sim.advance_to("2024-01-01T10:05:00Z")
    sim.jump_to("2024-01-01T10:31:00Z")
    assert told_of(sim) == [
        ("succeeded", utc("10:05"), 1),
        ("overlap_skip", utc("10:15"), 2),
        ("held_up", utc("10:25"), 2),
        ("running", utc("10:30"), 1),
    ]


def test_a_pending_retry_is_not_active(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail", "ok"], timedelta(seconds=10))
    sim.initialize([entry(job, "skip", retry_delay=timedelta(minutes=10))])
    sim.advance_to("2024-01-01T10:11:00Z")
    assert told_of(sim) == [("failed", utc("10:05"), 1), ("succeeded", utc("10:10"), 1)]
    assert sim.task("t").pending_retry_until is None


def test_a_person_waits_for_the_run_that_goes_on(simulation: Started) -> None:
    from django_declarative_cron.store import operator_actions

    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=3)), "skip")])
    sim.advance_to("2024-01-01T10:06:00Z")
    operator_actions.request_run(["t"], act(sim))
    sim.advance_to("2024-01-01T10:08:30Z")
    assert [(run.reason, run.started_at) for run in sim.runs("t")] == [
        ("due", utc("10:05")),
        ("manual", utc("10:08")),
    ]


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_allow_runs_beside_itself(simulation: Started) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=12)), "allow")])
    sim.advance_to("2024-01-01T10:16:00Z")
    assert told_of(sim) == [
        ("running", utc("10:05"), 1),
        ("running", utc("10:10"), 1),
        ("running", utc("10:15"), 1),
    ]
    assert sim.task("t").running_run == sim.runs("t")[2].pk
    sim.advance_to("2024-01-01T10:18:00Z")
    assert [outcome for outcome, *_ in told_of(sim)] == ["succeeded", "running", "running"]
    assert sim.task("t").last_success_at == utc("10:17")
    assert greatest_overlap(sim) == 3


def test_allow_stays_running_until_its_last_run_has_ended(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=12))
    sim.initialize([entry(job, "allow")])
    sim.advance_to("2024-01-01T10:06:00Z")
    job.duration = timedelta(minutes=2)
    sim.advance_to("2024-01-01T10:13:00Z")
    older, newer = sim.runs("t")
    assert (older.outcome, newer.outcome) == ("running", "succeeded")
    assert sim.task("t").running_run == older.pk


def test_allow_does_not_try_an_overtaken_run_again(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail"], timedelta(minutes=7))
    sim.initialize([entry(job, "allow", retry_delay=timedelta(minutes=1))])
    sim.advance_to("2024-01-01T10:12:30Z")
    overtaken = sim.runs("t")[0]
    assert (overtaken.outcome, overtaken.detail) == ("failed", {"given_up": "overtaken"})
    assert sim.task("t").pending_retry_until is None
    assert sim.task("t").failures == 1


def test_allow_does_not_try_a_run_again_whose_successor_has_ended(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail", "ok"], timedelta(minutes=8))
    sim.initialize([entry(job, "allow", retry_delay=timedelta(minutes=1))])
    sim.advance_to("2024-01-01T10:06:00Z")
    job.duration = timedelta(minutes=1)
    sim.advance_to("2024-01-01T10:14:30Z")
    assert [(r.scheduled_for, r.outcome, r.detail) for r in sim.runs("t")] == [
        (utc("10:05"), "failed", {"given_up": "overtaken"}),
        (utc("10:10"), "succeeded", None),
    ]
    assert sim.task("t").pending_retry_until is None


def test_allow_keeps_the_retry_of_its_newest_run_when_an_older_one_fails_after_it(
    simulation: Started,
) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail"], timedelta(minutes=7))
    sim.initialize([entry(job, "allow", retry_delay=timedelta(minutes=3))])
    sim.advance_to("2024-01-01T10:06:00Z")
    job.duration = timedelta(minutes=1)
    sim.advance_to("2024-01-01T10:13:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["failed", "failed"]
    assert sim.task("t").pending_retry_until == utc("10:14")


def test_allow_tries_its_newest_run_again(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail", "ok"], timedelta(minutes=1))
    sim.initialize([entry(job, "allow", retry_delay=timedelta(minutes=1))])
    sim.advance_to("2024-01-01T10:09:00Z")
    assert [(r.reason, r.attempt, r.started_at) for r in sim.runs("t")] == [
        ("due", 1, utc("10:05")),
        ("retry", 2, utc("10:07")),
    ]


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_cancel_previous_asks_each_at_the_next_occurrence(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=12)), "cancel_previous")])
    sim.advance_to("2024-01-01T10:10:00Z")
    old, new = sim.runs("t")
    assert (old.outcome, old.cancel_requested_at) == ("running", utc("10:10"))
    assert (new.outcome, new.started_at) == ("running", utc("10:10"))
    assert names(told)[-2:] == ["TaskRunCancelRequested", "TaskRunStarted"]
    sim.advance_to("2024-01-01T10:18:00Z")
    # A virtual run does not hear that it is asked: it ends when it would have, and too late.
    assert [(run.outcome, run.cancel_requested_at) for run in sim.runs("t")] == [
        ("cancelled", utc("10:10")),
        ("running", utc("10:15")),
        ("running", None),
    ]
    assert sim.task("t").running_run == sim.runs("t")[2].pk
    assert sim.task("t").last_success_at is None


def test_a_cancelled_run_that_fails_sets_no_retry(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail"], timedelta(minutes=7))
    sim.initialize([entry(job, "cancel_previous", retry_delay=timedelta(minutes=1))])
    sim.advance_to("2024-01-01T10:12:30Z")
    old = sim.runs("t")[0]
    assert (old.outcome, bool(old.error)) == ("cancelled", True)
    assert sim.task("t").pending_retry_until is None
    assert sim.task("t").failures == 0


def test_cancel_previous_does_nothing_to_a_run_that_has_ended(simulation: Started) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=4)), "cancel_previous")])
    sim.advance_to("2024-01-01T10:11:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["succeeded", "running"]
    assert TaskRun.objects.exclude(cancel_requested_at=None).count() == 0


@pytest.mark.requirement("002 CRON-18")
def test_p53_cron_18_enqueue_lets_each_occurrence_wait_for_its_turn(simulation: Started) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=8)), "enqueue")])
    sim.advance_to("2024-01-01T10:12:00Z")
    first, second = sim.runs("t")
    assert (second.outcome, second.started_at, second.scheduled_for) == (
        "waiting",
        None,
        utc("10:10"),
    )
    assert second.detail == {"behind": first.pk}
    assert sim.task("t").waiting == 1
    sim.advance_to("2024-01-01T10:30:00Z")
    assert [(r.scheduled_for, r.started_at, r.outcome) for r in sim.runs("t")] == [
        (utc("10:05"), utc("10:05"), "succeeded"),
        (utc("10:10"), utc("10:13"), "succeeded"),
        (utc("10:15"), utc("10:21"), "succeeded"),
        (utc("10:20"), utc("10:29"), "running"),
        (utc("10:25"), None, "waiting"),
        (utc("10:30"), None, "waiting"),
    ]
    assert greatest_overlap(sim) == 1


@pytest.mark.requirement("002 CRON-S04")
def test_p53_cron_s04_more_than_two_waiting_are_warned_of(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=60)), "enqueue")])
    sim.advance_to("2024-01-01T10:15:00Z")
    assert "TaskBacklogGrowing" not in names(told)
    sim.advance_to("2024-01-01T10:20:00Z")
    [warned] = [event for event in told if type(event).__name__ == "TaskBacklogGrowing"]
    assert (warned.level, warned.waiting) == ("WARNING", 3)  # type: ignore[attr-defined]


def test_the_line_survives_a_restart(simulation: Started) -> None:
    sim = simulation("10:01:00")
    tasks = [entry(sim.job(["ok"], timedelta(minutes=8)), "enqueue")]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:11:00Z")
    sim.stop()
    assert [run.outcome for run in sim.runs("t")] == ["succeeded", "waiting"]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:14:00Z")
    assert [(r.scheduled_for, r.outcome) for r in sim.runs("t")] == [
        (utc("10:05"), "succeeded"),
        (utc("10:10"), "running"),
    ]


def test_an_interrupted_run_goes_before_the_line(simulation: Started) -> None:
    sim = simulation("10:01:00")
    tasks = [entry(sim.job(["ok"], timedelta(minutes=8)), "enqueue")]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:11:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:12:00Z")
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:22:00Z")
    assert [(r.scheduled_for, r.reason, r.attempt, r.outcome) for r in sim.runs("t")] == [
        (utc("10:05"), "due", 1, "interrupted"),
        (utc("10:10"), "due", 1, "running"),
        (utc("10:05"), "orphaned", 2, "succeeded"),
        (utc("10:15"), "due", 1, "waiting"),
        (utc("10:20"), "due", 1, "waiting"),
    ]
    assert greatest_overlap(sim) == 1


def test_a_retry_goes_before_the_line(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["fail", "ok"], timedelta(minutes=4))
    sim.initialize([entry(job, "enqueue", retry_delay=timedelta(minutes=5))])
    sim.advance_to("2024-01-01T10:20:00Z")
    assert [(r.scheduled_for, r.started_at, r.attempt) for r in sim.runs("t")] == [
        (utc("10:05"), utc("10:05"), 1),
        (utc("10:10"), utc("10:18"), 1),
        (utc("10:05"), utc("10:14"), 2),
        (utc("10:15"), None, 1),
        (utc("10:20"), None, 1),
    ]


def test_a_pause_holds_the_line(simulation: Started) -> None:
    from django_declarative_cron.store import operator_actions

    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"], timedelta(minutes=8)), "enqueue")])
    sim.advance_to("2024-01-01T10:11:00Z")
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T10:27:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["succeeded", "waiting"]
    operator_actions.resume(["t"], act(sim))
    sim.advance_to("2024-01-01T10:28:00Z")
    assert told_of(sim) == [
        ("succeeded", utc("10:05"), 1),
        ("running", utc("10:10"), 1),
        ("disabled", utc("10:25"), 3),
    ]


@pytest.mark.parametrize(
    "change", [{"cron": "0 * * * *"}, {"name": "u"}], ids=["override", "removal"]
)
def test_another_declaration_ends_those_that_wait(
    simulation: Started, change: dict[str, str]
) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=8))
    sim.initialize([entry(job, "enqueue")])
    sim.advance_to("2024-01-01T10:11:00Z")
    sim.initialize([entry(job, "enqueue", **change)])
    sim.advance_to("2024-01-01T10:14:00Z")
    assert [(r.outcome, r.started_at) for r in sim.runs("t")] == [
        ("succeeded", utc("10:05")),
        ("cancelled", None),
    ]
    assert sum(ScheduledTask.objects.values_list("waiting", flat=True)) == 0


@pytest.mark.beyond_the_theory
def test_runs_that_waited_are_each_dated_by_the_end_of_the_run_before(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:01:00")
    job, late = sim.job(["ok"], timedelta(minutes=8)), {"t": 0, "u": 3, "v": 1}
    sim.initialize([entry(job, "enqueue", name=name) for name in late])
    sim.advance_to("2024-01-01T10:12:00Z")
    assert sim[0].scheduler is not None
    engine = sim[0].scheduler._engine
    record = engine._record_results

    def ends_while_the_pass_waits(now: datetime) -> None:
        record(now)
        for name, seconds in late.items():
            ended = utc("10:13") + timedelta(seconds=seconds)
            ScheduledTask.objects.filter(name=name, freed_at=utc("10:13")).update(freed_at=ended)

    monkeypatch.setattr(engine, "_record_results", ends_while_the_pass_waits)
    sim.advance_to("2024-01-01T10:14:00Z")
    begun = [sim.runs(name)[1].started_at for name in late]
    assert begun == [utc("10:13:00"), utc("10:13:03"), utc("10:13:01")]


@pytest.mark.parametrize("policy", POLICIES)
def test_p54_p62_an_interrupted_run_restarts_once_and_blocks_nothing(
    simulation: Started, policy: str
) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=3))
    sim.initialize([entry(job, policy)])
    sim.advance_to("2024-01-01T10:06:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:07:00Z")
    sim.initialize([entry(job, policy)])
    sim.advance_to("2024-01-01T10:09:00Z")
    assert [(r.reason, r.attempt, r.outcome) for r in sim.runs("t")] == [
        ("due", 1, "interrupted"),
        ("orphaned", 2, "running"),
    ]
    sim.advance_to("2024-01-01T10:12:00Z")
    assert sim.starts("t") == [utc("10:05"), utc("10:07"), utc("10:10")]


def test_of_several_interrupted_runs_the_newest_restarts(simulation: Started) -> None:
    sim = simulation("10:01:00")
    tasks = [entry(sim.job(["ok"], timedelta(minutes=30)), "allow")]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:11:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:12:00Z")
    sim.initialize(tasks)
    assert [(r.scheduled_for, r.reason, r.outcome) for r in sim.runs("t")] == [
        (utc("10:05"), "due", "interrupted"),
        (utc("10:10"), "due", "interrupted"),
        (utc("10:10"), "orphaned", "running"),
    ]


def test_an_interrupted_run_whose_successor_has_ended_does_not_restart(
    simulation: Started,
) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=30))
    tasks = [entry(job, "allow")]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:06:00Z")
    job.duration = timedelta(minutes=1)
    sim.advance_to("2024-01-01T10:12:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:13:00Z")
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:14:00Z")
    assert [(r.scheduled_for, r.reason, r.outcome) for r in sim.runs("t")] == [
        (utc("10:05"), "due", "interrupted"),
        (utc("10:10"), "due", "succeeded"),
    ]
    assert not sim.task("t").orphaned


def test_a_cancelled_run_does_not_restart(simulation: Started) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=7))
    tasks = [entry(job, "cancel_previous")]
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:05:00Z")
    TaskRun.objects.update(cancel_requested_at=sim.now)
    sim.crash()
    sim.jump_to("2024-01-01T10:06:00Z")
    sim.initialize(tasks)
    sim.advance_to("2024-01-01T10:09:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted"]


@pytest.mark.requirement("002 CRON-25")
@pytest.mark.parametrize("policy", POLICIES)
def test_cron_25_after_a_pause_of_the_process_one_run_catches_up(
    simulation: Started, policy: str
) -> None:
    sim = simulation("10:01:00")
    sim.initialize([entry(sim.job(["ok"]), policy)])
    sim.advance_to("2024-01-01T10:06:00Z")
    sim.jump_to("2024-01-01T10:26:00Z")
    assert told_of(sim)[1:] == [
        ("held_up", utc("10:20"), 3),
        ("succeeded", utc("10:25"), 1),
    ]


@pytest.mark.beyond_the_theory
@pytest.mark.parametrize(
    ("before", "after"), [("allow", "skip"), ("cancel_previous", "coalesce"), ("allow", "enqueue")]
)
def test_a_change_of_policy_leaves_no_two_runs_side_by_side(
    simulation: Started, before: str, after: str
) -> None:
    sim = simulation("10:01:00")
    job = sim.job(["ok"], timedelta(minutes=12))
    sim.initialize([entry(job, before)])
    sim.advance_to("2024-01-01T10:11:00Z")
    assert greatest_overlap(sim) == 2
    job.duration = timedelta(minutes=1)
    sim.initialize([entry(job, after)])
    sim.advance_to("2024-01-01T10:40:00Z")
    started = [run for run in sim.runs("t") if run.started_at is not None]
    ends = [run.finished_at for run in started[:2]]
    assert all(run.started_at >= max(ends) for run in started[2:])  # type: ignore[type-var]
    assert len(started) > 3
