"""People's acts: pause, resume, run now, clear the retry state."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from django_declarative_cron.core.events import Event
from django_declarative_cron.models import ScheduledTask, TaskOverride, TaskRun
from django_declarative_cron.store import operator_actions
from django_declarative_cron.testing import Simulation

from .conftest import FIVE_MINUTES, HOURLY, Started, act, utc

pytestmark = pytest.mark.beyond_the_theory


@pytest.fixture
def sim(simulation: Started) -> Simulation:
    """An hourly task that has just run at 10:00."""
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(), FIVE_MINUTES)])
    return sim


@pytest.mark.requirement("002 CRON-28")
def test_p59_a_pause_discharges_and_nothing_runs_for_it_at_resume(sim: Simulation) -> None:
    assert operator_actions.pause(["t"], act(sim, "inventory")) == ["t"]
    assert (sim.task("t").next_run_at, sim.task("t").wake_at) == (None, None)
    sim.advance_to("2024-01-01T13:30:00Z")
    assert operator_actions.resume(["t"], act(sim)) == ["t"]
    sim.advance_to("2024-01-01T14:00:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("14:00")]
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
    rows = TaskRun.objects.filter(started_at=None).order_by("scheduled_for")
    columns = ("outcome", "reason", "scheduled_from", "scheduled_for", "count")
    # No occurrence is both skipped and missed.
    assert list(rows.values_list(*columns)) == [
        ("missed", reason, utc("11:00"), utc("12:00"), 2),
        ("skipped", "disabled", utc("13:00"), utc("14:00"), 2),
    ]


def test_what_rests_or_never_runs_again_has_no_next_run_to_skip(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim))
    assert operator_actions.skip_next(["t"], act(sim)) == []
    assert TaskOverride.objects.count() == 1


@pytest.mark.parametrize("until", ["12:30", "13:00"])
def test_a_pause_with_an_end_ends_by_itself_before_the_occurrence_at_its_end(
    sim: Simulation, until: str
) -> None:
    operator_actions.pause(["t"], act(sim), until=utc(until))
    assert sim.task("t").next_run_at == utc("13:00")
    sim.advance_to("2024-01-01T13:30:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("13:00")]
    assert _rows() == [(utc("12:00"), "skipped", "disabled"), (utc("13:00"), "succeeded", "due")]
    assert TaskRun.objects.get(outcome="skipped").count == 2


def test_a_pause_survives_override_removal_and_return(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim))
    job = sim.job()
    sim.initialize([("t", "30 * * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T11:45:00Z")
    sim.initialize([])
    sim.initialize([("t", "30 * * * *", job, FIVE_MINUTES)])
    sim.advance_to("2024-01-01T13:45:00Z")
    assert job.runs == []
    operator_actions.resume(["t"], act(sim))
    sim.advance_to("2024-01-01T14:30:00Z")
    assert len(job.runs) == 1


@pytest.mark.parametrize("delay", [FIVE_MINUTES, 2 * FIVE_MINUTES], ids=["kept", "overridden"])
def test_a_pause_survives_being_disabled_and_enabled(simulation: Started, delay: timedelta) -> None:
    sim = simulation("10:30:00")
    task = {"name": "t", "cron": HOURLY, "callback": sim.job(), "retry_delay": FIVE_MINUTES}
    sim.initialize([{**task, "enabled": False}])
    operator_actions.pause(["t"], act(sim), until=utc("12:30"))
    sim.initialize([{**task, "retry_delay": delay}])
    assert (sim.task("t").paused_until, sim.starts("t")) == (utc("12:30"), [])
    sim.advance_to("2024-01-01T13:30:00Z")
    assert sim.starts("t") == [utc("13:00")]


def test_a_retry_pending_at_the_pause_runs_after_resume(simulation: Started) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", "0 10 * * *", sim.job(["fail", "ok"]), FIVE_MINUTES)])
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T10:30:00Z")
    assert len(sim.starts("t")) == 1
    operator_actions.resume(["t"], act(sim))
    sim.poll()
    assert [run.reason for run in sim.runs("t")] == ["boot", "retry"]


def test_run_now_runs_once_and_answers_the_request(sim: Simulation) -> None:
    sim.advance_to("2024-01-01T10:20:00Z")
    assert operator_actions.request_run(["t", "unknown"], act(sim, "please")) == ["t"]
    sim.poll()
    run = sim.runs("t")[-1]
    assert (run.reason, run.outcome, run.started_at) == ("manual", "succeeded", utc("10:20"))
    stored = TaskOverride.objects.get(kind="run")
    assert (stored.note, stored.author, stored.author_key) == ("please", "an operator", "7")
    assert stored.ended_at is not None
    sim.advance_to("2024-01-01T11:00:00Z")
    assert sim.starts("t") == [utc("10:00"), utc("10:20"), utc("11:00")]


def test_run_now_runs_a_paused_task_too(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim))
    sim.advance_to("2024-01-01T11:20:00Z")
    operator_actions.request_run(["t"], act(sim))
    sim.poll()
    assert sim.starts("t") == [utc("10:00"), utc("11:20")]
    assert sim.task("t").paused_since == utc("10:00")


def test_clear_retry_forgets_the_retry(simulation: Started, told: list[Event]) -> None:
    sim = simulation("10:00:00")
    sim.initialize([("t", HOURLY, sim.job(["fail", "ok"]), FIVE_MINUTES)])
    assert operator_actions.clear_retry(["t"], act(sim)) == ["t"]
    assert operator_actions.clear_retry(["t"], act(sim)) == []
    sim.advance_to("2024-01-01T10:59:00Z")
    assert len(sim.starts("t")) == 1
    sim.advance_to("2024-01-01T11:00:00Z")
    assert [run.outcome for run in sim.runs("t")] == ["failed", "succeeded"]


def test_p66_acts_right_before_a_minute_keep_nothing_from_starting_in_it(
    simulation: Started,
) -> None:
    sim = simulation("10:58:00")
    named = [f"t{number}" for number in range(5)]
    sim.initialize([(name, HOURLY, sim.job(), FIVE_MINUTES) for name in (*named, "other")])
    for hour in (11, 12):
        sim.advance_to(utc(f"{hour - 1}:59:58"), at_least_every=FIVE_MINUTES)
        for name in named:
            operator_actions.pause([name], act(sim))
            sim.poll()
            operator_actions.resume([name], act(sim))
        sim.advance_to(utc(f"{hour}:00"))
    assert [sim.starts(name) for name in (*named, "other")] == [[utc("11:00"), utc("12:00")]] * 6
    assert not TaskRun.objects.exclude(outcome="succeeded").exists()


@pytest.mark.parametrize(
    "damage", [{"cron": "garbage"}, {"timezone": "Nowhere/At_All"}, {"declaration": ["no object"]}]
)
def test_acts_leave_a_damaged_row_alone(sim: Simulation, damage: dict[str, object]) -> None:
    ScheduledTask.objects.update(**damage)
    assert operator_actions.pause(["t"], act(sim)) == []


def test_an_act_wakes_the_task_at_once(sim: Simulation) -> None:
    operator_actions.request_run(["t"], act(sim))
    assert sim.task("t").wake_at == sim.now


@pytest.mark.parametrize(
    ("until", "expected"), [(None, None), (utc("2024-01-01T12:00"), utc("2024-01-01T12:00"))]
)
def test_a_new_pause_replaces_the_one_before(
    sim: Simulation, until: datetime | None, expected: datetime | None
) -> None:
    operator_actions.pause(["t"], act(sim), until=utc("2024-01-01T18:00"))
    operator_actions.pause(["t"], act(sim), until=until)
    assert sim.task("t").paused_until == expected
    assert TaskOverride.objects.filter(kind="pause", ended_at=None).count() == 1


def _rows() -> list[tuple[datetime, str, str]]:
    rows = TaskRun.objects.order_by("id").values_list("scheduled_for", "outcome", "reason")
    return list(rows)[1:]


def test_a_resume_after_the_end_of_a_pause_leaves_what_came_after_it(sim: Simulation) -> None:
    operator_actions.pause(["t"], act(sim), until=utc("11:30"))
    sim.clock.advance(utc("12:10"))
    operator_actions.resume(["t"], act(sim))
    sim.advance_to("2024-01-01T12:20:00Z")
    assert _rows() == [
        (utc("11:00"), "skipped", "disabled"),
        (utc("12:00"), "succeeded", "due"),
    ]
