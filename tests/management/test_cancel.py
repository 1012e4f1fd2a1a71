"""``cron cancel``."""

from __future__ import annotations

from datetime import timedelta

from django_declarative_cron.models import TaskOverride, TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import DELAY, Cron


def acts() -> list[tuple[str, ...]]:
    told = TaskOverride.objects.order_by("pk")
    return list(told.values_list("kind", "task_name", "author", "note"))


def test_runs_in_progress_are_asked_to_end(cron: Cron, sim: Simulation) -> None:
    sim.initialize(
        [
            ("a", "0 * * * *", sim.job(duration=timedelta(minutes=30)), DELAY),
            ("b", "0 0 1 1 *", sim.job(), DELAY),
        ]
    )
    sim.advance_to("2024-01-01T11:10:00Z")
    answer = cron("cancel", "a", "--user", "gardener", "--note", "too long", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "1 run asked to end: a\n")
    assert TaskRun.objects.get(outcome="running").cancel_requested_at == sim.now
    assert acts() == [("cancel", "a", "gardener", "too long")]
    answer = cron("cancel", "a", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "Asked before, or over by now: a\n")
    assert len(acts()) == 1
    answer = cron("cancel", "b", clock=sim.clock)
    assert (answer.code, answer.err) == (1, "No run in progress: b")
    assert cron("cancel", "c", clock=sim.clock).code == 2
    sim.advance_to("2024-01-01T11:40:00Z")
    assert sim.runs("a")[-1].outcome == "cancelled"


def test_runs_that_wait_behind_another_end_and_never_begin(cron: Cron, sim: Simulation) -> None:
    job = sim.job(duration=timedelta(minutes=150))
    entry = {"name": "a", "cron": "0 * * * *", "callback": job, "overlap_policy": "enqueue"}
    sim.initialize([entry])
    sim.advance_to("2024-01-01T12:10:00Z")
    assert [run.outcome for run in TaskRun.objects.order_by("pk")] == [
        "running",
        "waiting",
        "waiting",
    ]
    answer = cron("cancel", "a", "--user", "gardener", clock=sim.clock)
    assert answer.out == "1 run asked to end: a\n2 waiting runs ended: a\n"
    assert acts() == [("cancel", "a", "gardener", "")] * 3
    assert [run.outcome for run in TaskRun.objects.order_by("pk")] == [
        "running",
        "cancelled",
        "cancelled",
    ]
    sim.advance_to("2024-01-01T13:50:00Z")
    outcomes = [run.outcome for run in TaskRun.objects.order_by("pk")]
    assert outcomes == ["cancelled"] * 3 + ["running"]
