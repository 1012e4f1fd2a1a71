"""Override (OV) and removal (RM): what a changed list does to what is stored."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.core import events
from django_declarative_cron.core.declarations.declaration import offset_of
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import ScheduleTaskError
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store import bulk_update, operator_actions
from django_declarative_cron.store.operator_actions import Act
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, Started, act, names, of, utc

DAILY = "0 0 * * *"


@pytest.mark.requirement("001 Override Resolution/2")
def test_ov01_another_callback_is_no_override(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    sim.stop()
    other = sim.job()
    sim.initialize([("t", HOURLY, other, FIVE_MINUTES)])
    assert of(told, events.TaskOverridden) == []
    assert [e.task_name for e in of(told, events.TaskPreserved)] == ["t"]
    assert sim.task("t").last_success_at == utc("10:00")
    sim.advance_to("2024-01-01T11:00:00Z")
    assert len(other.runs) == 1


@pytest.mark.requirement(
    "001 Subsequent Restarts/2",
    "001 Override Resolution/1",
    "001 Override Resolution/2",
    "001 Configuration Comparison/1",
    "001 Idempotency Guarantees/3",
    "003 Testable Invariants/8",
)
@pytest.mark.parametrize(
    ("cron", "minutes", "before", "after"),
    [
        (DAILY, 5, {"cron": HOURLY}, {"cron": DAILY}),
        (HOURLY, 10, {"retry_delay_ms": 300_000}, {"retry_delay_ms": 600_000}),
        (
            *(DAILY, 10),
            {"cron": HOURLY, "retry_delay_ms": 300_000},
            {"cron": DAILY, "retry_delay_ms": 600_000},
        ),
        # Another spacing is another text.
        ("0  * * * *", 5, {"cron": HOURLY}, {"cron": "0  * * * *"}),
    ],
    ids=["ov02 cron", "ov03 delay", "ov04 both", "ov05 spacing"],
)
def test_a_change_is_written_and_told_once_and_what_stays_is_not(
    simulation: Started,
    told: list[Event],
    cron: str,
    minutes: int,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([(n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("changed", "stays")])
    sim.stop()
    sim.advance_to(utc("10:10"))
    delay = timedelta(minutes=minutes)
    sim.initialize(
        [("changed", cron, sim.job(), delay), ("stays", HOURLY, sim.job(), FIVE_MINUTES)]
    )
    (event,) = of(told, events.TaskOverridden)
    assert (event.task_name, event.change_type) == ("changed", ",".join(before))
    assert (event.old_state, event.new_state) == (before, after)
    assert of(told, events.TaskStateDamaged) == []
    task = sim.task("changed")
    assert (task.cron, task.retry_delay) == (cron, delay)
    assert task.next_run_at == utc("2024-01-02T00:00" if cron == DAILY else "11:00")
    assert (task.last_attempt_at, task.last_success_at) == (None, None)


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
def test_ov09_p42_an_override_owes_nothing_for_the_past(simulation: Started) -> None:
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
def test_rm01_p42_a_removed_or_renamed_task_runs_no_more_and_leaves_its_history(
    simulation: Started,
) -> None:
    sim = simulation("00:00:00")
    kept, old, new = ((n, HOURLY, sim.job(), FIVE_MINUTES) for n in ("kept", "old", "new"))
    sim.initialize([kept, old])
    sim.stop()
    sim.jump_to("2024-01-01T00:05:00Z")
    sim.initialize([kept, new])
    sim.advance_to("2024-01-01T01:00:00Z")
    assert [len(sim.starts(name)) for name in ("kept", "old", "new")] == [2, 1, 1]
    assert sim.starts("new") == [utc("01:00")]
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {"kept", "new"}


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
    (failure,) = of(told, events.TaskRunFailed)
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


@pytest.mark.requirement("002 CRON-28")
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


# --- deploys ---

QUARTER = timedelta(minutes=15)


def _task(sim: Simulation, **said: Any) -> dict[str, Any]:
    return {
        "name": "t",
        "cron": HOURLY,
        "timezone": "UTC",
        "callback": sim.job(),
        "retry_delay": FIVE_MINUTES,
        **said,
    }


def test_su12_p43_a_task_that_returns_is_owed_nothing_and_has_its_old_history(
    simulation: Started,
) -> None:
    sim = simulation("10:30:00")
    sim.initialize([_task(sim)])
    sim.advance_to(utc("11:10"), at_least_every=QUARTER)
    sim.stop()
    sim.initialize([])
    assert (ScheduledTask.objects.count(), TaskRun.objects.count()) == (0, 1)
    sim.advance_to(utc("14:30"), at_least_every=QUARTER)
    sim.stop()
    sim.initialize([_task(sim)])
    sim.advance_to(utc("15:10"), at_least_every=QUARTER)
    assert sim.starts("t") == [utc("11:00"), utc("15:00")]
    assert {run.outcome for run in sim.runs("t")} == {"succeeded"}, "nothing was missed"


@pytest.mark.beyond_the_theory
def test_p44_what_a_person_decided_outlives_every_restart(simulation: Started) -> None:
    sim = simulation("10:30:00")
    tasks = [_task(sim), _task(sim, name="other")]
    sim.initialize(tasks)
    operator_actions.pause(["t"], Act("an operator", sim.now, "inventory"))
    for hour in (11, 12, 13):
        sim.advance_to(utc(f"{hour}:10"), at_least_every=QUARTER)
        (sim.stop if hour == 12 else sim.crash)()
        sim.initialize(tasks)
    assert sim.starts("t") == []
    assert sim.starts("other") == [utc(f"{hour}:00") for hour in (11, 12, 13)]
    (act,) = TaskOverride.objects.filter(ended_at=None)
    assert (act.kind, act.author, act.created_at, act.note) == (
        *("pause", "an operator"),
        *(utc("10:30"), "inventory"),
    )


@pytest.mark.beyond_the_theory
def test_p49_a_deploy_deletes_the_rows_of_names_that_are_gone_and_nothing_else(
    simulation: Started,
) -> None:
    sim = simulation("10:00:00")
    sim.initialize([_task(sim, name=name) for name in ("kept", "changed", "gone", "damaged")])
    for name in ("kept", "changed", "gone"):
        operator_actions.pause([name], act(sim))
    ScheduledTask.objects.filter(name="damaged").update(cron="garbage")
    runs, acts = _keys(TaskRun), _keys(TaskOverride)
    sim.stop()
    with CaptureQueriesContext(connection) as captured:
        sim.initialize(
            [
                *(_task(sim, name=name) for name in ("kept", "damaged")),
                _task(sim, name="changed", cron="5 * * * *"),
            ]
        )
    deleted = [sql for sql in map(_sql, captured) if re.search(r"\b(DELETE|TRUNCATE)\b", sql)]
    assert len(deleted) == 1
    assert f'DELETE FROM "{ScheduledTask._meta.db_table}"' in deleted[0].replace("`", '"')
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {
        *("kept", "changed", "damaged"),
    }
    assert (runs <= _keys(TaskRun), acts <= _keys(TaskOverride)) == (True, True)
    assert (len(runs), len(acts)) == (4, 3)


def _keys(model: type[TaskRun | TaskOverride]) -> set[int]:
    return set(model.objects.values_list("pk", flat=True))


def _sql(query: dict[str, str]) -> str:
    return query["sql"]


def test_p100_an_identical_set_moves_no_occurrence_that_is_spread(simulation: Started) -> None:
    offset = offset_of("t", timedelta(minutes=1))
    assert timedelta(seconds=2) < offset
    sim = simulation("12:10:00")
    tasks = [_task(sim, cron="20 12 * * *", spread=60, overlap_policy="coalesce")]
    sim.initialize(tasks)
    at = utc("12:20") + offset
    sim.advance_to(at - timedelta(seconds=2), at_least_every=QUARTER)
    sim.initialize(tasks)
    sim.advance_to(at - timedelta(seconds=1), at_least_every=QUARTER)
    sim.stop()
    sim.initialize(tasks)
    assert sim.task("t").next_run_at == at
    sim.advance_to(utc("12:40"), at_least_every=QUARTER)
    assert [(run.scheduled_for, run.started_at) for run in sim.runs("t")] == [(at, at)]
