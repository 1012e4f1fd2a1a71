"""Operator actions (pause, resume, run, clear the retry, skip) and the pause after failures."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_declarative_cron.core.events import Event
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation

from .conftest import DAILY, FIVE_MINUTES, HOURLY, Start, act, governed, task
from .observed import names, runs, starts, unserved, utc

pytestmark = pytest.mark.beyond_the_theory


@pytest.fixture
def sim(start: Start) -> Simulation:
    """An hourly task that has just run at 10:00."""
    return start("10:00", task())


# --- pause and resume ---


@pytest.mark.requirement("002 CRON-28")
def test_p59_a_pause_discharges_and_nothing_runs_for_it_at_resume(sim: Simulation) -> None:
    assert operator_actions.pause(["t"], act(sim, "inventory")) == ["t"]
    assert (sim.task("t").next_run_at, sim.task("t").wake_at) == (None, None)
    assert operator_actions.skip_next(["t"], act(sim)) == [], "it has no next run"
    sim.advance_to(utc("13:30"))
    assert operator_actions.resume(["t"], act(sim)) == ["t"]
    sim.advance_to(utc("14:00"))
    assert starts(sim) == ["10:00", "14:00"]
    skipped = TaskRun.objects.get(outcome="skipped")
    assert (skipped.reason, skipped.count) == ("disabled", 3)
    assert (skipped.scheduled_from, skipped.scheduled_for) == (utc("11:00"), utc("13:00"))


@pytest.mark.parametrize(
    ("broken_reason", "reason"), [("", "held_up"), ("no such callback", "broken")]
)
def test_the_end_of_a_pause_says_why_the_occurrences_before_it_were_missed(
    sim: Simulation, broken_reason: str, reason: str
) -> None:
    sim.clock.advance(utc("12:30"))
    ScheduledTask.objects.update(broken_reason=broken_reason)
    operator_actions.pause(["t"], act(sim, "inventory"))
    sim.clock.advance(utc("14:30"))
    operator_actions.resume(["t"], act(sim))
    # No occurrence is both skipped and missed.
    assert runs(sim, "outcome reason scheduled_from scheduled_for count")[1:] == [
        ("missed", reason, "11:00", "12:00", 2),
        ("skipped", "disabled", "13:00", "14:00", 2),
    ]


@pytest.mark.parametrize("until", ["12:30", "13:00"])
def test_a_pause_with_an_end_ends_by_itself_before_the_occurrence_at_its_end(
    sim: Simulation, until: str
) -> None:
    operator_actions.pause(["t"], act(sim), until=utc(until))
    assert sim.task("t").next_run_at == utc("13:00")
    sim.advance_to(utc("13:30"))
    assert runs(sim, "outcome reason scheduled_for count")[1:] == [
        ("skipped", "disabled", "12:00", 2),
        ("succeeded", "due", "13:00", 1),
    ]


def test_a_resume_after_the_end_of_a_pause_leaves_what_came_after_it(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim), until=utc("11:30"))
    sim.clock.advance(utc("12:10"))
    operator_actions.resume(["t"], act(sim))
    sim.advance_to(utc("12:20"))
    assert runs(sim, "outcome reason scheduled_for")[1:] == [
        ("skipped", "disabled", "11:00"),
        ("succeeded", "due", "12:00"),
    ]


@pytest.mark.parametrize("until", [None, utc("12:00")])
def test_a_new_pause_replaces_the_one_before(sim: Simulation, until: datetime | None) -> None:
    operator_actions.pause(["t"], act(sim), until=utc("18:00"))
    operator_actions.pause(["t"], act(sim), until=until)
    assert sim.task("t").paused_until == until
    assert TaskOverride.objects.filter(kind="pause", ended_at=None).count() == 1


@pytest.mark.requirement("002 CRON-28")
def test_disabled_in_the_declaration_behaves_as_a_pause(start: Start) -> None:
    sim = start("10:00", governed())
    sim.initialize([governed(enabled=False)])
    assert sim.task("t").next_run_at is None
    sim.advance_to(utc("13:30"))
    sim.initialize([governed()])
    sim.advance_to(utc("14:00"))
    assert starts(sim) == ["10:00", "14:00"]
    assert unserved(sim) == [("skipped", "disabled", 3, "13:00")]


@pytest.mark.parametrize("delay", [FIVE_MINUTES, 2 * FIVE_MINUTES], ids=["kept", "overridden"])
def test_a_pause_survives_being_disabled_and_enabled(start: Start, delay: timedelta) -> None:
    sim = start("10:30", governed(enabled=False))
    operator_actions.pause(["t"], act(sim), until=utc("12:30"))
    sim.initialize([governed(retry_delay=delay)])
    assert (sim.task("t").paused_until, starts(sim)) == (utc("12:30"), [])
    sim.advance_to(utc("13:30"))
    assert starts(sim) == ["13:00"]


def test_p44_a_pause_survives_every_restart_override_and_removal(start: Start) -> None:
    sim = start("10:30", task(), task("other"))
    operator_actions.pause(["t"], act(sim, "inventory"))
    for hour, end in ((11, sim.crash), (12, sim.stop), (13, sim.crash)):
        sim.advance_to(utc(f"{hour}:10"), at_least_every=FIVE_MINUTES)
        end()
        sim.initialize([task(cron="20 * * * *" if hour == 11 else HOURLY), task("other")])
    sim.initialize([task("other")])
    sim.initialize([task(), task("other")])
    sim.advance_to(utc("14:10"), at_least_every=FIVE_MINUTES)
    assert starts(sim) == []
    assert starts(sim, "other") == ["11:00", "12:00", "13:00", "14:00"]
    (kept,) = TaskOverride.objects.filter(ended_at=None)
    assert (kept.kind, kept.author, kept.note) == ("pause", "an operator", "inventory")
    assert kept.created_at == utc("10:30")
    operator_actions.resume(["t"], act(sim))
    sim.advance_to(utc("15:10"), at_least_every=FIVE_MINUTES)
    assert starts(sim) == ["15:00"]


def test_a_retry_pending_at_the_pause_runs_after_resume(start: Start) -> None:
    sim = start("10:00", task("t", DAILY, "fail ok"))
    operator_actions.pause(["t"], act(sim))
    sim.advance_to(utc("10:30"))
    operator_actions.resume(["t"], act(sim))
    sim.poll()
    assert runs(sim, "reason started_at") == [("boot", "10:00"), ("retry", "10:30")]


def test_p66_acts_right_before_a_minute_keep_nothing_from_starting_in_it(start: Start) -> None:
    paused = [f"t{number}" for number in range(5)]
    sim = start("10:58", *map(task, (*paused, "other")))
    for hour in (11, 12):
        sim.advance_to(utc(f"{hour - 1}:59:58"), at_least_every=FIVE_MINUTES)
        for name in paused:
            operator_actions.pause([name], act(sim))
            sim.poll()
            operator_actions.resume([name], act(sim))
        sim.advance_to(utc(f"{hour}:00"))
    assert [starts(sim, name) for name in (*paused, "other")] == [["11:00", "12:00"]] * 6
    assert not TaskRun.objects.exclude(outcome="succeeded").exists()


@pytest.mark.parametrize(
    "damage", [{"cron": "garbage"}, {"timezone": "Nowhere/At_All"}, {"declaration": ["no object"]}]
)
def test_acts_leave_a_damaged_row_alone(sim: Simulation, damage: dict[str, object]) -> None:
    ScheduledTask.objects.update(**damage)
    assert operator_actions.pause(["t"], act(sim)) == []


# --- run, clear the retry ---


def test_run_now_runs_once_and_answers_the_request_under_a_pause_too(sim: Simulation) -> None:
    sim.advance_to(utc("10:20"))
    assert operator_actions.request_run(["t", "unknown"], act(sim, "please")) == ["t"]
    assert sim.task("t").wake_at == sim.now
    sim.poll()
    assert runs(sim, "reason outcome started_at")[1:] == [("manual", "succeeded", "10:20")]
    stored = TaskOverride.objects.get(kind="run")
    assert (stored.note, stored.author, stored.author_key) == ("please", "an operator", "7")
    assert stored.ended_at is not None
    operator_actions.pause(["t"], act(sim))
    sim.advance_to(utc("11:20"))
    operator_actions.request_run(["t"], act(sim))
    sim.poll()
    assert starts(sim) == ["10:00", "10:20", "11:20"]
    assert sim.task("t").paused_since == utc("10:20")


def test_clear_retry_forgets_the_retry(start: Start) -> None:
    sim = start("10:00", task(outcomes="fail ok"))
    assert operator_actions.clear_retry(["t"], act(sim)) == ["t"]
    assert operator_actions.clear_retry(["t"], act(sim)) == []
    sim.advance_to(utc("11:00"))
    assert runs(sim, "outcome started_at") == [("failed", "10:00"), ("succeeded", "11:00")]


# --- skip the next run ---


def test_the_skipped_occurrence_is_a_row_with_who_and_why(
    start: Start, told: list[Event], django_capture_on_commit_callbacks: Any
) -> None:
    sim = start("09:30", governed())
    with django_capture_on_commit_callbacks(execute=True):
        assert operator_actions.skip_next(["t"], act(sim, "inventory")) == ["t"]
    assert operator_actions.skip_next(["t"], act(sim)) == []
    assert sim.task("t").next_run_at == utc("11:00")
    sim.advance_to(utc("10:00"))
    assert runs(sim, "outcome reason scheduled_for detail") == [
        ("skipped", "skip_next", "10:00", {"author": "an operator", "note": "inventory"})
    ]
    stored = TaskOverride.objects.get()
    assert (stored.kind, stored.until) == ("skip", utc("10:00"))
    assert (stored.author, stored.note) == ("an operator", "inventory")
    assert stored.ended_at is not None
    sim.advance_to(utc("11:30"))
    assert starts(sim) == ["11:00"]
    assert "TaskSkipRequested" in names(told)


def test_a_skip_is_taken_back(start: Start) -> None:
    sim = start("09:30", governed())
    operator_actions.skip_next(["t"], act(sim))
    assert operator_actions.unskip(["t"], act(sim)) == ["t"]
    assert operator_actions.unskip(["t"], act(sim)) == []
    sim.advance_to(utc("10:30"))
    assert starts(sim) == ["10:00"]
    assert not TaskOverride.objects.filter(ended_at=None).exists()


def test_a_retry_goes_on_while_the_next_occurrence_is_skipped(start: Start) -> None:
    retried = governed("t", HOURLY, "fail ok", retry_delay=timedelta(minutes=80))
    sim = start("09:30", retried)
    sim.advance_to(utc("10:10"))
    operator_actions.skip_next(["t"], act(sim))
    sim.advance_to(utc("11:30"))
    assert starts(sim) == ["10:00", "11:20"]


def test_what_was_missed_besides_a_skipped_occurrence_is_caught_up(start: Start) -> None:
    sim = start("09:30", governed())
    operator_actions.skip_next(["t"], act(sim))
    sim.jump_to(utc("12:30"))
    assert runs(sim, "outcome reason count scheduled_for") == [
        ("skipped", "skip_next", 1, "10:00"),
        ("missed", "held_up", 1, "11:00"),
        ("succeeded", "due", 1, "12:00"),
    ]


def test_a_skip_of_what_another_schedule_does_not_name_means_nothing(start: Start) -> None:
    sim = start("09:30", governed())
    operator_actions.skip_next(["t"], act(sim))
    sim.initialize([governed(cron="30 * * * *")])
    sim.advance_to(utc("11:40"))
    assert runs(sim, "outcome started_at") == [
        ("succeeded", at) for at in ("09:30", "10:30", "11:30")
    ]


# --- paused by its failures ---


def test_failures_in_a_row_pause_a_task_and_say_so(start: Start, told: list[Event]) -> None:
    sim = start("09:30", governed(outcomes="fail", pause_after_failures=3))
    sim.advance_to(utc("12:00"))
    assert starts(sim) == ["10:00", "10:05", "10:10"]
    stored = TaskOverride.objects.get()
    assert (stored.kind, stored.reason, stored.author, stored.ended_at) == (
        *("pause", "failures"),
        *("", None),
    )
    assert stored.note == sim.runs("t")[-1].error
    assert names(told)[-2:] == ["TaskRunFailed", "TaskPausedByFailures"]
    assert sim.task("t").next_run_at is None
    # When somebody resumes it, it has as many failures again.
    operator_actions.resume(["t"], act(sim))
    sim.advance_to(utc("14:00"))
    assert len(sim.starts("t")) == 6
    assert TaskOverride.objects.filter(reason="failures").count() == 2


def test_many_tasks_are_paused_by_as_many_statements_as_one(start: Start) -> None:
    failing = [f"t{number}" for number in range(5)]
    keys: dict[str, Any] = {"outcomes": "fail", "pause_after_failures": 1}
    sim = start("09:30", *(governed(name, **keys) for name in failing))
    with CaptureQueriesContext(connection) as asked:
        sim.advance_to(utc("10:01"))
    table = TaskOverride._meta.db_table
    asked_of = [query["sql"] for query in asked if table in query["sql"]]
    assert len([sql for sql in asked_of if "INSERT" in sql or "UPDATE" in sql]) == 2
    stored = TaskOverride.objects.order_by("task_name").values_list("task_name", "note")
    assert list(stored) == [(name, sim.runs(name)[-1].error) for name in failing]


def test_a_success_ends_the_row_of_failures(start: Start) -> None:
    sim = start("09:30", governed(outcomes="fail ok fail ok", pause_after_failures=2))
    sim.advance_to(utc("13:00"))
    assert (TaskOverride.objects.count(), sim.task("t").paused_since) == (0, None)
