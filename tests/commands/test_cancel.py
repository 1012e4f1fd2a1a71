"""``cron cancel``."""

from __future__ import annotations

from datetime import timedelta

from django_declarative_cron.models import TaskRun
from django_declarative_cron.testing import Simulation

from .conftest import DELAY, Cron


def test_runs_in_progress_are_asked_to_end(cron: Cron, sim: Simulation) -> None:
    sim.initialize(
        [
            ("a", "0 * * * *", sim.job(duration=timedelta(minutes=30)), DELAY),
            ("b", "0 0 1 1 *", sim.job(), DELAY),
        ]
    )
    sim.advance_to("2024-01-01T11:10:00Z")
    answer = cron("cancel", "a", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "1 run asked to end: a\n")
    assert TaskRun.objects.get(outcome="running").cancel_requested_at == sim.now
    answer = cron("cancel", "a", clock=sim.clock)
    assert (answer.code, answer.out) == (0, "Asked before, or over by now: a\n")
    answer = cron("cancel", "b", clock=sim.clock)
    assert (answer.code, answer.err) == (1, "No run in progress: b")
    assert cron("cancel", "c", clock=sim.clock).code == 2
    sim.advance_to("2024-01-01T11:40:00Z")
    assert sim.runs("a")[-1].outcome == "cancelled"
