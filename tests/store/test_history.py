"""Stored histories, told and judged: healthy ones break nothing, damaged ones the right axiom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from django_declarative_cron.models import (
    RegistrationSet,
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.liveness import heartbeat
from django_declarative_cron.store.trace_values import Busy, Flights
from django_declarative_cron.testing import Simulation

from ..effort import IS_COMPLETE
from .conftest import FIVE_MINUTES, HOURLY, LEASE, MINUTELY, act, instances, judged, start, utc

pytestmark = pytest.mark.django_db

LONG = timedelta(minutes=30)


def _entry(name: str, cron: str = HOURLY, **keys: Any) -> dict[str, Any]:
    callback = "tests.store.conftest.nothing"
    base = {"name": name, "cron": cron, "timezone": "UTC", "callback": callback}
    return base | {"retry_delay": FIVE_MINUTES, **keys}


# --- healthy histories ---------------------------------------------------------


@pytest.mark.requirement("000 Real-time bounds/1", "001 Real-time bounds/1")
def test_the_trace_of_a_day_as_usual() -> None:
    sim = start("09:59:30")
    sim.initialize([("t", HOURLY, sim.job(["ok", "fail", "ok"]), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:30:00Z")
    sim.stop()
    told = judged(sim)
    assert told.events == [
        *("IS", "IEs", "RS t", "REs t", "RS t", "REf t", "RS t", "REs t", "SS", "SE", "Tick")
    ]
    assert (told.broken, told.told.runs, told.told.away) == ([], 3, [])
    assert told.verdict.worst_start_latency == timedelta(0)
    [registration] = told.records[1]["registrations"]
    assert registration == {
        "name": "t",
        "cron": HOURLY,
        "timezone": "UTC",
        "dialect": "posix",
        "gap": "skip",
        "fold": "first",
        "overlap_policy": "coalesce",
        "retry_delay": FIVE_MINUTES,
    }


def _crash_and_restart(sim: Simulation) -> None:
    job = sim.job(duration=LONG)
    registrations = [("t", HOURLY, job, FIVE_MINUTES), ("u", MINUTELY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T13:20:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T14:05:00Z")


def _crash_while_nothing_runs(sim: Simulation) -> None:
    registrations = [("t", HOURLY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.crash()
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T12:00:00Z")


def _stop_and_again_at_once(sim: Simulation) -> None:
    registrations = [("t", MINUTELY, sim.job(), FIVE_MINUTES)]
    for _ in range(4):
        sim.initialize(registrations)
        sim.stop()
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:05:00Z")


def _another_set_in_the_instant_of_the_restart(sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=2))
    registrations = [("t", MINUTELY, job, FIVE_MINUTES), ("u", HOURLY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:05:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T10:07:30Z")
    sim.initialize(registrations)
    sim.initialize(registrations[:1])
    sim.advance_to("2024-01-01T10:15:00Z")


def _long_stop(sim: Simulation) -> None:
    registrations = [
        ("slow", "1 10 * * *", sim.job(duration=timedelta(hours=3)), FIVE_MINUTES),
        ("t", MINUTELY, sim.job(), FIVE_MINUTES),
    ]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:10:00Z")
    sim.stop()
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T13:10:00Z")


def _overrides(sim: Simulation) -> None:
    failing = sim.job(["fail"])
    sim.initialize([("t", HOURLY, failing, FIVE_MINUTES), ("u", HOURLY, failing, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:02:00Z")
    sim.initialize([("t", "30 * * * *", failing, FIVE_MINUTES), ("u", HOURLY, failing, LONG)])
    sim.advance_to("2024-01-01T12:45:00Z")
    sim.crash()
    sim.initialize([("t", "45 * * * *", failing, FIVE_MINUTES), ("u", HOURLY, failing, LONG)])
    sim.advance_to("2024-01-01T14:00:00Z")


def _override_while_running(sim: Simulation) -> None:
    job = sim.job(["fail"], duration=LONG)
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:05:00Z")
    sim.initialize([("t", "10 * * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T13:00:00Z")


def _removal_and_return(sim: Simulation) -> None:
    job = sim.job(["fail"], duration=timedelta(minutes=2))
    kept = ("kept", "0,10,20 * * * *", sim.job(), FIVE_MINUTES)
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES), kept])
    sim.advance_to("2024-01-01T11:01:00Z")
    sim.initialize([kept])
    sim.advance_to("2024-01-01T12:00:10Z")
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES), kept])
    sim.advance_to("2024-01-01T13:30:00Z")
    sim.initialize([])
    sim.advance_to("2024-01-01T14:30:00Z")


def _retries(sim: Simulation) -> None:
    sim.initialize(
        [
            ("a", HOURLY, sim.job(["fail", "fail", "ok"]), FIVE_MINUTES),
            ("b", "30-35 * * * *", sim.job(["fail"], timedelta(seconds=10)), FIVE_MINUTES / 15),
            ("c", "0,5 * * * *", sim.job(["fail"]), FIVE_MINUTES),
            ("d", HOURLY, sim.job(["fail", "fail", "fail", "ok"]), timedelta(0)),
        ]
    )
    sim.advance_to("2024-01-01T11:30:00Z")
    sim.stop()
    sim.jump_to("2024-01-01T12:07:00Z")
    sim.initialize([("c", "0,5 * * * *", sim.job(["fail"]), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T12:30:00Z")


def _follow_ups(sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=10))
    sim.initialize([("t", MINUTELY, job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:00:00Z")


def _suspended(sim: Simulation) -> None:
    sim.initialize([("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.jump_to("2024-01-01T17:20:00Z")
    sim.advance_to("2024-01-01T18:30:00Z")


def _two_instances(sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=20))
    registrations = [("t", HOURLY, job, FIVE_MINUTES), ("u", "5-9 * * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim[0].crash()
    sim.advance_to("2024-01-01T12:10:00Z")
    sim[1].stop()
    sim.jump_to("2024-01-01T14:00:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T15:10:00Z")


def _a_new_release_comes_while_the_old_one_drains(sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=20))
    old, new = sim[0], sim[1]
    old.initialize([("t", HOURLY, job, FIVE_MINUTES), ("gone", MINUTELY, job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:02:00Z")
    new.initialize([("t", HOURLY, job, FIVE_MINUTES), ("u", MINUTELY, sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:05:00Z")
    old.scheduler.request_stop()
    sim.advance_to("2024-01-01T13:00:00Z")
    stopped = SchedulerInstance.objects.order_by("initialized_at").values_list(
        "stopped_at", flat=True
    )
    assert list(stopped) == [utc("11:20:30"), None]


# The phase of the passes within their minute does not depend on the database.
BEGINS: list[Any] = ["10:00:00"]
if IS_COMPLETE:
    BEGINS.append(pytest.param("10:00:30", marks=pytest.mark.alike))

STORIES: list[Callable[[Simulation], None]] = [
    _crash_and_restart,
    _crash_while_nothing_runs,
    _stop_and_again_at_once,
    _another_set_in_the_instant_of_the_restart,
    _long_stop,
    _overrides,
    _override_while_running,
    _removal_and_return,
    _retries,
    _follow_ups,
    _suspended,
]


@pytest.mark.requirement("001 Idempotency Guarantees/6", "004 Scope/1")
@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__.strip("_"))
@pytest.mark.parametrize("at", BEGINS)
def test_a_healthy_history_breaks_nothing(story: Callable[[Simulation], None], at: str) -> None:
    sim = start(at)
    story(sim)
    told = judged(sim)
    assert told.broken == []
    assert told.verdict.starts == told.told.runs == TaskRun.objects.exclude(started_at=None).count()


@pytest.mark.slow
@pytest.mark.parametrize(
    "story",
    [_two_instances, _a_new_release_comes_while_the_old_one_drains],
    ids=lambda s: s.__name__,
)
def test_instances_are_one_scheduler_to_the_theory(story: Callable[[Simulation], None]) -> None:
    sim = start(instances=2)
    story(sim)
    told = judged(sim)
    assert told.broken == []
    assert told.verdict.starts == told.told.runs


@pytest.mark.requirement("003 Test Methodology/4")
@pytest.mark.slow
@pytest.mark.alike
@pytest.mark.parametrize(
    ("zone", "begins", "ends"),
    [
        ("America/New_York", "2024-03-10T05:30:00", "2024-03-10T09:30:00"),
        ("America/New_York", "2024-11-03T04:30:00", "2024-11-03T08:30:00"),
        ("Australia/Lord_Howe", "2024-04-06T13:30:00", "2024-04-06T17:00:00"),
    ],
)
def test_what_clocks_do_in_spring_and_autumn_breaks_nothing(
    zone: str, begins: str, ends: str
) -> None:
    sim = start(begins, time_zone=zone)
    sim.initialize(
        [
            ("gap", "30 2 * * *", sim.job(), FIVE_MINUTES),
            ("daily", "30 1 * * *", sim.job(["fail", "ok"]), timedelta(minutes=40)),
            ("minutely", MINUTELY, sim.job(), FIVE_MINUTES),
            _entry("both", "15 1 * * *", timezone=zone, fold="both"),
            _entry("shifted", "45 2 * * *", timezone=zone, gap="shift"),
        ]
    )
    sim.advance_to(f"{ends}Z")
    told = judged(sim)
    assert (told.broken, told.told.set_aside) == ([], {})
    assert told.verdict.starts > 100


def test_what_waits_when_it_ends_is_said() -> None:
    sim = start()
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.clock.advance(utc("11:01"))
    told = judged(sim)
    assert told.broken == []
    [still_open] = told.verdict.open_obligations
    assert (still_open.axiom, still_open.task, still_open.at) == ("L1", "t", utc("11:00"))


# --- stamping ------------------------------------------------------------------


def _at(records: list[dict[str, Any]], event: str) -> list[datetime]:
    return [record["at"] for record in records if record["event"] == event]


def test_a_crash_is_dated_at_the_last_heartbeat() -> None:
    sim = start()
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.clock.advance(utc("10:20:00"))
    instances(sim)[0].scheduler.beat()
    sim.clock.advance(utc("10:40:00"))
    assert _at(judged(sim, living=False).records, "Crash") == [utc("10:20")]


def test_or_at_what_was_done_after_it() -> None:
    sim = start()
    sim.initialize([("t", "5,10 * * * *", sim.job(duration=timedelta(minutes=2)), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:11:00Z")
    assert _at(judged(sim, living=False).records, "Crash") == [utc("10:10")]


def test_a_run_that_a_survivor_finds_interrupted_is_retried_at_once() -> None:
    sim = start(instances=2)
    sim.initialize([("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:10:00Z")
    sim[0].crash()
    sim.advance_to("2024-01-01T11:20:00Z")
    told = judged(sim)
    [failure] = [record for record in told.records if record["event"] == "REf"]
    assert failure["at"] == failure["retry_at"]
    assert "Crash" not in told.events
    assert told.events.count("RS t") == 3
    assert told.broken == []


def test_a_run_of_a_crash_that_nobody_has_found_yet_is_not_one_that_outlives_the_stop() -> None:
    sim = start(instances=2)
    sim.initialize([("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:10:00Z")
    sim[0].crash()
    sim[1].stop()
    assert TaskRun.objects.filter(outcome="running").count() == 1
    told = judged(sim)
    assert told.events[-4:] == ["REf t", "SS", "SE", "Tick"]
    assert told.broken == []
    sim.jump_to("2024-01-01T11:20:00Z")
    sim[1].initialize([("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)])
    assert judged(sim).broken == []


def test_a_process_that_was_silent_and_lives_was_frozen() -> None:
    sim = start()
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:59:00Z")
    member = replace(instances(sim)[0].scheduler._engine.member, lease=LEASE)
    instances(sim)[0].scheduler.beat()
    sim.clock.advance(utc("13:30"))
    heartbeat(member)
    sim.poll()
    sim.advance_to("2024-01-01T14:00:00Z")
    told = judged(sim)
    assert told.broken == []
    [freeze] = [record for record in told.records if record["event"] == "Freeze"]
    assert (freeze["at"], freeze["until"]) == (utc("10:59"), utc("13:30"))
    assert [late.task for late in told.verdict.late] == ["t"]


# --- what people do ------------------------------------------------------------


def _paused_and_resumed(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T12:30:00Z")
    operator_actions.resume(["t"], act(sim))


def _paused_for_a_while(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim), until=utc("12:30"))


def _paused_over_a_restart_and_an_override(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T11:30:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T12:10:00Z")
    sim.initialize([("t", MINUTELY, sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T12:20:30Z")
    operator_actions.resume(["t"], act(sim))


def _asked_for(sim: Simulation) -> None:
    operator_actions.request_run(["t"], act(sim))
    sim.poll()


def _cleared(sim: Simulation) -> None:
    sim.advance_to("2024-01-01T11:01:00Z")
    operator_actions.clear_retry(["t"], act(sim))


def _asked_for_and_interrupted(sim: Simulation) -> None:
    operator_actions.request_run(["t"], act(sim))
    sim.poll()
    sim.crash()
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])


ACTS = [
    (_paused_and_resumed, 0),
    (_paused_for_a_while, 0),
    (_paused_over_a_restart_and_an_override, 1),
    (_asked_for, 1),
    (_cleared, 0),
    (_asked_for_and_interrupted, 1),
]


@pytest.mark.slow
@pytest.mark.alike
@pytest.mark.parametrize(("done", "aside"), ACTS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize(
    ("outcomes", "duration"),
    [(["ok"], timedelta(0)), (["ok", "fail", "ok"], timedelta(minutes=2))],
    ids=["good", "failing"],
)
def test_what_people_do_is_no_violation(
    done: Callable[[Simulation], None], aside: int, outcomes: list[str], duration: timedelta
) -> None:
    sim = start("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(outcomes, duration), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:50:00Z")
    done(sim)
    sim.advance_to("2024-01-01T13:30:00Z")
    told = judged(sim)
    assert (told.broken, told.told.away) == ([], [])
    assert told.told.set_aside["people"] >= aside
    assert told.verdict.starts == told.told.runs - told.told.set_aside["people"] >= 2


def test_a_stop_may_wait_for_a_run_that_is_not_judged() -> None:
    sim = start("10:00:00")
    sim.initialize([("t", "0 0 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    operator_actions.request_run(["t"], act(sim))
    sim.poll()
    sim.stop()
    told = judged(sim)
    assert (told.broken, told.told.set_aside["people"]) == ([], 1)
    assert (_at(told.records, "SS"), _at(told.records, "SE")) == ([utc("10:00")], [utc("10:30")])


def test_a_task_that_is_paused_is_out_of_sight() -> None:
    sim = start("10:00:00")
    sim.initialize([_entry("t"), _entry("off", enabled=False)])
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T12:30:00Z")
    told = judged(sim)
    assert (told.broken, told.told.away) == ([], ["off", "t"])
    sim.initialize([_entry("t"), _entry("off")])
    sim.advance_to("2024-01-01T14:30:00Z")
    assert (judged(sim).broken, judged(sim).told.away) == ([], ["t"])


def test_many_acts_of_one_instant_change_the_list_once() -> None:
    sim = start("10:00:00")
    names = [f"t{number}" for number in range(20)]
    sim.initialize([(name, HOURLY, sim.job(), FIVE_MINUTES) for name in names])
    operator_actions.pause(names, act(sim))
    operator_actions.resume(names, act(sim))
    sim.advance_to("2024-01-01T11:30:00Z")
    told = judged(sim)
    lists = [len(r["registrations"]) for r in told.records if r["event"] == "IEs"]
    assert (told.broken, lists) == ([], [20, 0, 20])


# --- what the rows do not tell -------------------------------------------------


@pytest.mark.slow
@pytest.mark.alike
@pytest.mark.parametrize("back", ["11:57:00", "11:40:00", "11:10:00"])
def test_minutes_that_were_lived_twice_are_not_judged(back: str) -> None:
    sim = start("11:30:00")
    sim.initialize(
        [("t", MINUTELY, sim.job(), FIVE_MINUTES), ("u", "0,30 * * * *", sim.job(["fail"]), LONG)]
    )
    sim.advance_to("2024-01-01T12:00:30Z")
    sim.jump_to(utc(back))
    sim.advance_to("2024-01-01T12:30:30Z")
    told = judged(sim)
    assert told.broken == []
    assert told.told.set_aside["clock"] > 0
    assert told.verdict.starts >= 29


def test_a_history_may_end_in_minutes_that_are_lived_a_second_time() -> None:
    sim = start("12:30:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.jump_to(utc("08:30"))
    sim.advance_to("2024-01-01T09:00:00Z")
    told = judged(sim)
    assert (told.broken, told.told.set_aside["clock"], told.told.away) == ([], 1, ["t"])


def test_rows_that_somebody_deleted_or_damaged_are_not_judged() -> None:
    sim = start("10:00:00")
    registrations = [("t", HOURLY, sim.job(), FIVE_MINUTES), ("u", HOURLY, sim.job(), LONG)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:30:00Z")
    ScheduledTask.objects.filter(name="t").delete()
    ScheduledTask.objects.filter(name="u").update(retry_delay=timedelta(days=-1))
    sim.advance_to("2024-01-01T11:30:00Z")
    ScheduledTask.objects.filter(name="t").delete()
    sim.crash()
    sim.jump_to("2024-01-01T13:00:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T15:30:00Z")
    told = judged(sim)
    assert (told.broken, told.told.away) == ([], [])


def test_runs_of_a_scheduler_whose_row_is_gone_are_not_judged() -> None:
    sim = start("10:00:00")
    registrations = [("t", MINUTELY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:10:00Z")
    sim.stop()
    SchedulerInstance.objects.all().delete()
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T10:20:00Z")
    told = judged(sim)
    assert told.broken == []
    assert told.told.set_aside["rows"] == 12


@pytest.mark.slow
def test_a_part_of_a_history_is_judged_from_each_tasks_next_occurrence_on() -> None:
    sim = start("10:50:00")
    _crash_and_restart(sim)
    operator_actions.pause(["u"], act(sim))
    sim.advance_to("2024-01-01T15:10:00Z")
    operator_actions.resume(["u"], act(sim))
    sim.advance_to("2024-01-01T15:30:00Z")
    whole = judged(sim)
    assert whole.broken == []
    for cut in ("10:50:30", "11:00:00", "11:05:00", "12:05:00", "13:20:00", "13:40:00"):
        told = judged(sim, since=cut)
        assert (told.broken, told.told.begins) == ([], utc(cut))
        assert min(record["at"] for record in told.records) >= utc(cut)
        assert 0 < told.verdict.starts < whole.verdict.starts
        assert told.told.runs == sum(run.started_at >= utc(cut) for run in _started())


def _started() -> list[Any]:
    return list(TaskRun.objects.exclude(started_at=None).order_by("id"))


def test_pruned_histories_are_judged_from_where_they_are_complete() -> None:
    sim = start("10:50:00")
    sim.initialize(
        [("t", MINUTELY, sim.job(), FIVE_MINUTES), ("u", "0,30 * * * *", sim.job(), FIVE_MINUTES)]
    )
    sim.advance_to("2024-01-01T12:10:30Z")
    TaskRun.objects.filter(task_name="t", started_at__lt=utc("11:20")).delete()
    assert ("L1", "t") in judged(sim).broken
    ScheduledTask.objects.filter(name="t").update(history_from=utc("11:19"))
    assert judged(sim).broken == []
    TaskRun.objects.filter(started_at__lt=utc("11:40")).delete()
    SchedulerState.objects.update(history_from=utc("11:39"))
    told = judged(sim)
    assert (told.broken, told.told.begins) == ([], utc("11:39"))
    assert judged(sim, since="11:00").told.begins == utc("11:39")


def test_before_any_scheduler_there_is_nothing_to_tell() -> None:
    sim = start()
    SchedulerState.objects.create(deployment="default")
    told = judged(sim)
    assert (told.told.is_empty, told.events) == (True, ["Tick"])


# --- damaged histories ---------------------------------------------------------


@pytest.fixture
def sim(db: None) -> Simulation:
    """Two tasks and a stop: the runs of t at 11:00, 12:00 and 13:00 take ten minutes."""
    sim = start()
    sim.initialize(
        [
            ("t", HOURLY, sim.job(duration=timedelta(minutes=10)), FIVE_MINUTES),
            ("u", "20 * * * *", sim.job(), FIVE_MINUTES),
        ]
    )
    sim.advance_to("2024-01-01T13:30:00Z")
    sim.stop()
    assert judged(sim).broken == []
    return sim


def _run_at(at: str) -> Any:
    return TaskRun.objects.filter(started_at=utc(at))


def _copy(at: str, started: str, finished: str, **changes: Any) -> None:
    """Write a run that never was, in the order of time."""
    later = list(TaskRun.objects.filter(started_at__gt=utc(started)).order_by("-id"))
    run = _run_at(at).get()
    for each in later:
        TaskRun.objects.filter(pk=each.pk).update(id=each.pk + 100)
    run.pk = max(TaskRun.objects.filter(started_at__lte=utc(started)).values_list("pk", flat=True))
    run.pk += 50
    run.started_at, run.finished_at = utc(started), utc(finished)
    run.scheduled_for = utc(started)
    for field, value in changes.items():
        setattr(run, field, value)
    run.save(force_insert=True)


def _not_registered() -> None:
    registered = RegistrationSet.objects.get()
    registered.tasks = [entry for entry in registered.tasks if entry["name"] == "t"]
    registered.save()


def _not_acceptable() -> None:
    registered = RegistrationSet.objects.get()
    registered.tasks[0]["cron"] = "every morning"
    registered.save()


def _moved(at: str, **to: str) -> Any:
    return lambda: _run_at(at).update(**{field: utc(instant) for field, instant in to.items()})


# What was done to the rows, and the axioms that are broken.
DAMAGES: dict[str, tuple[Callable[[], object], set[tuple[str, str | None]]]] = {
    "a run that nothing asked for": (
        lambda: _copy("11:00", "11:30", "11:31", outcome="failed"), {("S1", "t"), ("L1", "t")}
    ),
    "a second success of one occurrence": (
        lambda: _copy("11:00", "11:30", "11:31"), {("S1", "t"), ("S2", "t")}
    ),
    "a run before its occurrence": (
        _moved("12:00", started_at="11:58"), {("S1", "t"), ("S2", "t"), ("L1", "t")}
    ),
    "a run far before": (
        _moved("13:00", started_at="10:40", finished_at="10:41"),
        {("S1", "t"), ("S2", "t"), ("L1", "t")},
    ),
    "runs that overlap": (_moved("11:00", finished_at="12:05"), {("S1", "t"), ("S4", "t")}),
    "a run that outlives the stop": (_moved("13:00", finished_at="13:40"), {("S3", "t")}),
    "a run after the stop": (
        _moved("13:20", started_at="13:50", finished_at="13:50"), {("S1", "u"), ("L1", "u")}
    ),
    "a task that was not registered": (_not_registered, {("S1", "u"), ("S2", "u")}),
    "a registration that nobody may accept": (
        _not_acceptable, {("S5", None), ("S1", "t"), ("S2", "t")}
    ),
}  # fmt: skip


@pytest.mark.requirement("004 S1", "004 S2", "004 S3", "004 S5", "004 Safety Axioms/1")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_history_breaks_the_right_axiom(sim: Simulation, damage: str) -> None:
    change, axioms = DAMAGES[damage]
    change()
    sim.jump_to("2024-01-01T14:30:00Z")
    assert set(judged(sim).broken) == axioms


def _worker() -> SchedulerInstance:
    """Write the row of a process that calls what is handed to it, and never schedules."""
    row = SchedulerInstance.objects.get()
    row.pk, row.initialized_at = uuid4(), None
    row.save(force_insert=True)
    return row


@pytest.mark.parametrize(
    "fate",
    [
        {"finished_at": utc("13:40")},
        {"finished_at": None, "outcome": "running", "running_slot": "t"},
        {"finished_at": utc("13:40"), "outcome": "interrupted"},
    ],
    ids=["ends later", "goes on", "its worker dies"],
)
def test_a_run_that_a_worker_calls_may_outlive_the_stop(
    sim: Simulation, fate: dict[str, Any]
) -> None:
    _run_at("13:00").update(**fate)
    sim.jump_to("2024-01-01T13:50:00Z")
    if fate["finished_at"] is None or "outcome" not in fate:
        assert judged(sim).broken == [("S3", "t")]
    _run_at("13:00").update(instance=_worker())
    told = judged(sim)
    assert told.broken == []
    later = [] if fate["finished_at"] is None else ["REf t" if "outcome" in fate else "REs t"]
    assert told.events[-2 - len(later) :] == ["SE", *later, "Tick"]


def test_nothing_else_of_its_task_may_start_while_a_worker_calls_it(sim: Simulation) -> None:
    _run_at("11:00").update(finished_at=utc("12:05"), instance=_worker())
    assert judged(sim).broken[0] == ("S1", "t")


def test_a_run_that_no_worker_took_up_ends_with_the_stop_that_lets_go_of_it(
    sim: Simulation,
) -> None:
    gone = {"finished_at": None, "outcome": "running", "running_slot": "t"}
    _run_at("13:00").update(**gone)
    assert judged(sim).broken == [("S3", "t")]
    _run_at("13:00").update(instance=None)
    assert judged(sim).broken == []


def test_a_worker_outlives_the_crash_of_its_scheduler() -> None:
    sim = start()
    registrations = [("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:05:00Z")
    run, worker = _run_at("11:00").get(), _worker()
    _run_at("11:00").update(instance=worker)
    sim.crash()
    sim.jump_to("2024-01-01T11:08:00Z")
    sim.initialize(registrations)
    assert TaskRun.objects.get(pk=run.pk).outcome == "running"
    told = judged(sim)
    assert ("Crash" in told.events, told.broken) == (True, [])
    sim.jump_to("2024-01-01T11:10:00Z")
    TaskRun.objects.filter(pk=run.pk).update(finished_at=sim.now, outcome="succeeded")
    told = judged(sim)
    assert (told.events[-2:], told.broken) == (["REs t", "Tick"], [])


@pytest.mark.requirement("004 L1")
@pytest.mark.parametrize("damage", [{"delete": True}, {"started_at": utc("12:04")}])
def test_an_occurrence_that_is_not_answered_in_time_breaks_l1(
    sim: Simulation, damage: dict[str, Any]
) -> None:
    run = _run_at("12:00")
    if "delete" in damage:
        run.delete()
    else:
        run.update(**damage)
    [violation] = judged(sim).verdict.violations
    assert (violation.axiom, violation.task, violation.at) == ("L1", "t", utc("12:00"))


@pytest.mark.parametrize("interrupted", [True, False])
def test_an_interrupted_run_that_is_not_restarted_breaks_l1(interrupted: bool) -> None:
    sim = start()
    registrations = [("t", HOURLY, sim.job(duration=LONG), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T11:40:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:50:00Z")
    if interrupted:
        TaskRun.objects.filter(reason="orphaned").delete()
    assert judged(sim).broken == ([("L1", "t")] if interrupted else [])


def test_a_stop_neither_waits_for_nor_ends_what_workers_call() -> None:
    soon, late = utc("12:00"), utc("13:00")
    flights = Flights(())
    flights["own"] = Busy(1, soon, is_told=False, is_handed=False)
    flights["handed"] = Busy(2, late, is_told=False, is_handed=True)
    assert flights.untold_until() == soon
    flights.left()
    assert list(flights) == ["handed"]
    assert flights.untold_until() is None
