"""Override (OV) and removal (RM): what a changed list does to what is stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import ScheduleTaskError
from django_declarative_cron.models import ScheduledTask, TaskRun
from django_declarative_cron.store import bulk_update

from .conftest import FIVE_MINUTES, Started, names, utc

HOURLY, DAILY = "0 * * * *", "0 0 * * *"


def _of(told: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in told if isinstance(event, kind)]


@pytest.mark.requirement("001 Override Resolution/2")
def test_ov01_another_callback_is_no_override(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    other = sim.job()
    sim.initialize([("t", HOURLY, other, FIVE_MINUTES)])
    assert _of(told, events.TaskOverridden) == []
    assert [e.task_name for e in _of(told, events.TaskPreserved)] == ["t"]
    assert sim.task("t").last_success_at == utc("10:00")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(other.runs) == 1


@pytest.mark.requirement("001 Subsequent Restarts/2", "001 Configuration Comparison/1")
def test_ov02_another_cron_is_written_and_told(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    sim.initialize([("t", DAILY, sim.job(), FIVE_MINUTES)])
    (event,) = _of(told, events.TaskOverridden)
    assert (event.old_state, event.new_state) == ({"cron": HOURLY}, {"cron": DAILY})
    task = sim.task("t")
    assert (task.cron, task.next_run_at) == (DAILY, utc("2024-01-02T00:00"))
    assert (task.last_attempt_at, task.last_success_at) == (None, None)


@pytest.mark.requirement("001 Subsequent Restarts/2", "001 Configuration Comparison/1")
def test_ov03_another_delay_is_told_in_milliseconds(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:10:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.initialize([("t", HOURLY, sim.job(), timedelta(minutes=10))])
    (event,) = _of(told, events.TaskOverridden)
    assert event.change_type == "retry_delay_ms"
    assert (event.old_state, event.new_state) == (
        {"retry_delay_ms": 300_000},
        {"retry_delay_ms": 600_000},
    )
    assert sim.task("t").retry_delay == timedelta(milliseconds=600_000)


@pytest.mark.requirement(
    "001 Override Resolution/1", "001 Idempotency Guarantees/3", "003 Testable Invariants/8"
)
def test_ov04_every_kind_of_change_is_told_once(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:10:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("t1", "t2")])
    sim.stop()
    told.clear()
    sim.initialize(
        [
            ("t1", DAILY, sim.job(), timedelta(minutes=10)),
            ("t3", HOURLY, sim.job(), FIVE_MINUTES),
        ]
    )
    assert [e.task_name for e in _of(told, events.TaskOrphaned)] == ["t2"]
    assert [e.task_name for e in _of(told, events.TaskAdded)] == ["t3"]
    (overridden,) = _of(told, events.TaskOverridden)
    assert overridden.change_type == "cron,retry_delay_ms"


@pytest.mark.requirement("001 Override Resolution/2")
def test_ov05_what_stays_the_same_is_not_mentioned_as_changed(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:10:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("t1", "t2", "t3")])
    sim.stop()
    sim.initialize(
        [
            ("t1", HOURLY, sim.job(), FIVE_MINUTES),
            ("t2", DAILY, sim.job(), FIVE_MINUTES),
            ("t3", HOURLY, sim.job(), timedelta(minutes=1)),
        ]
    )
    assert [e.task_name for e in _of(told, events.TaskOverridden)] == ["t2", "t3"]


@pytest.mark.requirement("001 Override Resolution/3", "004 Safety Axioms/1")
def test_ov08_an_override_runs_now_only_where_the_minute_matches(simulation: Started) -> None:
    sim = simulation("2021-01-01T00:00:00Z")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.crash()
    sim.jump_to("2021-01-02T00:00:00Z")
    sim.initialize([("t", DAILY, sim.job(), FIVE_MINUTES)])
    assert sim.starts("t") == [utc("2021-01-01T00:00"), utc("2021-01-02T00:00")]
    assert TaskRun.objects.filter(outcome="missed").count() == 0


@pytest.mark.requirement("001 Override Resolution/3")
def test_ov09_an_override_owes_nothing_for_the_past(simulation: Started) -> None:
    sim = simulation("00:00:00")
    sim.initialize([("t", DAILY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    sim.jump_to("2024-01-01T00:10:00Z")
    sim.initialize([("t", "0 1 * * *", sim.job(), timedelta(minutes=1))])
    assert len(sim.starts("t")) == 1
    sim.advance_to("2024-01-01T01:00:00Z")
    assert sim.starts("t")[1:] == [utc("01:00")]


@pytest.mark.requirement("001 Subsequent Restarts/2", "001 Override Resolution/3")
def test_ov12_an_override_clears_the_retry(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 10 * * *", sim.job(["fail"]), timedelta(minutes=30))])
    assert sim.task("t").pending_retry_until == utc("10:30")
    sim.stop()
    sim.jump_to("2024-01-01T10:40:00Z")
    sim.initialize([("t", "0 11 * * *", sim.job(), timedelta(minutes=30))])
    assert len(sim.starts("t")) == 1
    assert sim.task("t").pending_retry_until is None


@pytest.mark.requirement("001 Configuration Comparison/1")
def test_another_spacing_is_another_text(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:10:00")
    sim.initialize([("t", "0 * * * *", sim.job(), FIVE_MINUTES)])
    sim.initialize([("t", "0  * * * *", sim.job(), FIVE_MINUTES)])
    assert len(_of(told, events.TaskOverridden)) == 1


@pytest.mark.requirement(
    "001 Override Atomicity/1", "001 Override Atomicity/2", "001 Idempotency Guarantees/5"
)
def test_ov15_an_override_that_fails_half_way_changes_nothing(
    simulation: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = simulation("10:10:00")
    before_list = [(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b", "c")]
    sim.initialize(before_list)
    before = list(ScheduledTask.objects.order_by("name").values())
    real, calls = bulk_update.update, []

    def refuse(using: str, rows: Any, fields: list[str]) -> None:
        rows = list(rows)
        calls.append(rows)
        real(using, rows[:1], fields)
        raise DatabaseError("disk full")

    monkeypatch.setattr(bulk_update, "update", refuse)
    with pytest.raises(ScheduleTaskError) as caught:
        sim[0].scheduler.initialize([(n, DAILY, sim.job(), FIVE_MINUTES) for n in ("a", "b", "c")])
    monkeypatch.undo()
    assert len(calls) == 1
    assert isinstance(caught.value.details["cause"], DatabaseError)
    assert isinstance(caught.value.__cause__, DatabaseError)
    assert list(ScheduledTask.objects.order_by("name").values()) == before
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [len(sim.starts(n)) for n in ("a", "b", "c")] == [1, 1, 1]


@pytest.mark.requirement("001 Override Resolution/4", "003 Testable Invariants/9")
def test_rm01_a_removed_task_runs_no_more_and_leaves_its_history(simulation: Started) -> None:
    sim = simulation("00:00:00")
    jobs = [(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("t1", "t2")]
    sim.initialize(jobs)
    sim.stop()
    sim.jump_to("2024-01-01T00:05:00Z")
    sim.initialize(jobs[:1])
    sim.advance_to("2024-01-01T01:00:00Z")
    assert (len(sim.starts("t1")), len(sim.starts("t2"))) == (2, 1)
    assert not ScheduledTask.objects.filter(name="t2").exists()


@pytest.mark.requirement("001 Override Resolution/4")
def test_rm04_a_task_removed_while_it_runs_ends_into_its_history_only(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("00:00:00")
    job = sim.job(["fail"], timedelta(minutes=3))
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    sim.initialize([])
    sim.advance_to("2024-01-01T02:00:00Z")
    (run,) = sim.runs("t")
    assert (run.outcome, run.finished_at) == ("failed", utc("00:03"))
    assert not ScheduledTask.objects.exists()
    (failure,) = _of(told, events.TaskRunFailed)
    assert (failure.history_only, failure.next_retry_at) == (True, None)


def test_a_task_that_returns_while_its_old_run_is_in_flight_never_runs_twice_at_once(
    simulation: Started,
) -> None:
    sim = simulation("00:00:00")
    job = sim.job(duration=timedelta(minutes=3))
    registrations = [("t", "* * * * *", job, FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.initialize([])
    sim.advance_to("2024-01-01T00:00:30Z")
    sim.initialize(registrations)
    sim.advance_to("2024-01-01T00:02:30Z")
    assert len(sim.starts("t")) == 1
    job.duration = timedelta(0)
    sim.advance_to("2024-01-01T00:04:00Z")
    assert sim.starts("t") == [utc("00:00"), utc("00:03"), utc("00:04")]


@pytest.mark.requirement("003 Test Methodology/3")
def test_an_override_during_a_run_leaves_the_run_to_its_history(simulation: Started) -> None:
    sim = simulation("00:00:00")
    job = sim.job(["fail", "ok"], timedelta(minutes=3))
    sim.initialize([("t", HOURLY, job, FIVE_MINUTES)])
    sim.initialize([("t", "0,2 * * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T00:02:30Z")
    assert len(sim.starts("t")) == 1
    job.duration = timedelta(0)
    sim.advance_to("2024-01-01T00:30:00Z")
    task = sim.task("t")
    assert sim.runs("t")[0].outcome == "failed"
    assert (task.pending_retry_until, task.failures) == (None, 0)
    assert sim.starts("t") == [utc("00:00"), utc("00:03")]


@pytest.mark.requirement("001 Idempotency Guarantees/1")
def test_an_identical_set_while_running_costs_one_query_and_writes_nothing(
    simulation: Started, django_assert_num_queries: Any, told: list[Event]
) -> None:
    sim = simulation("10:10:00")
    registrations = [(f"t{n}", HOURLY, sim.job(), FIVE_MINUTES) for n in range(50)]
    sim.initialize(registrations)
    told.clear()
    with django_assert_num_queries(1):
        sim[0].scheduler.initialize(registrations)
    assert names(told) == []


def test_a_damaged_row_is_rewritten_and_starts_nothing(simulation: Started) -> None:
    sim = simulation("10:00:00")
    registrations = [("t", HOURLY, sim.job(), FIVE_MINUTES)]
    sim.initialize(registrations)
    sim.stop()
    ScheduledTask.objects.update(cron="garbage", retry_delay=timedelta(seconds=-5))
    sim.initialize(registrations)
    task = sim.task("t")
    assert (task.cron, task.retry_delay) == (HOURLY, FIVE_MINUTES)
    assert len(sim.starts("t")) == 1


@pytest.mark.beyond_the_theory
def test_a_row_damaged_while_running_is_rewritten_and_the_others_run(
    simulation: Started, told: list[Event]
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("a", "b")])
    ScheduledTask.objects.filter(name="a").update(cron="garbage")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert (len(sim.starts("a")), len(sim.starts("b"))) == (1, 2)
    assert sim.task("a").cron == HOURLY
    sim.advance_to("2024-01-01T12:00:00Z")
    assert len(sim.starts("a")) == 2
    assert len(_of(told, events.TaskOverridden)) == 1


@pytest.mark.beyond_the_theory
def test_disabled_in_the_declaration_behaves_as_a_pause(simulation: Started) -> None:
    sim = simulation("10:00:00")

    def declared(enabled: bool) -> list[dict[str, Any]]:
        return [
            {
                "name": "t",
                "cron": HOURLY,
                "callback": "tests.scenarios.callbacks.nothing",
                "retry_delay": FIVE_MINUTES,
                "enabled": enabled,
            }
        ]

    sim.initialize(declared(True))
    sim.initialize(declared(False))
    assert sim.task("t").next_run_at is None
    sim.advance_to("2024-01-01T13:30:00Z")
    sim.initialize(declared(True))
    sim.advance_to("2024-01-01T14:00:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("14:00")]
    skipped = TaskRun.objects.get(outcome="skipped")
    assert (skipped.reason, skipped.count) == ("disabled", 3)
