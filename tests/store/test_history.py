"""Stored histories, told and judged: dates, people's acts, and what the rows do not tell.

The simulation judges the rows of its stories too (tests/simulation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from django_declarative_cron.models import (
    ScheduledTask,
    SchedulerInstance,
    SchedulerState,
    TaskRun,
)
from django_declarative_cron.store import operator_actions
from django_declarative_cron.store.liveness import heartbeat
from django_declarative_cron.testing import Simulation

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
    job = sim.job(duration=LONG)
    registrations = [("t", HOURLY, job, FIVE_MINUTES), ("u", MINUTELY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T11:10:00Z")
    sim.crash()
    sim.jump_to("2024-01-01T13:20:00Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T14:05:00Z")
    operator_actions.pause(["u"], act(sim))
    sim.advance_to("2024-01-01T15:10:00Z")
    operator_actions.resume(["u"], act(sim))
    sim.advance_to("2024-01-01T15:30:00Z")
    whole = judged(sim)
    assert (whole.broken, whole.told.set_aside.keys() - {"people"}) == ([], set())
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
