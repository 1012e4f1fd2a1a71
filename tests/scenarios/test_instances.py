"""Several instances of one deployment: who leads, who takes over, and how it is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from django_declarative_cron.testing import SimulatedCrash

from ..simulation.task_trace import task_trace
from .conftest import FIVE_MINUTES, Started, utc

LONG = timedelta(minutes=30)


def _kinds(records: list[dict[str, Any]]) -> list[str]:
    return [record["event"] for record in records if record["event"] != "Tick"]


def test_a_leader_that_stops_lets_another_lead_while_its_last_run_goes_on(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00", instances=2)
    slow, quick = sim.job(duration=LONG), sim.job()
    sim.initialize([("slow", "0 * * * *", slow, LONG), ("quick", "5 * * * *", quick, LONG)])
    sim[0].stop()
    assert sim.now == utc("10:30")
    assert sim.starts("quick") == [utc("10:05")]
    assert [run.outcome for run in sim.runs("slow")] == ["succeeded"]


def test_a_takeover_shortly_before_an_occurrence_does_not_delay_it(simulation: Started) -> None:
    sim = simulation("10:01:00", instances=2)
    sim.initialize([{"name": "t", "cron": "30 59 * * * *", "callback": sim.job()}])
    sim.advance_to("2024-01-01T10:59:29.600000Z")
    sim[0].stop()
    sim[1].poll()
    sim.advance_to("2024-01-01T10:59:35Z")
    assert sim.starts("t") == [utc("10:59:30")]


@pytest.mark.requirement("002 CRON-22")
def test_who_takes_over_from_a_crashed_leader_restarts_its_run(simulation: Started) -> None:
    sim = simulation("10:00:00", instances=2)
    sim.initialize([("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    sim[0].crash()
    sim.advance_to("2024-01-01T10:00:02Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "running"]
    took_over = ["Crash", "IS", "IEs", "RS"]
    assert _kinds(task_trace(sim, "t")) == ["IS", "IEs", "RS", "IS", "IEs", *took_over]


def test_a_task_does_not_see_a_crash_that_interrupts_none_of_its_runs(simulation: Started) -> None:
    sim = simulation("10:00:00", instances=2)
    sim.initialize([(n, m, sim.job(), LONG) for n, m in (("a", "0 * * * *"), ("b", "9 9 * * *"))])
    sim[0].crash()
    sim.advance_to("2024-01-01T11:00:00Z")
    assert "Crash" not in _kinds(task_trace(sim, "a"))
    assert sim.starts("a") == [utc("10:00"), utc("11:00")]


def test_a_task_sees_only_the_stop_of_the_last_instance(simulation: Started) -> None:
    sim = simulation("10:01:30", instances=2)
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    sim[0].stop()
    assert "SS" not in _kinds(task_trace(sim, "t"))
    sim[1].stop()
    assert _kinds(task_trace(sim, "t"))[-2:] == ["SS", "SE"]


def test_a_task_sees_that_a_superseded_instance_goes_back_to_its_set(simulation: Started) -> None:
    sim = simulation("10:01:30", instances=2)
    old = [("t", "0 * * * *", sim.job(), FIVE_MINUTES)]
    sim.initialize(old)
    sim[1].initialize([("t", "30 * * * *", sim.job(), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T10:20:00Z")
    sim[1].stop()
    sim.advance_to("2024-01-01T11:00:00Z")
    assert sim.starts("t") == [utc("11:00")]
    assert _kinds(task_trace(sim, "t"))[-6:] == ["SS", "SE", "IS", "IEs", "RS", "REs"]


def test_several_instances_have_no_trace_in_the_theory(simulation: Started) -> None:
    sim = simulation("10:01:30", instances=2)
    with pytest.raises(ValueError, match="simulate a single instance"):
        sim.trace()


def test_a_process_may_go_in_the_middle_of_a_callback(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", "0 10 * * *", sim.job([SimulatedCrash(), "ok"]), FIVE_MINUTES)]
    sim.initialize(registrations)
    assert sim[0].scheduler is None
    assert _kinds(sim.trace()) == ["IS", "IEs", "RS", "Crash"]
    sim.initialize(registrations)
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "succeeded"]


def test_an_end_that_died_with_its_process_was_seen_by_nobody(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", "0 10 * * *", sim.job(), FIVE_MINUTES)]

    def gone(*_: object) -> None:
        raise SimulatedCrash

    with monkeypatch.context() as patch:
        patch.setattr("django_declarative_cron.store.results._record", gone)
        sim.initialize(registrations)
    assert _kinds(sim.trace()) == ["IS", "IEs", "RS", "Crash"]
    sim.initialize(registrations)
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "succeeded"]


@pytest.mark.beyond_the_theory
def test_a_process_that_hangs_longer_than_its_lease_loses_its_runs_for_good(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00", instances=2, lease=timedelta(minutes=3))
    sim.initialize([("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    sim[0].hang()
    sim.advance_to("2024-01-01T10:10:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "running"]
    sim[0].recover()
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "succeeded"]


@pytest.mark.beyond_the_theory
def test_a_process_that_lives_keeps_its_runs_under_a_lease(simulation: Started) -> None:
    sim = simulation("10:00:00", instances=2, lease=timedelta(minutes=3))
    sim.initialize([("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["succeeded"]


@pytest.mark.beyond_the_theory
def test_a_storm_of_lost_hosts_does_not_keep_their_runs_from_being_found(
    simulation: Started,
) -> None:
    """Whoever takes over has only just come; the watch is older than any of the watchers."""
    sim = simulation("10:00:00", instances=3, lease=timedelta(minutes=6))
    set_ = [("t", "0 10 * * *", sim.job(duration=LONG), FIVE_MINUTES)]
    sim[0].initialize(set_)
    sim[1].initialize(set_)
    sim.advance_to("2024-01-01T10:10:00Z")
    sim[0].hang()
    sim.advance_to("2024-01-01T10:14:00Z")
    sim[2].initialize(set_)
    sim[1].hang()
    sim.advance_to("2024-01-01T10:17:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "running"]
    sim[0].recover()
    sim[1].recover()
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "succeeded"]


@pytest.mark.beyond_the_theory
def test_an_outage_kills_nobody_whoever_leads_after_it(simulation: Started) -> None:
    sim = simulation("10:00:00", instances=3, lease=timedelta(minutes=6))
    sim.initialize([("t", "0 10 * * *", sim.job(duration=timedelta(hours=1)), FIVE_MINUTES)])
    for each in range(3):
        sim[each].hang()
    sim.advance_to("2024-01-01T10:20:00Z")
    sim[2].recover()
    sim.advance_to("2024-01-01T10:25:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["running"]
    sim[0].recover()
    sim.advance_to("2024-01-01T11:30:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["succeeded"]


@pytest.mark.beyond_the_theory
def test_who_stays_away_after_an_outage_is_dead_when_it_was_over_for_long_enough(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00", instances=2, lease=timedelta(minutes=6))
    sim.initialize([("t", "0 10 * * *", sim.job(duration=timedelta(hours=1)), FIVE_MINUTES)])
    sim[0].hang()
    sim[1].hang()
    sim.advance_to("2024-01-01T10:20:00Z")
    sim[1].recover()
    sim.advance_to("2024-01-01T10:26:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["running"]
    sim.advance_to("2024-01-01T10:27:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["interrupted", "running"]


def test_a_lease_that_ends_between_two_passes_is_refused(simulation: Started) -> None:
    with pytest.raises(ValueError, match="give two minutes"):
        simulation("10:00:00", lease=timedelta(seconds=30))
