"""Override (OV) and removal (RM): what a changed list does to what is stored."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.core import events
from django_declarative_cron.core.events import Event
from django_declarative_cron.exceptions import ScheduleTaskError
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store import bulk_update, operator_actions

from .conftest import (
    FIVE_MINUTES,
    HALF_AN_HOUR,
    HOURLY,
    MINUTELY,
    Start,
    act,
    entry,
    governed,
    job,
    restart,
    scheduler_of,
    task,
)
from .observed import names, of, runs, starts, unserved, utc

MIDNIGHT = "0 0 * * *"


def _rows() -> list[dict[str, Any]]:
    return list(ScheduledTask.objects.order_by("name").values())


@pytest.mark.requirement("001 Override Resolution/2")
def test_ov01_another_callback_is_no_override(start: Start, told: list[Event]) -> None:
    sim = start("10:00", task())
    sim.stop()
    other = job()
    sim.initialize([task(outcomes=other)])
    assert of(told, events.TaskOverridden) == []
    assert [event.task_name for event in of(told, events.TaskPreserved)] == ["t"]
    assert sim.task("t").last_success_at == utc("10:00")
    sim.advance_to(utc("11:00"))
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
        (MIDNIGHT, 5, {"cron": HOURLY}, {"cron": MIDNIGHT}),
        (HOURLY, 10, {"retry_delay_ms": 300_000}, {"retry_delay_ms": 600_000}),
        (
            *(MIDNIGHT, 10),
            {"cron": HOURLY, "retry_delay_ms": 300_000},
            {"cron": MIDNIGHT, "retry_delay_ms": 600_000},
        ),
        # Another spacing is another text.
        ("0  * * * *", 5, {"cron": HOURLY}, {"cron": "0  * * * *"}),
    ],
    ids=["ov02 cron", "ov03 delay", "ov04 both", "ov05 spacing"],
)
def test_a_change_is_written_and_told_once_and_what_stays_is_not(
    start: Start,
    told: list[Event],
    cron: str,
    minutes: int,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    sim = start("10:00", task("changed"), task("stays"))
    sim.stop()
    sim.advance_to(utc("10:10"))
    delay = timedelta(minutes=minutes)
    sim.initialize([task("changed", cron, delay=delay), task("stays")])
    (event,) = of(told, events.TaskOverridden)
    assert (event.task_name, event.change_type) == ("changed", ",".join(before))
    assert (event.old_state, event.new_state) == (before, after)
    assert of(told, events.TaskStateDamaged) == []
    row = sim.task("changed")
    assert (row.cron, row.retry_delay) == (cron, delay)
    assert row.next_run_at == utc("2024-01-02T00:00" if cron == MIDNIGHT else "11:00")
    assert (row.last_attempt_at, row.last_success_at) == (None, None)


@pytest.mark.requirement(
    "001 Subsequent Restarts/2", "001 Override Resolution/3", "004 Safety Axioms/1"
)
def test_ov08_ov09_ov12_p42_an_override_owes_nothing_and_runs_now_only_in_its_minute(
    start: Start,
) -> None:
    sim = start("00:00", task("now"), task("later", MIDNIGHT, "fail", delay=HALF_AN_HOUR))
    assert sim.task("later").pending_retry_until == utc("00:30")
    restart(sim, task("now", "10 12 * * *"), task("later", "0 13 * * *"), at="12:10")
    assert runs(sim, "outcome started_at", "now") == [
        ("succeeded", "00:00"),
        ("succeeded", "12:10"),
    ]
    assert sim.task("later").pending_retry_until is None
    sim.advance_to(utc("13:00"))
    assert runs(sim, "outcome started_at", "later") == [
        ("failed", "00:00"),
        ("succeeded", "13:00"),
    ]


@pytest.mark.requirement(
    "001 Override Atomicity/1", "001 Override Atomicity/2", "001 Idempotency Guarantees/5"
)
def test_ov15_an_override_that_fails_half_way_changes_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = start("10:10", *map(task, "abc"))
    before = _rows()
    real, calls = bulk_update.update, []

    def refuse(using: str, rows: Any, fields: list[str]) -> None:
        rows = list(rows)
        calls.append(rows)
        real(using, rows[:1], fields)
        raise DatabaseError("disk full")

    monkeypatch.setattr(bulk_update, "update", refuse)
    with pytest.raises(ScheduleTaskError) as caught:
        scheduler_of(sim).initialize([task(name, MIDNIGHT) for name in "abc"])
    monkeypatch.undo()
    assert len(calls) == 1
    assert isinstance(caught.value.details["cause"], DatabaseError)
    assert isinstance(caught.value.__cause__, DatabaseError)
    assert _rows() == before
    sim.advance_to(utc("11:00"))
    assert [starts(sim, name) for name in "abc"] == [["11:00"]] * 3


@pytest.mark.requirement("001 Override Resolution/4", "003 Testable Invariants/9")
def test_rm01_p42_a_removed_or_renamed_task_runs_no_more_and_leaves_its_history(
    start: Start,
) -> None:
    sim = start("00:00", task("kept"), task("old"))
    sim.stop()
    sim.jump_to(utc("00:05"))
    sim.initialize([task("kept"), task("new")])
    sim.advance_to(utc("01:00"))
    assert [starts(sim, name) for name in ("kept", "old", "new")] == [
        ["00:00", "01:00"],
        ["00:00"],
        ["01:00"],
    ]
    assert set(ScheduledTask.objects.values_list("name", flat=True)) == {"kept", "new"}


@pytest.mark.requirement("001 Override Resolution/4")
def test_rm04_a_task_removed_while_it_runs_ends_into_its_history_only(
    start: Start, told: list[Event]
) -> None:
    sim = start("00:00", task(outcomes="fail", lasts=timedelta(minutes=3)))
    sim.initialize([])
    sim.advance_to(utc("02:00"))
    assert runs(sim, "outcome finished_at") == [("failed", "00:03")]
    assert not ScheduledTask.objects.exists()
    (failure,) = of(told, events.TaskRunFailed)
    assert (failure.history_only, failure.next_retry_at) == (True, None)


def test_a_task_that_returns_while_its_old_run_is_in_flight_never_runs_twice_at_once(
    start: Start,
) -> None:
    first_long = job(lasts=timedelta(minutes=3))
    sim = start("00:00", task("t", MINUTELY, first_long))
    sim.initialize([])
    sim.advance_to(utc("00:00:30"))
    sim.initialize([task("t", MINUTELY, first_long)])
    sim.advance_to(utc("00:02:30"))
    first_long.duration = timedelta(0)
    sim.advance_to(utc("00:04"))
    assert starts(sim) == ["00:00", "00:03", "00:04"]


@pytest.mark.requirement("003 Test Methodology/3")
def test_an_override_during_a_run_leaves_the_run_to_its_history(start: Start) -> None:
    first_long = job("fail ok", timedelta(minutes=3))
    sim = start("00:00", task(outcomes=first_long))
    sim.initialize([task("t", "0,2 * * * *", first_long)])
    sim.advance_to(utc("00:02:30"))
    first_long.duration = timedelta(0)
    sim.advance_to(utc("00:30"))
    row = sim.task("t")
    assert (row.pending_retry_until, row.failures) == (None, 0)
    assert runs(sim, "outcome started_at") == [("failed", "00:00"), ("succeeded", "00:03")]


@pytest.mark.requirement("001 Idempotency Guarantees/1")
def test_an_identical_set_while_running_costs_one_query_and_writes_nothing(
    start: Start, django_assert_num_queries: Any, told: list[Event]
) -> None:
    tasks = [task(f"t{n}") for n in range(50)]
    sim = start("10:10", *tasks)
    told.clear()
    with django_assert_num_queries(1):
        scheduler_of(sim).initialize(tasks)
    assert names(told) == []


def test_su12_p43_a_task_that_returns_is_owed_nothing_and_has_its_old_history(
    start: Start,
) -> None:
    sim = start("10:30", task())
    sim.advance_to(utc("11:10"), at_least_every=FIVE_MINUTES)
    sim.stop()
    sim.initialize([])
    assert (ScheduledTask.objects.count(), TaskRun.objects.count()) == (0, 1)
    sim.advance_to(utc("14:30"), at_least_every=FIVE_MINUTES)
    sim.stop()
    sim.initialize([task()])
    sim.advance_to(utc("15:10"), at_least_every=FIVE_MINUTES)
    assert starts(sim) == ["11:00", "15:00"]
    assert unserved(sim) == []


@pytest.mark.beyond_the_theory
def test_p49_a_deploy_deletes_the_rows_of_names_that_are_gone_and_nothing_else(
    start: Start,
) -> None:
    sim = start("10:00", *map(governed, ("kept", "changed", "gone", "damaged")))
    for name in ("kept", "changed", "gone"):
        operator_actions.pause([name], act(sim))
    ScheduledTask.objects.filter(name="damaged").update(cron="garbage")
    runs, acts = _keys(TaskRun), _keys(TaskOverride)
    sim.stop()
    with CaptureQueriesContext(connection) as captured:
        sim.initialize([*map(governed, ("kept", "damaged")), governed("changed", "5 * * * *")])
    asked = [query["sql"] for query in captured]
    [deleted] = [sql for sql in asked if re.search(r"\b(DELETE|TRUNCATE)\b", sql)]
    assert f'DELETE FROM "{ScheduledTask._meta.db_table}"' in deleted.replace("`", '"')
    stored = set(ScheduledTask.objects.values_list("name", flat=True))
    assert stored == {"kept", "changed", "damaged"}
    assert (runs <= _keys(TaskRun), acts <= _keys(TaskOverride)) == (True, True)
    assert (len(runs), len(acts)) == (4, 3)


def _keys(model: type[TaskRun | TaskOverride]) -> set[int]:
    return set(model.objects.values_list("pk", flat=True))


# --- what only the scheduler writes (002 System-Managed Fields) ---


@pytest.mark.requirement("002 CRON-06", "002 CRON-26")
def test_cron_06_cron_26_what_was_counted_is_kept_and_what_a_client_says_of_it_is_ignored(
    start: Start,
) -> None:
    sim = start("10:20", entry(run_count=99, next_run_at="2030-01-01T00:00:00Z"))
    assert (sim.task("t").run_count, sim.task("t").next_run_at) == (0, utc("11:00"))
    sim.advance_to(utc("12:20"))
    before = sim.task("t")
    sim.initialize([entry(description="Another text.", overlap_policy="allow")])
    after = sim.task("t")
    assert (before.pk, before.run_count) == (after.pk, 2)
    assert (after.run_count, after.registered_at) == (2, before.registered_at)
    sim.initialize([entry(cron="30 * * * *")])
    assert (sim.task("t").pk, sim.task("t").run_count) == (before.pk, 2)
    assert ScheduledTask.objects.count() == 1
